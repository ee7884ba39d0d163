"""``troth contract sign``, and what asks for it: a contract exchanged or not signed as asked is refused before use."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from support.frontdoor import Answer
from support.observing import needs_observer
from support.project import HONEST, Project, project, sealed_project
from troth.airlock.sealings import latest_known, ledger_beside, outdated, record_signed, sealing_of
from troth.ledger.operations import Candidate
from troth.stores.jsonl import JsonlStore

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

    assert code(run("--contract-key", keys[OWNER])) == (2, "E_ENVELOPE_MISSING")
    assert project.troth("contract", "sign", project.contract, "--key", OWNER).exit == 0
    rows = len(project.rows)
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


class Sealings:
    """A contract that was sealed twice with the same bytes, with other limits, and signed both times."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.files = [project.contract / name for name in ("seal.json", "seal.dsse.json")]
        later = json.loads(self.files[0].read_bytes())
        earlier = {**later, "sealed": "2020-01-01T00:00:00Z", "limits": {**later["limits"], "seconds": 1}}
        self.rows: list[str] = []
        self.earlier = self._signed(json.dumps(earlier).encode())
        self.later = self._signed(json.dumps(later).encode())

    def _signed(self, seal: bytes) -> list[bytes]:
        self.files[1].unlink(missing_ok=True)
        self.files[0].write_bytes(seal)
        signed = self.project.troth("contract", "sign", self.project.contract, "--key", OWNER, "--json")
        self.rows.append(signed.json["row"])
        return [file.read_bytes() for file in self.files]

    def put(self, held: list[bytes]) -> None:
        for file, data in zip(self.files, held, strict=True):
            file.write_bytes(data)


def test_an_older_sealing_is_not_put_back(project: Project, keys: dict[str, str]) -> None:
    sealings = Sealings(project)
    contract, rows = project.contract, project.rows
    assert [row["id"] for row in rows if row["payload"].get("kind") == "sealing"] == sealings.rows
    # Once is enough, whoever signs as well.
    again = project.troth("contract", "sign", contract, "--key", OTHER, "--as", "human:other", "--json")
    assert (again.json["row"], again.json["signatures"], project.rows) == (sealings.rows[1], 2, rows)
    sealings.later[1] = sealings.files[1].read_bytes()

    def check() -> tuple[int, str | None]:
        answer = project.troth("contract", "check", contract, "--key", keys[OWNER], "--json")
        return answer.exit, (answer.json["later_sealing"] or {}).get("row")

    assert check() == (0, None)
    assert project.troth("contract", "show", contract, "--json").json["later_sealing"] is None
    sealings.put(sealings.earlier)
    assert check() == (1, sealings.rows[1])
    shown = project.troth("contract", "show", contract)
    digests = [hashlib.sha256(held[0]).hexdigest() for held in (sealings.earlier, sealings.later)]
    assert f"sealed      2020-01-01T00:00:00Z, digest {digests[0]}" in shown.out
    assert f"digest {digests[1]} (row {sealings.rows[1]})" in shown.out
    refused = project.run(None, HONEST, "--contract-key", keys[OWNER])
    assert code(refused) == (2, "E_SEAL_OLDER")
    assert refused.json["error"]["detail"]["seal_sha256"] == digests[1]
    # Nor is it taken away.
    sealings.files[0].unlink()
    assert code(project.run(None, HONEST)) == (2, "E_SEAL_OLDER")
    assert project.rows == rows, "refused before anything is written"
    sealings.put(sealings.later)
    assert check() == (0, None)


@needs_observer
def test_a_run_that_ended_tells_which_sealing_it_was_made_with(project: Project) -> None:
    seal = project.contract / "seal.json"
    later = seal.read_bytes()
    assert project.run(None, HONEST).exit == 0
    (evidence,) = (row for row in project.rows if "receipt" in row["payload"].get("meta", {}))
    assert evidence["payload"]["meta"]["seal_sha256"] == hashlib.sha256(later).hexdigest()
    seal.write_text(json.dumps({**json.loads(later), "sealed": "2020-01-01T00:00:00Z", "tools": []}))
    assert code(project.run(None, HONEST)) == (2, "E_SEAL_OLDER")


def test_what_is_made_up_outdates_nothing(project: Project) -> None:
    """A date to come, a row of somebody else's in a run's place, members that are no digests."""
    contract, seal = ((project.contract / name).read_bytes() for name in ("contract.json", "seal.json"))
    known = sealing_of(contract, seal)
    assert known is not None
    store = JsonlStore.open(project.root)
    honest = {**known.as_meta(), "seal_sha256": "1" * 64}
    for number, (key, meta) in enumerate(
        [
            ("sealing", {**honest, "sealed": "2999-01-01T00:00:00Z"}),
            ("sealing", {**honest, "seal_sha256": "x"}),
            ("sealing", {**honest, "sealed": 1}),
            ("sealing", {**honest, "contract_sha256": "2" * 64}),
            ("sealing", None),
            ("run", honest),
        ]
    ):
        name = f"{key}:{known.contract_sha256}:{number}" if key == "sealing" else f"run:run_{number:08}"
        payload = {"body": "x", **({"meta": meta} if meta is not None else {})}
        store.append(Candidate("capture", "agent:other", payload, source_key=name))
    assert latest_known(store.read(), known.contract_sha256) is None
    assert outdated(store.read(), contract, None) is None
    record_signed(store, "human:owner", known)
    assert latest_known(store.read(), known.contract_sha256) == replace(known, row=store.read().rows[-1].id)
    assert outdated(store.read(), contract, seal) is None
    for other in (None, b"{", b"[]", json.dumps({**json.loads(seal), "sealed": 1}).encode()):
        assert outdated(store.read(), contract, other) is not None
    assert ledger_beside(project.contract / "contract.json") is not None


def test_where_no_ledger_is_nothing_is_known(project: Project, keys: dict[str, str], tmp_path: Path) -> None:
    apart = tmp_path / "apart"
    shutil.copytree(project.contract, apart)
    signed = project.troth("contract", "sign", apart, "--key", OWNER, "--json")
    assert (signed.exit, signed.json["row"]) == (0, None)
    assert project.troth("contract", "show", apart, "--json").json["later_sealing"] is None
    # What the ledger does not take is told; the signature stands.
    ledger = project.root / ".mentu" / "ledger.jsonl"
    ledger.write_text("{}\n")
    signed = project.troth("contract", "sign", project.contract, "--key", OWNER, "--json")
    assert (signed.exit, signed.json["row"], "the ledger does not know of it" in signed.err) == (0, None, True)
