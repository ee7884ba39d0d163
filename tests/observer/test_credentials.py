"""Credentials in argument lists: found, told without their text, cut when asked; what is ordinary is untouched."""

from __future__ import annotations

import base64
import hashlib
import json
import shlex
import uuid
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.observing import needs_observer
from support.watching import Watch, watch, workspace
from troth.observer.argumentshapes import credentials
from troth.observer.credentials import Search

__all__ = ["watch", "workspace"]

# In pieces, so that no scan of this project takes the tests for what they test.
GITHUB = "gh" + "p_wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"
AWS = "AKI" + "AIOSFODNN7REALKEY"
KEY = "-----BEGIN RSA PRIV" + "ATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----"
ANTHROPIC = "sk-" + "ant-api03-q8Zt5Lw2Xv9Kc4Rb7Nm1Pd6Fh3Gj0Sa"

SECRET = {
    "a bearer token": (["curl", "-H", "Authorization: Bearer abcdefgh", "https://api.example/"], "abcdefgh"),
    "basic authorization": (["curl", "--header=Authorization: Basic bWU6aHVudGVy", "x"], "bWU6aHVudGVy"),
    "another header": (["curl", "-H", "X-Api-Key: kk12345", "x"], "kk12345"),
    "a cookie": (["curl", "-H", "Cookie: sid=a81c; lang=en", "x"], "sid=a81c; lang=en"),
    "a user's password": (["curl", "-u", "me:hunter2", "x"], "hunter2"),
    "joined to its option": (["mysql", "-uroot", "-phunter2", "db"], "hunter2"),
    "in an address": (["psql", "postgresql://me:s3cret@db.example/shop"], "s3cret"),
    "a token in an address": (["git", "clone", f"https://{GITHUB}@git.example/a.git"], GITHUB),
    "in a query": (["curl", "https://api.example/v1?page=2&access_token=zzz9yyy8"], "zzz9yyy8"),
    "an option": (["deploy", "--password", "letmein"], "letmein"),
    "an option with a longer name": (["deploy", "--github-token=0123456789abcdef0123456789abcdef01234567"],
                                     "0123456789abcdef0123456789abcdef01234567"),
    "an assignment": (["env", "DB_PASSWORD=h7Gt2q", "./serve"], "h7Gt2q"),
    "an assignment in an option": (["kubectl", "create", "secret", "--from-literal=db.password=h7Gt2q"], "h7Gt2q"),
    "a script": (["sh", "-c", "API_KEY=v8Kq2 ./deploy --now"], "v8Kq2"),
    "an option in a script": (["bash", "-lc", "deploy --password 'h7Gt2q' && echo done"], "h7Gt2q"),
    "a header in a script": (["sh", "-c", "curl -s -H 'Authorization: token 55ee44' https://x"], "55ee44"),
    "a user in a script": (["sh", "-c", "curl -s -u me:hunter2 https://x"], "hunter2"),
    "a JSON body": (["curl", "-d", '{"user": "me", "password": "hunter2"}', "x"], "hunter2"),
    "a form": (["curl", "-d", "user=me&password=hunter2", "x"], "hunter2"),
    "a passphrase": (["openssl", "rsa", "-in", "k.pem", "-passin", "pass:abcd"], "abcd"),
    "a login": (["docker", "login", "-u", "me", "-p", "pw12345"], "pw12345"),
    "a GitHub token anywhere": (["notify", f"see {GITHUB} there"], GITHUB),
    "an AWS key anywhere": (["notify", AWS], AWS),
    "a newer key": (["agent", f"key:{ANTHROPIC}"], ANTHROPIC),
    "a private key": (["ssh-add", KEY], KEY),
}  # fmt: skip


@pytest.mark.parametrize(("argv", "secret"), SECRET.values(), ids=list(SECRET))
def test_a_credential_is_found_told_without_its_text_and_cut(argv: list[str], secret: str) -> None:
    search = Search({})
    search.look("observation.json", [("e1", argv)])
    assert search.told
    told = json.dumps(search.as_json(cut=False)) + (search.sentence or "")
    assert secret not in told
    cut = search.cut(argv)
    assert secret not in " ".join(cut)
    assert [len(cut), cut[0]] == [len(argv), argv[0]]
    assert "".join(cut) == "".join(argv).replace(secret, "<secret 1>")


