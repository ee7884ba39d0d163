"""Done receipts as a predicate of a checklist: each way to show another thing than the work, beside the honest one."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.airlock import failing, run_folder
from troth.airlock import deals
from troth.airlock.deals import ReceiptJudge, find_judgeable, judged
from troth.airlock.pinned import examined
from troth.core.errors import Refused
from troth.deals.answer import answer
from troth.deals.checker import Judged
from troth.deals.run import replay
from troth.deals.transcript import entries, split_lines
from troth.deals.writing import Scribe, offer_body

RUN = "run_0badcafe"
WORK = "cmt_0000000a"


def contract_of(folder: Path) -> str:
    return hashlib.sha256((folder / "contract.json").read_bytes()).hexdigest()


class House:
    """A folder of runs, one of them honest, and a deal about its work up to the disclosure."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.runs = root / ".mentu" / "runs"
        self.digest = run_folder(root, RUN, WORK)
        self.item = {
            "id": "work",
            "predicate": "done_receipt",
            "path": "artifacts.receipt",
            "claim_id": WORK,
            "contract_sha256": contract_of(self.runs / RUN),
        }
        self.artifact: Any = {"run": RUN, "receipt_sha256": self.digest}
        self.scribe = Scribe()

    def disclose(self, offer_id: str = "off_1", agent: str = "agent:worker") -> None:
        offer = offer_body(offer_id, checklist=[self.item]) | {"counterparties": {"C": "c", "A": agent}}
        self.scribe.say(0, "C", "Offer", offer)
        self.scribe.say(0, "A", "Accept", {"offer_id": offer_id})
        hold = {"offer_id": offer_id, "amount": 10, "asset": "sim_points", "state": "locked"}
        self.scribe.say(0, "C", "EscrowHold", hold)
        self.scribe.say(
            0, "A", "Disclosure", {"offer_id": offer_id, "artifacts": {"receipt": self.artifact}, "claims": []}
        )

    def judged(self, offer_id: str = "off_1", receipts: Path | None = None) -> Judged:
        run = self.scribe.run
        return judged(run, find_judgeable(run, offer_id), receipts or self.runs)

    def verdict(self) -> Judged:
        self.disclose()
        return self.judged()


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_a_receipt_of_the_work_passes(house: House) -> None:
    assert house.verdict() == Judged("pass", (("work", True),))


def edited(name: str, change: Callable[[Any], Any]) -> Callable[[House], Any]:
    def edit(house: House) -> None:
        path = house.runs / RUN / name
        value = json.loads(path.read_text())
        change(value)
        path.write_text(json.dumps(value))

    return edit


def others(house: House) -> None:
    """A good receipt of a run for somebody else's commitment, shown as one's own."""
    house.artifact = {"run": "run_11111111", "receipt_sha256": run_folder(house.root, "run_11111111", "cmt_0000000b")}


def moved(house: House) -> None:
    """Another's records under the name of one's own run."""
    others(house)
    shutil.rmtree(house.runs / RUN)
    (house.runs / "run_11111111").rename(house.runs / RUN)
    house.artifact["run"] = RUN


def other_work(house: House) -> None:
    """A good receipt for the right commitment, graded by a contract that asks for something else."""

    def easier(draft: Any) -> None:
        draft.values["contract"]["task"] = "do what is easy"

    digest = run_folder(house.root, "run_22222222", WORK, edit=easier)
    house.artifact = {"run": "run_22222222", "receipt_sha256": digest}


def contradicted(house: House) -> None:
    digest = run_folder(house.root, "run_33333333", WORK, edit=failing)
    house.artifact = {"run": "run_33333333", "receipt_sha256": digest}


def by_strangers(house: House) -> None:
    digest = run_folder(house.root, "run_44444444", WORK, producers=("agent", "agent-too"))
    house.artifact = {"run": "run_44444444", "receipt_sha256": digest}


def shows(value: Any) -> Callable[[House], Any]:
    def show(house: House) -> None:
        house.artifact = value(house) if callable(value) else value

    return show


FAILS: dict[str, tuple[Callable[[House], Any], str]] = {
    "anothers receipt": (others, "about cmt_0000000b, not about the commitment that the checklist names"),
    "anothers records under my run": (moved, "about cmt_0000000b"),
    "other work": (other_work, "by another contract than the checklist names"),
    "contradicted": (contradicted, "contradicted (acceptance_failed_in_verifier)"),
    "records by strangers": (by_strangers, "does not verify"),
    "edited record": (
        edited("grade.json", lambda value: value["results"][0].update(exit=1)),
        "receipt_record_digest_mismatch",
    ),
    "edited receipt": (edited("receipt.json", lambda value: value.update(x=1)), "its digest differs"),
    "record gone": (lambda house: (house.runs / RUN / "tree.json").unlink(), "receipt_record_missing"),
    "another digest": (shows(lambda house: {"run": RUN, "receipt_sha256": "0" * 64}), "its digest differs"),
    "no receipt named": (shows("it is done, trust me"), "names no done receipt"),
    "a word more": (shows(lambda house: house.artifact | {"folder": "/elsewhere"}), "names no done receipt"),
    "path escape": (shows(lambda house: house.artifact | {"run": "../runs/" + RUN}), "names no done receipt"),
    "absolute path": (shows(lambda house: house.artifact | {"run": str(house.runs / RUN)}), "names no done receipt"),
    "run is a number": (shows(lambda house: house.artifact | {"run": 7}), "names no done receipt"),
    "null bytes": (shows(lambda house: house.artifact | {"run": RUN + "\0"}), "names no done receipt"),
}


