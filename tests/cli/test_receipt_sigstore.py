"""``troth receipt sign --sigstore`` and ``verify --certificate-identity``: the commands at an instance of our own."""

from __future__ import annotations

import base64
import json
import pickle
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("sigstore", reason="the extra `sigstore` is not installed")

from cli.test_receipt import Run, contradicted, laid
from receipts.faults import put
from receipts.test_receipt import sealed
from support.sigstore_instance import LOGIN, WORKFLOW, Asked, Instance, b64
from troth.cli.main import main
from troth.stores import keyless

NAMED = ("--certificate-identity", WORKFLOW, "--certificate-oidc-issuer", LOGIN)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run one command line in this process; return exit status and both outputs."""

    def call(*words: str | Path) -> tuple[int, str, str]:
        status = main([str(word) for word in words])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


@pytest.fixture(scope="module")
def instances(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Instance, Instance]]:
    folder = tmp_path_factory.mktemp("instances")
    found = Instance(folder / "ours"), Instance(folder / "other")
    yield found
    for one in found:
        one.close()


@pytest.fixture
def instance(
    instances: tuple[Instance, Instance], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Instance]:
    """An instance, and an environment in which nobody gives out tokens and every other address is out of reach."""
    for name in ("GITHUB_ACTIONS", "GITLAB_CI", "BUILDKITE", "CIRCLECI", "GOOGLE_SERVICE_ACCOUNT_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv(keyless.TOKEN_VARIABLE, raising=False)
    monkeypatch.setattr("id._internal.oidc.ambient._GCP_PRODUCT_NAME_FILE", str(tmp_path / "absent"))
    monkeypatch.setenv("HTTPS_PROXY", closed())
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    ours = instances[0]
    ours.requests.clear()
    ours.faults.clear()
    yield ours
    ours.asked = Asked()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return laid(tmp_path / "member", sealed())


@pytest.fixture
def token(instance: Instance, tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(f"{instance.token()}\n")
    return file


def closed() -> str:
    """The address of a port on which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def code(out: str) -> str:
    found: str = json.loads(out)["error"]["code"]
    return found


def sign(run: Run, folder: Path, instance: Instance, *more: str | Path) -> tuple[int, str, str]:
    return run("receipt", "sign", folder, "--sigstore", "--trust-config", instance.trust_config, *more)


def test_a_receipt_signed_by_an_identity_is_verified(
    run: Run, instance: Instance, folder: Path, token: Path, tmp_path: Path
) -> None:
    status, out, err = sign(run, folder, instance, "--identity-token", token)
    assert (status, instance.faults) == (0, [])
    assert instance.requests == ["/api/v2/signingCert", "/api/v1/log/entries"]
    assert f"signed by {WORKFLOW}, vouched for by {LOGIN}" in out
    assert "receipt.sigstore.json" in err
    rooted = ("--trusted-root", instance.trusted_root)
    instance.requests.clear()
    status, out, _ = run("receipt", "verify", folder, *NAMED, *rooted)
    assert status == 0
    assert f"signed    by {WORKFLOW} as approver, vouched for by {LOGIN}" in out
    assert instance.requests == []  # with the root at hand nobody is asked
    status, out, _ = run("receipt", "verify", folder, *NAMED, *rooted, "--json")
    said = json.loads(out)
    assert (status, said["result"]["receipt"]) == (0, {"verdict": "valid"})
    assert said["signatures"]["verified"] == [{"name": WORKFLOW, "role": "approver", "issuer": LOGIN}]
    # The bundle is all it takes, and it may lie elsewhere.
    elsewhere = tmp_path / "elsewhere.json"
    (folder / "receipt.sigstore.json").rename(elsewhere)
    (folder / "receipt.json").unlink()
    assert code(run("receipt", "verify", folder, *NAMED, *rooted, "--json")[1]) == "E_BUNDLE_MISSING"
    assert run("receipt", "verify", folder, *NAMED, *rooted, "--bundle", elsewhere)[0] == 0
    assert run("receipt", "decide", folder, *NAMED, *rooted, "--bundle", elsewhere)[0] == 0