HONEST = [
    # The beginning of an AWS key's number stands in it, as anything does in a digest.
    "fetch sha512-41A5AB3F5F858D0ACCA4C30BFF7D1975C8E61079BC6DBFA8EFD528264D42AFEBE020695A0AE6C993BB879D9D193C9BCC6165",
    "git commit -m 'Add the --token option; cookie: fix parsing; Authorization: require login'",
    "git show 3f786850e387550fdab836ed7e6dc881de23001b",
    "git push git@git.example:me/shop.git main",
    "git clone https://git.example/me/shop.git",
    "sha256sum -c 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "docker run -p 8080:80 image@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "docker build --secret id=npm,src=.npmrc .",
    "kubectl get pod 3f2504e0-4f89-11d3-9a0c-0305e82c3301",
    "pytest -q -k 'test_token and not password' tests/test_secrets.py::test_password[admin-hunter2]",
    "train --max-token 4096 --pad_token '[PAD]' --eos-token '</s>'",
    "psql --no-password -h localhost shop",
    "deploy --password-file /run/secrets/db --token /run/secrets/token --password-stdin",
    'sh -c \'curl -H "Authorization: Bearer $TOKEN" "https://api.example/?key=${KEY}"\'',
    "python3 -c \"import os; token=os.environ['TOKEN']; password = ask(); SECRET=load(x)\"",
    "env PWD=/ws OLDPWD=/ PYTHONPATH=src HOME=/home/agent make test",
    "npx @scope/package@1.2.3 --registry https://registry.example/@scope/package",
    "ssh -i ~/.ssh/id_ed25519 -p 2222 me@host.example",
    "7z x archive.7z",
    "ffmpeg -i in.mkv -pass 1 out.mp4",
    "curl -s https://api.example/items?page=2&sort=token",
    "grep -rn 'password=' src",
    "cargo test -- --test-threads=1",
    "node --require ./setup.js node_modules/.bin/mocha",
    "make -j2 VERSION=1.2.3 CFLAGS=-O2",
]


@pytest.mark.parametrize("line", HONEST)
def test_ordinary_arguments_are_untouched(line: str) -> None:
    argv = shlex.split(line)
    search = Search({})
    search.look("observation.json", [("e1", argv)])
    assert (search.told, search.sentence) == ([], None)
    assert search.cut(argv) == tuple(argv)


@settings(deadline=None)  # the first time loads the library
@given(st.binary(min_size=16, max_size=64), st.sampled_from(["{}", "id={}", "--commit={}", "at {} of it", "sha512-{}"]))
def test_digests_ids_and_hashes_are_no_secrets(data: bytes, around: str) -> None:
    for text in (
        hashlib.sha1(data).hexdigest(),
        hashlib.sha256(data).hexdigest(),
        hashlib.sha512(data).hexdigest().upper(),
        str(uuid.UUID(bytes=data[:16])),
        base64.b64encode(hashlib.sha512(data).digest()).decode(),
    ):
        assert not [found for found in credentials(["tool", around.format(text)]) if found.firm]


@settings(deadline=None)
@given(st.lists(st.text(max_size=60), min_size=1, max_size=6).filter(lambda argv: argv[0] != ""))
def test_any_vector_keeps_its_length_and_what_is_not_found(argv: list[str]) -> None:
    search = Search({})
    search.look("", [("", argv)])
    cut = search.cut(argv)
    assert len(cut) == len(argv)
    found = {one.argument for one in credentials(argv) if one.firm}
    if not found:
        assert cut == tuple(argv)


