"""An independent reading of a finding's machine, written from the rules and sharing nothing with the program."""

from __future__ import annotations

import json
from typing import Any

LEGAL = {
    ("prepared", "reviewed"), ("reviewed", "finding_triage"), ("finding_triage", "evidence_verification"),
    ("evidence_verification", "host_response"), ("host_response", "accepted"), ("host_response", "rejected"),
    ("host_response", "resolved"), ("host_response", "contested"), ("host_response", "deadlocked"),
    ("contested", "reviewer_rebuttal"), ("contested", "deadlocked"), ("reviewer_rebuttal", "withdrawn"),
    ("reviewer_rebuttal", "accepted"), ("reviewer_rebuttal", "resolved"), ("reviewer_rebuttal", "rejected"),
    ("reviewer_rebuttal", "contested"), ("reviewer_rebuttal", "deadlocked"), ("deadlocked", "resolved"),
}  # fmt: skip

TRADEOFFS = ("value_or_priority_tradeoff", "policy_or_authority_required")


def outcome(failed: bool, undone: bool, deadlocked: bool) -> str:
    if failed:
        return "failed"
    if undone:
        return "incomplete"
    return "deadlocked" if deadlocked else "converged"


def seen(text: Any) -> bool:
    return isinstance(text, str) and bool("".join(c for c in text if c == "\t" or ord(c) > 31).strip())


def pair(item: dict[str, Any]) -> str:
    return json.dumps([item["anchor"], item.get("external_source")], sort_keys=True)


class Finding:
    """One finding under review; ``take`` says whether an event is legal, and makes it happen if so."""

    def __init__(self, rounds: int, evidence: list[dict[str, Any]]) -> None:
        self.state = "prepared"
        self.bound = rounds
        self.rounds = 0
        self.label = ""
        self.kind = ""
        self.checks: list[dict[str, Any]] = []
        self.pairs = {pair(item) for item in evidence}
        self.open: set[str] = set()
        self.new = False
        self.replied = ""
        self.position = False

    def count(self, result: str) -> bool:
        return any(c["result"] == result and c["method"] != "model_inference" for c in self.checks)

    def take(self, kind: str, to: str, role: str, basis: dict[str, Any]) -> bool:
        if kind == "label":
            good = role == "host" and self.state in ("finding_triage", "evidence_verification", "host_response")
            return good and self.take_label(basis)
        if kind == "verify":
            return self.take_check(basis)
        if kind == "reply":
            return self.take_reply(basis["reply"])
        if not self.may(to, role, basis):
            return False
        if to == "finding_triage":
            return self.take_label(basis) and self.enter(to)
        if to == "reviewer_rebuttal":
            self.rounds += 1
            self.open, self.new, self.replied = set(), False, ""
        if seen(basis.get("host_position")):
            self.position = True
        return self.enter(to)

    def enter(self, to: str) -> bool:
        self.state = to
        return True

    def take_label(self, basis: dict[str, Any]) -> bool:
        if basis["label"] == "judgment" and basis["dispute_kind"] not in TRADEOFFS:
            return False
        self.label, self.kind = basis["label"], basis.get("dispute_kind", "")
        return True

    def take_check(self, basis: dict[str, Any]) -> bool:
        if self.state not in ("evidence_verification", "host_response", "contested", "reviewer_rebuttal"):
            return False
        check = basis["verification"]
        known = {(c["method"], c["detail"]) for c in self.checks}
        if self.state == "reviewer_rebuttal" and (check["method"], check["detail"]) not in known:
            self.new = True
        if check["method"] != "model_inference" and basis.get("of"):
            self.open = set()  # the tests name all of them or none
        self.checks.append(check)
        return True

    def take_reply(self, reply: dict[str, Any]) -> bool:
        if self.state != "reviewer_rebuttal" or self.replied:
            return False
        self.replied = reply["decision"]
        for item in reply["evidence"]:
            if pair(item) not in self.pairs:
                self.new = True
                self.open.add(pair(item))
                self.pairs.add(pair(item))
        return True

    def escalates(self, basis: dict[str, Any]) -> bool:
        held = basis["escalation"]
        if not seen(held["operator_question"]):
            return False
        if held["dispute_kind"] == "unverified_refutation" and self.count("contradicts"):
            return False
        if held["stop_reason"] == "round_limit" and self.rounds < 1:
            return False
        return self.label != "judgment" or held["dispute_kind"] == self.kind

    def settles(self, result: str, basis: dict[str, Any]) -> bool:
        other = "supports" if result == "contradicts" else "contradicts"
        why = seen(basis["host_position"])
        if self.label != "checkable" or not self.count(result) or (self.count(other) and not why):
            return False
        return not (self.state == "reviewer_rebuttal" and self.open)

    def may(self, to: str, role: str, basis: dict[str, Any]) -> bool:
        if (self.state, to) not in LEGAL or (role == "operator") != (self.state == "deadlocked"):
            return False
        if self.state == "deadlocked":
            return seen(basis["ruling"])
        if to == "host_response":
            return bool(self.checks) or seen(basis["unverifiable"])
        if to == "accepted":
            return self.settles("supports", basis)
        if to == "resolved":
            return self.settles("supports", basis) and seen(basis["resolution"])
        if to == "rejected":
            return self.settles("contradicts", basis)
        if to == "contested" and self.state == "host_response":
            one_sided = self.count("contradicts") and not self.count("supports") and self.label == "checkable"
            return seen(basis["host_position"]) and not one_sided
        if to == "contested":
            return self.bound > 1 and self.rounds < self.bound and self.new
        if to == "reviewer_rebuttal":
            return self.rounds < self.bound and basis["spent"]["bytes"] < 16_000_000
        if to == "withdrawn":
            return self.replied == "withdraw"
        if to == "deadlocked":
            return self.escalates(basis) and (self.state != "host_response" or self.label == "judgment")
        return True