def test_nobody_looks_unless_told_whom_to_trust(run: Run, instance: Instance, folder: Path, token: Path) -> None:
    assert sign(run, folder, instance, "--identity-token", token)[0] == 0
    status, out, _ = run("receipt", "verify", folder)
    assert status == 0
    assert "a bundle lies in the folder; it was not checked" in out
    # What is signed is not changed any more.
    assert code(run("receipt", "decide", folder, "--write", "--json")[1]) == "E_RECEIPT_SIGNED"


def test_strangers_and_forgeries_are_not_believed(
    run: Run, instance: Instance, instances: tuple[Instance, Instance], folder: Path, token: Path, tmp_path: Path
) -> None:
    assert sign(run, folder, instance, "--identity-token", token)[0] == 0
    rooted = ("--trusted-root", instance.trusted_root, "--json")
    for named in (
        ("--certificate-identity", WORKFLOW.upper(), "--certificate-oidc-issuer", LOGIN),
        ("--certificate-identity", WORKFLOW, "--certificate-oidc-issuer", f"{LOGIN}.example.org"),
    ):
        status, out, _ = run("receipt", "verify", folder, *named, *rooted)
        assert (status, code(out)) == (3, "E_ENVELOPE_UNVERIFIED")
    status, out, _ = run("receipt", "verify", folder, *NAMED, "--trusted-root", instances[1].trusted_root, "--json")
    assert (status, code(out)) == (3, "E_ENVELOPE_UNVERIFIED")
    # A forger who takes records and receipt along still has no signature over them.
    forged = laid(tmp_path / "forged", sealed(contradicted()))
    file = forged / "receipt.sigstore.json"
    file.write_bytes((folder / "receipt.sigstore.json").read_bytes())
    assert code(run("receipt", "verify", forged, *NAMED, *rooted)[1]) == "E_ENVELOPE_OTHER"
    bundle = json.loads(file.read_bytes())
    bundle["dsseEnvelope"]["payload"] = instance.bundle((forged / "receipt.json").read_bytes())["dsseEnvelope"][
        "payload"
    ]
    file.write_text(json.dumps(bundle))
    status, out, _ = run("receipt", "verify", forged, *NAMED, *rooted)
    assert (status, code(out)) == (1, "E_ENVELOPE_SIGNATURE")
    # Control characters of a stranger reach no terminal.
    file.write_text(json.dumps(instance.bundle((forged / "receipt.json").read_bytes(), "\x1b[2J@example.com")))
    status, out, err = run("receipt", "verify", forged, *NAMED, "--trusted-root", instance.trusted_root)
    assert (status, "[2J@example.com" in err, "\x1b" in out + err) == (3, True, False)


