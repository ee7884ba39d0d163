"""Secrets in what is about to leave: real kinds are found and never repeated; honest text is left alone."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest

import troth
from troth.backends.secrets import MOST_TOLD, Suspicion, suspicions
from troth.core.tokenformats import LONGEST

# In pieces, so that no scan of this project takes the tests for what they test.
SECRETS = {
    "an AWS key": ("AKI" + "AIOSFODNN7REALKEY", "AWS Access Key"),
    "a GitHub token": ("gh" + "p_wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx", "GitHub Token"),
    "a Slack token": ("xox" + "b-34532454-e039d02840a0b9379c", "Slack Token"),
    "a Stripe key": ("sk_li" + "ve_ReTllpYQYfIZu2Jnf2lAPFjD", "Stripe Access Key"),
    "an OpenAI key": ("sk-Xi8tcNiHV9awbCcvilTe" + "T3Bl" + "bkFJ3UDnpdEwNNm6wVBpYM0o", "OpenAI Token"),
    "a private key": ("-----BEGIN RSA PRIV" + "ATE KEY-----", "Private Key"),
    "a web token": (
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0."
        "dozjgNryP4J3jVmNHl0w5N_XgL0n5I9PlFUP0THsR8U",
        "JSON Web Token",
    ),
    "a password in an address": ("https://someone:" + "k9Qz7fTr2w@db.example", "Basic Auth Credentials"),
    "a password": ('db_password = "' + 'h7Gt2qLmZ9x"', "Secret Keyword"),
}


@pytest.mark.parametrize(("text", "kind"), SECRETS.values(), ids=list(SECRETS))
@pytest.mark.parametrize("line", ["{}", "value: {}", "see {} for it", "\t{}\r", "{}  # pragma: allowlist secret"])
def test_a_secret_is_found_where_it_stands(text: str, kind: str, line: str) -> None:
    data = f"first\nsecond\n{line.format(text)}\nlast\n".encode()
    found = suspicions([("clean.md", b"nothing\n"), ("notes/memo.md", data)])
    assert Suspicion("notes/memo.md", 3, kind) in found
    assert {(one.member, one.line) for one in found} == {("notes/memo.md", 3)}


@pytest.mark.parametrize(("text", "kind"), SECRETS.values(), ids=list(SECRETS))
def test_a_secret_is_never_repeated(text: str, kind: str) -> None:
    for one in suspicions([("memo.md", text.encode())]):
        assert text not in repr(one) + str(one) + str(one.as_json())
        assert one.as_json() == {"member": "memo.md", "line": 1, "kind": one.kind}


def test_settings_without_quotes() -> None:
    line = b"DB_PASSWORD=" + b"h7Gt2qLmZ9x\n"
    for name in (".env", "deploy/.env", ".env.production", "prod.env", "service.ini"):
        assert suspicions([(name, line)]) == [Suspicion(name, 1, "Secret Keyword")]


HONEST = {
    "prose": "The secret: he never told anybody. Her password is what she forgot. An api key opens doors.",
    "an environment": 'password = os.environ["DB_PASSWORD"]\ntoken = get_token(request)\n',
    "a template": 'password = "${DB_PASSWORD}"\napi_key: "{{ api_key }}"\nsecret = "<your-secret>"\n',
    "digests": "sha256:" + "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" + "\n",
    "quoted digests": '"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"\n',
    "an id": "id: 123e4567-e89b-12d3-a456-426614174000\n",
    "a public key": "-----BEGIN PUBLIC KEY-----\n-----BEGIN CERTIFICATE-----\n",
    "an address": "https://example.com/path?token=x and 192.0.2.1 and 8.8.8.8\n",
    "an id in the place of a key": 'api_key = "123e4567-e89b-12d3-a456-426614174000"\n',
    "counting up": 'password = "abcdefghijkl"\nsecret = "ABCDEF0123456789"\n',
    "digits alone": 'password = "12345678"\n',
    "a place to fill in": "https://user:{password}@db.example and https://user:<password>@db.example\n",
    "a variable in an address": "https://user:$PASSWORD@db.example\n",
    "a reference": 'password = vault.read("database/main")\n',
    "stars": 'password = "********"\n',
}


@pytest.mark.parametrize("text", HONEST.values(), ids=list(HONEST))
def test_honest_text_is_left_alone(text: str) -> None:
    assert suspicions([("memo.md", text.encode()), ("memo.py", text.encode())]) == []


def test_long_honest_pages_hold_none() -> None:
    docs = Path(troth.__file__).resolve().parents[2] / "docs"
    pages = [(name, (docs / name).read_bytes()) for name in ("ledger.md", "observing.md", "receipts.md")]
    assert suspicions(pages) == []


def test_a_secret_in_a_very_long_line() -> None:
    text, kind = SECRETS["a GitHub token"]
    for before in (LONGEST - 20, LONGEST, 5 * LONGEST + 7):
        line = "x," * (before // 2) + text + ",y" * LONGEST
        assert suspicions([("app.min.js", line.encode())]) == [Suspicion("app.min.js", 1, kind)]


@pytest.mark.parametrize("data", [b"", b"\xff\xfe\x00", b"\x00" * 5000, b"(" * 50_000, b"password = " + b"a " * 30_000])
def test_strange_bytes_are_no_obstacle(data: bytes) -> None:
    assert suspicions([("blob", data)]) == []


def test_of_very_many_the_first_are_told() -> None:
    text, _ = SECRETS["an AWS key"]
    found = suspicions([("a", f"{text}\n".encode() * 500), ("b", text.encode())])
    assert len(found) == MOST_TOLD
    assert {one.member for one in found} == {"a"}


def test_a_name_drives_no_terminal() -> None:
    assert "\x1b" not in str(Suspicion("a\x1b[2J", 1, "kind"))


def test_nothing_is_asked_of_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def refuse(*arguments: Any, **_: Any) -> NoReturn:
        asked.append(arguments)
        raise OSError("no network here")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    for text, _ in SECRETS.values():
        assert suspicions([("memo.md", text.encode())])
    assert asked == []


def test_the_library_is_loaded_only_for_a_scan() -> None:
    code = "import sys, troth.backends.secrets; print('detect_secrets' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          env={"PYTHONPATH": str(Path(troth.__file__).parents[1])})  # fmt: skip
    assert done.stdout == "False\n"