@pytest.mark.parametrize(
    "hostile", ["a" * 90_000, "a-" * 45_000, "curl " * 18_000, '"' * 90_000, "?a=" * 30_000, "-----BEGIN " * 8_000,
                "--a-" * 20_000, "aws key " * 11_000, "x://" * 22_000, "x1" * 45_000]
)  # fmt: skip
def test_an_argument_made_to_be_slow_is_read_all_the_same(hostile: str) -> None:
    argv = ["tool", hostile]
    assert all(hostile[one.start : one.end] == one.value for one in credentials(argv) if one.argument == 1)
    assert len(Search({}).cut(argv)) == 2  # it comes to an end: no pattern looks at each place from each


def test_one_text_is_one_number_and_is_cut_wherever_it_stands() -> None:
    search = Search({"DEPLOY_TOKEN": "a1b2c3d4e5", "LANG": "en_GB.UTF-8"})
    vectors = [
        ["sh", "-c", "curl -u me:hunter22 x && echo hunter22"],
        ["curl", "-u", "me:hunter22", "x"],
        ["echo", "a1b2c3d4e5", "en_GB.UTF-8"],
        ["tool", "--password", "other", "other"],
    ]
    search.look("observation.json", [(f"e{number}", argv) for number, argv in enumerate(vectors)])
    assert [search.cut(argv) for argv in vectors] == [
        ("sh", "-c", "curl -u me:<secret 1> x && echo <secret 1>"),
        ("curl", "-u", "me:<secret 1>", "x"),
        ("echo", "<secret 2>", "en_GB.UTF-8"),
        ("tool", "--password", "<secret 3>", "other"),  # a plain word is cut only where it is a secret
    ]
    assert {told.kind for told in search.told} >= {"the variable DEPLOY_TOKEN"}


RUNS = (
    "import json, os, subprocess\n"
    "argv = ['true', '--api-key', 'v8Kq2Zt5Lw']\n"
    "subprocess.run(argv)\n"
    "open(os.environ['TROTH_CLAIMS'], 'a').write(json.dumps({'argv': argv, 'exit': 0}) + '\\n')\n"
)


@needs_observer
@pytest.mark.observer
def test_no_record_holds_a_credential_that_was_to_be_cut_and_coverage_says_so(watch: Watch) -> None:
    seen = watch(RUNS, redact=True)
    assert not [name for name, data in seen.observed.files.items() if b"v8Kq2Zt5Lw" in data]
    assert not seen.complete
    assert seen.observed.coverage_faults == ("credentials were cut out of argument lists",)
    (started,) = [event for event in seen.observation["events"] if event.get("argv", [""])[0] == "true"]
    assert started["argv"] == seen.claims["claims"][0]["argv"] == ["true", "--api-key", "<secret 1>"]
    assert seen.observed.secrets["cut"] is True
    assert "v8Kq2Zt5Lw" not in json.dumps(seen.observed.secrets)


@needs_observer
@pytest.mark.observer
def test_without_being_asked_nothing_is_cut_and_with_nothing_to_cut_nothing_is_lost(watch: Watch) -> None:
    told = watch(RUNS)
    assert told.complete, told.observed.coverage_faults
    assert b"v8Kq2Zt5Lw" in told.observed.files["observation.json"]
    assert {one["record"] for one in told.observed.secrets["found"]} >= {"observation.json", "claims.json"}
    plain = watch(RUNS.replace("--api-key", "--label"), redact=True)
    assert plain.complete, plain.observed.coverage_faults
    assert plain.observed.secrets["found"] == []
    assert b"v8Kq2Zt5Lw" in plain.observed.files["observation.json"]


@needs_observer
@pytest.mark.observer
@pytest.mark.parametrize("keep", [True, False])
def test_the_trace_is_removed_once_its_digest_is_taken_unless_it_is_kept(
    watch: Watch, tmp_path: Path, keep: bool
) -> None:
    seen = watch("print('said')", keep_trace=keep)
    private = tmp_path / "private0"
    for name in ("trace", "transcript"):
        digest = seen.launch_receipt[f"{name}_sha256"]
        assert len(digest) == 64
        if keep:
            assert hashlib.sha256((private / name).read_bytes()).hexdigest() == digest
        assert (private / name).exists() is keep