def test_keys_and_identities_add_up_in_their_roles(
    run: Run, instance: Instance, folder: Path, token: Path, tmp_path: Path
) -> None:
    public = run("key", "new", "example.com/alice")[1].strip()
    rooted = ("--trusted-root", instance.trusted_root)
    both = ("--key", public, *NAMED, *rooted)
    assert run("receipt", "sign", folder, "--key", "example.com/alice")[0] == 0
    assert run("receipt", "verify", folder, *both)[0] == 0  # one of them will do
    assert code(run("receipt", "verify", folder, *both, "--threshold", "2", "--json")[1]) == "E_ENVELOPE_THRESHOLD"
    assert sign(run, folder, instance, "--identity-token", token)[0] == 0
    assert run("receipt", "verify", folder, *both, "--threshold", "2")[0] == 0
    assert run("receipt", "verify", folder, *both, "--threshold", "3")[0] == 2
    # A list says who signs as what.
    listed = tmp_path / "signers.toml"
    entry = f'identity = "{WORKFLOW}"\nissuer = "{LOGIN}"\n'
    listed.write_text(f"[[witness]]\n{entry}")
    roles = ("--key", public, "--signers", listed, *rooted)
    assert run("receipt", "verify", folder, *roles, "--threshold", "1", "--quorum", "1")[0] == 0
    assert run("receipt", "verify", folder, *roles, "--threshold", "2")[0] == 2
    assert code(run("receipt", "verify", folder, *roles, *NAMED, "--json")[1]) == "E_ENVELOPE_ROLE"
    listed.write_text(f"[[approver]]\n{entry}regexp = true\n")
    assert code(run("receipt", "verify", folder, *roles, "--json")[1]) == "E_IDENTITY_MALFORMED"
    # Two bundles of one identity are one signer.
    other = tmp_path / "again.json"
    assert sign(run, folder, instance, "--identity-token", token, "--out", other)[0] == 0
    twice = ("--bundle", folder / "receipt.sigstore.json", "--bundle", other, *rooted)
    named = (*NAMED, "--certificate-identity", "mallory@example.com")
    assert run("receipt", "verify", folder, *named, *twice)[0] == 0
    assert code(run("receipt", "verify", folder, *named, *twice, "--threshold", "2", "--json")[1]) == (
        "E_ENVELOPE_THRESHOLD"
    )


@pytest.mark.parametrize(
    "words",
    [
        ("--certificate-identity", WORKFLOW),
        ("--certificate-oidc-issuer", LOGIN),
        (*NAMED, "--certificate-oidc-issuer", LOGIN, "--certificate-oidc-issuer", LOGIN),
        ("--bundle", "x"),
        ("--trusted-root", "x"),
        ("--staging",),
        (*NAMED, "--envelope", "x"),
        (*NAMED, "--staging", "--trusted-root", "x"),
        (*NAMED, "--threshold", "2"),
    ],
)
def test_words_that_ask_for_nothing_are_refused(run: Run, folder: Path, words: tuple[str, ...]) -> None:
    status, out, _ = run("receipt", "verify", folder, *words, "--json")
    assert (status, code(out)) == (2, "E_USAGE")


def test_where_the_token_comes_from(
    run: Run, instance: Instance, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, out, _ = sign(run, folder, instance, "--json")
    assert (status, code(out), instance.requests) == (2, "E_SIGSTORE_TOKEN", [])
    monkeypatch.setenv(keyless.TOKEN_VARIABLE, instance.token())
    assert sign(run, folder, instance, "--out", tmp_path / "a.json")[0] == 0
    monkeypatch.delenv(keyless.TOKEN_VARIABLE)
    # A service for continuous integration gives one to jobs that may have it.
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    status, out, _ = sign(run, folder, instance, "--json")
    assert (status, code(out)) == (2, "E_SIGSTORE_TOKEN")
    monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "job")
    monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_URL", f"{instance.url}/token")
    assert sign(run, folder, instance, "--out", tmp_path / "b.json")[0] == 0
    assert "/token?audience=sigstore" in instance.requests


@pytest.mark.parametrize("claims", [{"exp": 1}, {"aud": "else"}, {"nbf": 4102444800}, None], ids=json.dumps)
def test_a_token_that_is_none_is_shown_to_nobody(
    run: Run, instance: Instance, folder: Path, token: Path, claims: dict[str, object] | None
) -> None:
    token.write_text("no token" if claims is None else instance.token(**claims))
    status, out, _ = sign(run, folder, instance, "--identity-token", token, "--json")
    assert (status, code(out), instance.requests) == (2, "E_SIGSTORE_TOKEN", [])
    assert token.read_text() not in out