@pytest.mark.parametrize("name", FAILS)
def test_what_shows_another_thing_fails_with_the_reason(house: House, name: str) -> None:
    cheat, why = FAILS[name]
    cheat(house)
    found = house.verdict()
    assert found.result == "fail"
    assert why in found.notes()


def linked(house: House) -> None:
    (house.runs / RUN).rename(house.root / "moved")
    (house.runs / RUN).symlink_to(house.root / "moved")


def linked_receipt(house: House) -> None:
    path = house.runs / RUN / "receipt.json"
    path.rename(path.with_name("r"))
    path.symlink_to("r")


CANNOT_TELL: dict[str, tuple[Callable[[House], Any], str]] = {
    "missing folder": (lambda house: shutil.rmtree(house.runs / RUN), "is not there"),
    "no runs at all": (lambda house: shutil.rmtree(house.runs), "is not there"),
    "folder is a link": (linked, "is a symbolic link"),
    "receipt is a link": (linked_receipt, "cannot be read"),
    "receipt gone": (lambda house: (house.runs / RUN / "receipt.json").unlink(), "holds no receipt"),
    "which commitment is not said": (lambda house: house.item.pop("claim_id"), "which work"),
    "which contract is not said": (lambda house: house.item.pop("contract_sha256"), "which work"),
    "the contract is no digest": (lambda house: house.item.update(contract_sha256="x"), "which work"),
    "no path": (lambda house: house.item.pop("path"), "do not fit"),
}


@pytest.mark.parametrize("name", CANNOT_TELL)
def test_what_cannot_be_evaluated_is_inconclusive_with_the_reason(house: House, name: str) -> None:
    spoil, why = CANNOT_TELL[name]
    spoil(house)
    found = house.verdict()
    assert found.result == "inconclusive"
    assert why in found.notes()


def test_no_artifact_at_all_fails(house: House) -> None:
    house.item["path"] = "artifacts.other"
    assert house.verdict().result == "fail"


def test_the_agents_own_records_are_not_believed(house: House) -> None:
    house.disclose(agent="troth-observer")
    assert house.judged().result == "fail"


def test_the_same_receipt_does_not_pass_twice(house: House) -> None:
    house.disclose()
    found = house.judged()
    house.scribe.say(
        0, "K", "Verdict", {"offer_id": "off_1", "result": "pass", "notes": "", "checklist_results": found.as_json()}
    )
    house.disclose("off_2")
    again = house.judged("off_2")
    assert (again.result, "passed in off_1 already" in again.notes()) == ("fail", True)
    digest = run_folder(house.root, "run_55555555", WORK)
    house.artifact = {"run": "run_55555555", "receipt_sha256": digest}
    house.disclose("off_3")
    assert house.judged("off_3").result == "pass"


def test_a_receipt_that_failed_elsewhere_is_not_spent(house: House) -> None:
    house.disclose()
    house.scribe.say(0, "K", "Verdict", {"offer_id": "off_1", "result": "fail", "notes": "", "checklist_results": []})
    house.disclose("off_2")
    assert house.judged("off_2").result == "pass"


def test_one_verdict_verifies_so_many_receipts_and_each_once(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deals, "MAX_RECEIPTS", 2)
    calls: list[str] = []

    def counted(folder: Path, run: str, *rest: Any, **named: Any) -> Any:
        calls.append(named["claim_id"])
        return examined(folder, run, *rest, **named)

    monkeypatch.setattr(deals, "examined", counted)
    helper = ReceiptJudge(house.runs, "agent:worker", {})
    assert [helper(house.artifact, house.item).ok for _ in range(3)] == [True] * 3
    assert helper(house.artifact, house.item | {"claim_id": "cmt_0000000b"}).ok is False
    with pytest.raises(ValueError, match="more than 2 receipts"):
        helper(house.artifact, house.item | {"claim_id": "cmt_0000000c"})
    assert helper(house.artifact, house.item).ok is True
    assert calls == [WORK, "cmt_0000000b"]


def test_without_a_folder_of_runs_it_is_inconclusive(house: House) -> None:
    house.disclose()
    run = house.scribe.run
    found = judged(run, find_judgeable(run, None), None)
    assert (found.result, found.notes()) == ("inconclusive", "work: nobody who reads done receipts is at hand")


def test_only_a_deal_that_waits_is_judged(house: House) -> None:
    run = house.scribe.run
    with pytest.raises(Refused, match="0 deals") as none:
        find_judgeable(run, None)
    assert none.value.code == "E_DEAL_UNKNOWN"
    house.disclose()
    house.disclose("off_2")
    with pytest.raises(Refused, match="2 deals"):
        find_judgeable(run, None)
    with pytest.raises(Refused, match="no deal off_9"):
        find_judgeable(run, "off_9")
    house.scribe.say(0, "A", "Accept", {"offer_id": "off_2"})
    assert find_judgeable(run, None).offer_id == "off_1"
    with pytest.raises(Refused, match="waits for no verdict") as closed:
        find_judgeable(run, "off_2")
    assert closed.value.code == "E_DEAL_STATE"


def test_a_scribe_goes_on_where_others_stopped(house: House) -> None:
    house.disclose()
    run = replay(entries(split_lines(house.scribe.transcript())))
    scribe = Scribe.after(run)
    said = scribe.say(1, "K", "Verdict", {"offer_id": "off_1", "result": "pass", "notes": "", "checklist_results": []})
    assert said["msg_id"] == "msg_5"
    whole = replay(entries(split_lines(house.scribe.transcript() + scribe.transcript())))
    assert answer(whole) == answer(run)
    assert whole.deals["off_1"].state == "Settling"
