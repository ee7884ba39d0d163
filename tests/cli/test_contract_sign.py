"""``troth contract sign``, and what asks for it: a contract exchanged or not signed as asked is refused before use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.frontdoor import Answer
from support.observing import needs_observer
from support.project import HONEST, Project, project, sealed_project

__all__ = ["project", "sealed_project"]
OWNER, OTHER = "example.com/owner", "example.com/other"


@pytest.fixture
def keys(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Two keys of a user, by their public halves."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return {name: project.troth("key", "new", name).out.strip() for name in (OWNER, OTHER)}


def code(answer: Answer) -> tuple[int, str | None]:
    return answer.exit, answer.json.get("error", {}).get("code")


def reformat(contract: Path) -> None:
    """Write the same record with other white space: to the letter, another contract."""
    contract.write_text(json.dumps(json.loads(contract.read_text()), indent=3))


def test_a_signed_contract_is_told_and_an_exchanged_one_is_refused(project: Project, keys: dict[str, str]) -> None:
    def check(*words: str) -> tuple[int, str | None]:
        return code(project.troth("contract", "check", project.contract, *words, "--json"))

    assert check("--key", keys[OWNER]) == (2, "E_ENVELOPE_MISSING")
    signed = project.troth("contract", "sign", project.contract, "--key", OWNER, "--json")
    assert (signed.exit, signed.json["signatures"]) == (0, 1)
    answer = project.troth("contract", "check", project.contract, "--key", keys[OWNER], "--json")
    assert (answer.exit, [one["name"] for one in answer.json["signatures"]["verified"]]) == (0, [OWNER])
    assert check("--key", keys[OTHER]) == (3, "E_ENVELOPE_UNVERIFIED")
    assert check("--key", keys[OWNER], "--key", keys[OTHER], "--threshold", "2") == (3, "E_ENVELOPE_THRESHOLD")
    assert project.troth("contract", "sign", project.contract, "--key", OTHER).exit == 0
    assert check("--key", keys[OWNER], "--key", keys[OTHER], "--threshold", "2") == (0, None)
    assert check("--threshold", "1") == (2, "E_USAGE")
    assert check() == (0, None)
    envelope = project.contract / "statement.dsse.json"
    whole = envelope.read_bytes()
    envelope.write_bytes(whole.replace(b"in-toto+json", b"in-toto+jso"))
    assert check("--key", keys[OWNER]) == (1, "E_ENVELOPE_TYPE")
    envelope.write_bytes(b"{")
    assert check("--key", keys[OWNER]) == (2, "E_ENVELOPE_MALFORMED")
    envelope.write_bytes(whole)
    # The seal names tools and limits: one that was changed is as bad as another contract.
    seal = project.contract / "seal.json"
    sealed = seal.read_bytes()
    seal.write_text(json.dumps({**json.loads(sealed), "tools": []}))
    assert check("--key", keys[OWNER]) == (1, "E_ENVELOPE_OTHER")
    seal.write_bytes(sealed)
    assert check("--key", keys[OWNER]) == (0, None)
    (project.contract / "seal.dsse.json").rename(project.contract / "away")
    assert check("--key", keys[OWNER]) == (2, "E_ENVELOPE_MISSING")
    # Nor do both of them go together: without a seal the tools and limits would be others.
    seal.unlink()
    assert check("--key", keys[OWNER]) == (2, "E_SEAL")
    assert code(project.troth("contract", "sign", project.contract, "--key", OWNER, "--json")) == (2, "E_SEAL")
    run = project.run(None, HONEST, "--contract-key", keys[OWNER])
    assert (run.exit, run.json["error"]["code"]) == (2, "E_SEAL")
    seal.write_bytes(sealed)
    (project.contract / "away").rename(project.contract / "seal.dsse.json")
    assert check("--key", keys[OWNER]) == (0, None)
    reformat(project.contract / "contract.json")
    assert check("--key", keys[OWNER]) == (1, "statement_subject_unbound")
    # Nor is a Statement signed that is not about the contract beside it.
    assert code(project.troth("contract", "sign", project.contract, "--key", OWNER, "--json")) == (
        1,
        "statement_subject_unbound",
    )


def test_a_seal_of_another_contract_is_not_signed(project: Project, keys: dict[str, str]) -> None:
    """Signed here, it could be laid beside the contract that it names, whose Statement the same key may have signed."""
    seal = project.contract / "seal.json"
    sealed = seal.read_bytes()
    sign = ("contract", "sign", project.contract, "--key", OWNER, "--json")
    for other in ({**json.loads(sealed), "contract_sha256": "0" * 64, "tools": []}, {}):
        seal.write_text(json.dumps(other))
        assert code(project.troth(*sign)) == (1, "E_SEAL_OTHER")
        assert not list(project.contract.glob("*.dsse.json")), "nothing is signed"
    seal.write_bytes(sealed)
    assert project.troth(*sign).exit == 0


@needs_observer
def test_a_run_takes_no_contract_that_is_not_signed_as_asked(project: Project, keys: dict[str, str]) -> None:
    def run(*words: str) -> Answer:
        return project.run(None, HONEST, *words)

    rows = len(project.rows)
    assert code(run("--contract-key", keys[OWNER])) == (2, "E_ENVELOPE_MISSING")
    assert project.troth("contract", "sign", project.contract, "--key", OWNER).exit == 0
    assert code(run("--contract-key", keys[OTHER])) == (2, "E_ENVELOPE_UNVERIFIED")
    assert code(run("--contract-key", keys[OWNER], "--contract-threshold", "2")) == (2, "E_USAGE")
    assert code(run("--contract-threshold", "1")) == (2, "E_USAGE")
    assert len(project.rows) == rows, "refused before anything is written"
    honest = run("--contract-key", keys[OWNER])
    assert honest.exit == 0, honest
    kept = Path(honest.json["folder"]) / "statement.dsse.json"
    assert kept.read_bytes() == (project.contract / "statement.dsse.json").read_bytes()
    reformat(project.contract / "contract.json")
    assert code(run("--contract-key", keys[OWNER])) == (2, "statement_subject_unbound")