def test_what_the_services_refuse_or_garble_leaves_nothing_behind(
    run: Run, instance: Instance, instances: tuple[Instance, Instance], folder: Path, token: Path, tmp_path: Path
) -> None:
    before = sorted(folder.iterdir())
    for asked in (
        Asked(status=403),
        Asked(status=500),
        Asked(body=lambda _: b"\xff"),
        Asked(body=lambda _: b"{}"),
        Asked(body=lambda body: body.replace(b"BEGIN CERTIFICATE", b"BEGIN NOTHING")),
        Asked(with_sct=False),
        Asked(names=("a@example.com", "b@example.com")),
    ):
        instance.asked = asked
        status, out, _ = sign(run, folder, instance, "--identity-token", token, "--json")
        assert (status, code(out)) == (2, "E_SIGSTORE_REFUSED")
    instance.asked = Asked()
    # A token of another issuer: the instance says no.
    token.write_text(instances[1].token())
    assert code(sign(run, folder, instance, "--identity-token", token, "--json")[1]) == "E_SIGSTORE_REFUSED"
    # The services of one instance and the root of another.
    mixed = tmp_path / "mixed.json"
    mixed.write_text(json.dumps({**instance.config_json(), "trustedRoot": instances[1].root_json()}))
    token.write_text(instance.token())
    words = ("receipt", "sign", folder, "--sigstore", "--identity-token", token, "--json", "--trust-config")
    assert code(run(*words, mixed)[1]) == "E_SIGSTORE_REFUSED"
    assert sorted(folder.iterdir()) == before
    assert run(*words, instance.trust_config)[0] == 0


def test_without_a_network_that_is_said(
    run: Run, instance: Instance, folder: Path, token: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = tmp_path / "away.json"
    away.write_text(json.dumps(instance.config_json()).replace(instance.url, closed()))
    words = ("receipt", "sign", folder, "--sigstore", "--identity-token", token, "--json")
    status, out, _ = run(*words, "--trust-config", away)
    assert (status, code(out)) == (3, "E_SIGSTORE_UNREACHABLE")
    status, out, _ = run(*words)
    assert (status, code(out)) == (3, "E_SIGSTORE_UNREACHABLE")
    assert "--trust-config" in json.loads(out)["error"]["remedy"]
    # Nor is a silent service waited for without end.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        away.write_text(
            json.dumps(instance.config_json()).replace(instance.url, f"http://127.0.0.1:{silent.getsockname()[1]}")
        )
        monkeypatch.setattr(keyless.sign_by_identity, "__defaults__", (0.2,))
        status, out, _ = run(*words, "--trust-config", away)
        assert (status, code(out)) == (3, "E_SIGSTORE_UNREACHABLE")
    assert not (folder / "receipt.sigstore.json").exists()
    (folder / "receipt.sigstore.json").write_text(json.dumps(instance.bundle((folder / "receipt.json").read_bytes())))
    status, out, _ = run("receipt", "verify", folder, *NAMED, "--json")
    assert (status, code(out)) == (3, "E_SIGSTORE_UNREACHABLE")
    assert "--trusted-root" in json.loads(out)["error"]["remedy"]
    assert run("receipt", "verify", folder, *NAMED, "--trusted-root", instance.trusted_root)[0] == 0


def test_what_can_be_refused_is_refused_before_anything_is_published(
    run: Run, instance: Instance, folder: Path, token: Path, tmp_path: Path
) -> None:
    with_token = ("--identity-token", token, "--json")
    bad = laid(tmp_path / "bad", sealed(edit=put("_type", "x")))
    status, out, _ = sign(run, bad, instance, *with_token)
    assert (status, code(out)) == (1, "receipt_type_wrong")
    (folder / "receipt.sigstore.json").write_text("{}")
    assert code(sign(run, folder, instance, *with_token)[1]) == "E_BUNDLE_EXISTS"
    assert (folder / "receipt.sigstore.json").read_text() == "{}"
    for words in (
        (),
        ("--sigstore", "--key", "x"),
        ("--key", "x", "--staging"),
        ("--key", "x", "--identity-token", token),
        ("--sigstore", "--staging", "--trust-config", instance.trust_config),
    ):
        assert code(run("receipt", "sign", folder, *words, "--json")[1]) == "E_USAGE"
    assert instance.requests == []
    # A contradicted verdict, correctly stated, is signed; its status stays what it is.
    told = laid(tmp_path / "told", sealed(contradicted()))
    assert sign(run, told, instance, *with_token)[0] == 0
    assert run("receipt", "verify", told, *NAMED, "--trusted-root", instance.trusted_root)[0] == 1


def test_large_and_strange_files_are_not_read(run: Run, instance: Instance, folder: Path, tmp_path: Path) -> None:
    rooted = ("--trusted-root", instance.trusted_root, "--json")
    large = tmp_path / "large.json"
    with large.open("wb") as file:
        file.truncate((16 << 20) + 1)
    assert code(run("receipt", "verify", folder, *NAMED, *rooted, "--bundle", large)[1]) == "E_TOO_LARGE"
    assert code(run("receipt", "verify", folder, *NAMED, *rooted, "--bundle", tmp_path)[1]) == "E_NOT_REGULAR"
    held = folder / "receipt.sigstore.json"
    held.symlink_to(large)
    assert code(run("receipt", "verify", folder, *NAMED, *rooted)[1]) == "read_fault"
    held.unlink()
    held.write_text(json.dumps(instance.bundle((folder / "receipt.json").read_bytes())))
    assert code(run("receipt", "verify", folder, *NAMED, "--trusted-root", large, "--json")[1]) == "E_TOO_LARGE"
    assert run("receipt", "verify", folder, *NAMED, *rooted)[0] == 0


# Many at once -------------------------------------------------------------------------------------------------------


@pytest.fixture
def fleet(tmp_path: Path, instance: Instance) -> Path:
    """Seventy runs of a workspace, more than two shares of them: most signed by the workflow, six in some other way."""
    honest, bad = sealed(), sealed(contradicted())
    bundle = json.dumps(instance.bundle(honest["receipt.json"]))
    odd = {
        "run_03": {**honest},
        "run_13": {
            **honest,
            "receipt.sigstore.json": json.dumps(instance.bundle(honest["receipt.json"], "m@x.y")).encode(),
        },
        "run_23": {**bad, "receipt.sigstore.json": bundle.encode()},
        "run_33": {**honest, "receipt.sigstore.json": b"{}"},
        "run_43": {**bad, "receipt.sigstore.json": json.dumps(instance.bundle(bad["receipt.json"])).encode()},
        "run_53": {**honest, "receipt.sigstore.json": broken(bundle)},
    }
    runs = tmp_path / "shop" / ".mentu" / "runs"
    for name in (f"run_{number:02}" for number in range(70)):
        laid(runs / name, odd.get(name, {**honest, "receipt.sigstore.json": bundle.encode()}))
    return tmp_path / "shop"


def broken(bundle: str) -> bytes:
    """The bundle with another signature in it, of the right form."""
    value = json.loads(bundle)
    (entry,) = value["dsseEnvelope"]["signatures"]
    entry["sig"] = b64(bytes([*base64.b64decode(entry["sig"])[:-1], 1]))
    return json.dumps(value).encode()


def test_a_fleet_is_asked_for_identities(run: Run, instance: Instance, fleet: Path, tmp_path: Path) -> None:
    rooted = ("--trusted-root", instance.trusted_root)
    status, out, _ = run("receipt", "check", fleet, *NAMED, *rooted, "--json", "--jobs", "1")
    rows = {Path(one["member"]).name: one for one in map(json.loads, out.splitlines())}
    assert (status, len(rows), instance.requests) == (2, 70, [])
    codes = {name: one["error"]["code"] for name, one in rows.items() if "error" in one}
    assert codes == {
        "run_03": "E_BUNDLE_MISSING",
        "run_13": "E_ENVELOPE_UNVERIFIED",
        "run_23": "E_ENVELOPE_OTHER",
        "run_33": "E_BUNDLE_MALFORMED",
        "run_53": "E_ENVELOPE_SIGNATURE",
    }
    assert rows["run_43"]["done"]["decision"] == "contradicted"  # signed as it is
    signed = [one["signatures"] for name, one in rows.items() if name not in codes]
    assert (
        signed
        == [
            {
                "checked": True,
                "verified": [{"name": WORKFLOW, "role": "approver", "issuer": LOGIN}],
                "bad": [],
                "unknown": 0,
            }
        ]
        * 65
    )
    # From two processes and from a list of signers the answer is the same.
    listed = tmp_path / "signers.toml"
    listed.write_text(f'[[approver]]\nidentity = "{WORKFLOW}"\nissuer = "{LOGIN}"\n')
    assert run("receipt", "check", fleet, "--signers", listed, *rooted, "--json", "--jobs", "2")[1] == out
    table = tmp_path / "table.csv"
    status, out, _ = run("receipt", "check", fleet, *NAMED, *rooted, "--csv", table)
    assert table.read_text().count("signed by 1 approver(s)") == 65
    assert table.read_text().count("unsigned") == 1
    assert table.read_text().count("not signed as asked") == 4


def test_the_root_is_parsed_once_a_process(
    run: Run, instance: Instance, fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "parsed"
    parsed = keyless.read_trusted_root

    def counting(path: Path) -> object:
        with log.open("a") as file:
            file.write("one\n")
        return parsed(path)

    monkeypatch.setattr(keyless, "read_trusted_root", counting)
    words = ("receipt", "check", fleet, *NAMED, "--trusted-root", instance.trusted_root)
    assert run(*words, "--jobs", "2")[0] == 2
    assert log.read_text().splitlines() == ["one"]  # before the processes were forked
    again = pickle.loads(pickle.dumps(keyless.Instance(instance.trusted_root)))
    bundle = (fleet / ".mentu/runs/run_00/receipt.sigstore.json").read_bytes()
    assert [again(bundle).name for _ in range(2)] == [WORKFLOW] * 2
    assert len(log.read_text().splitlines()) == 2


def test_an_instance_that_cannot_be_asked_is_no_folders_fault(
    run: Run, instance: Instance, fleet: Path, folder: Path, tmp_path: Path
) -> None:
    status, out, _ = run("receipt", "check", fleet, *NAMED, "--trusted-root", tmp_path / "absent", "--json")
    assert (status, code(out)) == (2, "E_SIGSTORE_ROOT")
    status, out, _ = run("receipt", "check", fleet, *NAMED, "--json")
    assert (status, code(out)) == (3, "E_SIGSTORE_UNREACHABLE")
    # Nobody is asked where no bundle lies.
    status, out, _ = run("receipt", "check", folder, *NAMED, "--json")
    assert (status, code(out)) == (2, "E_BUNDLE_MISSING")
    for words in (("--staging",), ("--certificate-oidc-issuer", LOGIN), ("--threshold", "1"), ("--bundle", "x")):
        status, out, _ = run("receipt", "check", folder, *words, "--json")
        assert (status, code(out)) == (2, "E_USAGE")
    assert run("receipt", "check", fleet, *NAMED, "--threshold", "2", "--trusted-root", instance.trusted_root)[0] == 2


def test_without_the_extra_the_way_to_it_is_told(
    run: Run, instance: Instance, folder: Path, token: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "receipt.sigstore.json").write_text(json.dumps(instance.bundle((folder / "receipt.json").read_bytes())))
    for name in [one for one in sys.modules if one.partition(".")[0] in {"sigstore", "id"}]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sigstore", None)
    monkeypatch.setitem(sys.modules, "id", None)
    rooted = ("--trusted-root", instance.trusted_root)
    for words in (
        ("verify", folder, *NAMED, *rooted),
        ("check", folder, *NAMED, *rooted),
        ("sign", folder, "--sigstore", "--identity-token", token, "--out", folder / "other.json"),
    ):
        status, out, _ = run("receipt", *words, "--json")
        assert (status, code(out)) == (2, "E_USAGE")
        assert "troth[sigstore]" in json.loads(out)["error"]["remedy"]
    assert run("receipt", "verify", folder)[0] == 0  # nothing else needs it
