"""``troth receipt verify`` and ``show``: tell a person what a receipt comes to and why, or just what it says."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from troth.cli.answer import coloured, printable, say
from troth.cli.receipt_common import EXITS, checks_option, emit, read_pin_file, word
from troth.cli.receipt_signers import (
    SignatureWords,
    believed,
    signature_options,
    signature_report,
    tell_signatures,
)
from troth.core.errors import Place, Refused

if TYPE_CHECKING:
    from troth.receipts.member import Member
    from troth.receipts.verify import Examination

_F = TypeVar("_F", bound=Callable[..., Any])

# --- verify ---

SELF_PINNED: Final = (
    "self-pinned: by the case and policy that lie in the folder itself. Whoever can write the records can write those "
    "too, so this shows that the folder is consistent, not whose word it is. --policy or --pin judges by your own."
)


def policy_options(command: _F) -> _F:
    """Add ``--policy`` and ``--pin``: whose policy a receipt is judged by."""
    command = click.option(
        "--pin",
        "pin_file",
        type=click.Path(),
        metavar="FILE",
        help="Judge by your own pins, a TOML file: observed_party, [producers] observation, tree and grade; optionally "
        "authority, claim_id, invocation_id, [scope], [witness_scope] and [sha256] of any record.",
    )(command)
    return click.option(
        "--policy",
        "policy_folder",
        type=click.Path(),
        metavar="DIR",
        help="Judge by your own cases and policies: a folder with protected-paths, acceptance and tool-claims, each "
        ".case.json and .policy.json. They replace the member's, also where one is missing.",
    )(command)


@click.command("verify")
@click.argument("folder", type=click.Path())
@policy_options
@signature_options
@checks_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def verify_cmd(  # noqa: PLR0917 - click calls it by name
    folder: str,
    policy_folder: str | None,
    pin_file: str | None,
    signatures: SignatureWords,
    names: tuple[str, ...],
    as_json: bool,
) -> int:
    """Tell what a member's receipt comes to, why, and by whose policy.

    \b
    A pin file names whom you believe:
      observed_party = "agent:worker"
      [producers]
      observation = "urn:example:observer"
      tree = "urn:example:observer"
      grade = "urn:example:verifier"
      [sha256]
      contract = "<64 hexadecimal digits>"

    A producer's name is no signature: pin digests, or ask for a signature with --key or --certificate-identity, where
    the producer is not trusted to have been the one who wrote the folder. What is not signed by enough of them, or is
    not a Statement's, is refused before its receipt is read.

    \b
    A list of signers names identities and who vouches for them:
      [[approver]]
      identity = "auditor@example.com"
      issuer = "https://login.example.com"

    Exit status: 0 valid and supported, 1 invalid or contradicted, 2 refused, 3 not established.

    Example: troth receipt verify runs/last --pin pins.toml
    """
    from troth.receipts.verify import check_names, examine, standing
    from troth.stores.members import FolderMember

    # What was signed is settled before anything of it is read.
    own, signers = believed(FolderMember(folder), signatures)
    member, judge = judged_by(own, policy_folder, pin_file)
    found = examine(member, check_names(names) if names else None)
    report = _report(folder, found, judge)
    report["signatures"] = signature_report(own, signers)
    if as_json:
        emit(report)
    else:
        _tell(report)
    return EXITS[standing(found.result)]


def judged_by(own: Member, policy_folder: str | None, pin_file: str | None) -> tuple[Member, dict[str, Any]]:
    """Return the member as the reader's policy lets it be seen, and whose policy that is.

    Raises:
        Refused: ``E_USAGE`` for two policies; a code of the pins or the folder named.
    """
    from troth.receipts.member import MappingMember, OverlaidMember
    from troth.receipts.pinning import consumer_files
    from troth.receipts.policy import POLICY_FILES
    from troth.stores.members import FolderMember

    if policy_folder is not None and pin_file is not None:
        raise Refused("E_USAGE", "--policy and --pin were both given", remedy="Name one of them.")
    replaced = frozenset(POLICY_FILES)
    if policy_folder is not None:
        member = OverlaidMember(own, FolderMember(policy_folder), replaced)
        return member, {"judged_by": "policy", "source": policy_folder, "told": "by your own cases and policies."}
    if pin_file is not None:
        pins = read_pin_file(pin_file)
        files = consumer_files(own, pins)
        open_points = pins.open_points()
        told = "by your own pins."
        if open_points:
            told += f" Not pinned, and taken from the folder: {', '.join(open_points)}."
        return OverlaidMember(own, MappingMember(files), replaced), {
            "judged_by": "pins",
            "source": pin_file,
            "not_pinned": open_points,
            "told": told,
        }
    return own, {"judged_by": "self-pinned", "source": None, "told": SELF_PINNED}


def _report(folder: str, found: Examination, judged_by: dict[str, Any]) -> dict[str, Any]:
    from troth.receipts import explain
    from troth.receipts.reasons import sentence

    report: dict[str, Any] = {"member": folder, "result": found.result, "policy": judged_by}
    if judged_by["judged_by"] == "self-pinned" and found.door == "contract":
        report["policy"] = {"judged_by": "none", "source": None, "told": "a contract Statement needs no policy."}
    authorities = explain.authorities(found)
    if authorities:
        report["policy"] = {**report["policy"], "authorities": authorities}
    if found.code is not None:
        report["fault"] = {"code": found.code, "told": sentence(found.code), "detail": found.detail}
        if found.fault is not None and found.fault.place is not None:
            report["fault"]["place"] = found.fault.place.as_json()
        if found.fault is not None and found.fault.detail is not None:
            report["fault"]["detail"] = found.fault.detail
    report["checks"] = explain.stories(found)
    if found.done is not None:
        report["done"] = {**found.done.as_json(), "told": sentence(found.done.reason)}
    report["records"] = explain.records_of(found)
    report["external_effects"] = explain.effects_of(found)
    if found.receipt is not None:
        report["verifier"] = found.receipt["predicate"]["verifier"]["id"]
    return report


def _tell(report: Mapping[str, Any]) -> None:
    from troth.receipts.telling import told_fact

    result = report["result"]
    say(f"{'member':<10}{printable(report['member'])}")
    if "refused" in result:
        say(f"{'result':<10}{word('refused')}: no verdict was reached")
    for name in ("receipt", "contract"):
        if name in result:
            say(f"{name:<10}{word(result[name]['verdict'])}")
    if "receipt" not in result and "checks" in result:
        say(f"{'receipt':<10}none; the checks were run all the same")
    if "fault" in report:
        _tell_fault(report["fault"])
    if "done" in report:
        done = report["done"]
        say(f"{'done':<10}{word(done['decision'])}: {done['told']} {_basis(done)}")
    tell_signatures(report["signatures"])
    say(f"{'judged':<10}{printable(report['policy']['told'])}")
    if "authorities" in report["policy"]:
        say(f"{'':<10}authority: {printable(', '.join(report['policy']['authorities']))}")
    if "verifier" in report:
        say(f"{'written by':<10} {printable(report['verifier'])}, says the receipt")
    for story in report["checks"]:
        say()
        say(f"{story['claim_type']}: {word(story['decision'])} {_basis(story)}")
        say(f"  {story['told']} [{story['reason']}]")
        for fact in story["facts"]:
            for line in told_fact(fact):
                say(f"  - {line}")
        if "facts_left_out" in story:
            say(f"  - and {story['facts_left_out']} more")
    say()
    say("records")
    for kind, held in report["records"].items():
        value = held.get("sha256") or printable(held["fault"])
        say(f"  {kind:<15}{value}  {held['file']}")
    effects = report["external_effects"]
    say("effects outside the workspace" + ("" if effects else ": none reported"))
    for effect in effects:
        where = printable(" -> ".join(effect["paths"]) if "paths" in effect else effect["address"])
        grader = coloured("  reaches the grader", "red") if effect["reaches_grader"] else ""
        say(f"  {effect['time']}  {printable(effect['type'])}  {where}{grader}")


def _tell_fault(fault: Mapping[str, Any]) -> None:
    place = fault.get("place", {})
    where = " at ".join(str(place[name]) for name in ("file", "path") if place.get(name) not in (None, "$"))
    detail = printable(f": {fault['detail']}") if fault.get("detail") else ""
    say(f"{'':<10}{fault['told']} [{fault['code']}]{detail}")
    if where:
        say(f"{'':<10}in {printable(where)}")


def _basis(answer: Mapping[str, Any]) -> str:
    if "witness_scope" not in answer:
        return ""
    return f"(independent, {answer['witness_scope']})"


# --- show ---


@click.command("show")
@click.argument("folder", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print the Statement as one JSON object.")
def show_cmd(folder: str, as_json: bool) -> int:
    """Print what the receipt in a folder says, unverified.

    Example: troth receipt show runs/last
    """
    from troth.receipts.member import RECEIPT_FILE
    from troth.receipts.verify import read_receipt
    from troth.stores.members import FolderMember

    data = FolderMember(folder).read(RECEIPT_FILE)
    if data is None:
        raise Refused(
            "E_RECEIPT_MISSING",
            "the folder holds no receipt.json",
            remedy="`troth receipt check` runs the checks without one.",
            place=Place(file=folder),
        )
    statement = read_receipt(data)
    if as_json:
        emit(statement)
        return 0
    predicate = statement["predicate"]
    say("As the receipt says; `troth receipt verify` tells whether it is so.")
    rows = [
        ("claim", predicate["claim_id"]),
        ("run", predicate["invocation_id"]),
        ("tree", f"{statement['subject'][0]['digest']['sha256']}  ({statement['subject'][0]['name']})"),
        ("verdict", _brief(predicate["verdict"])),
        ("verifier", predicate["verifier"]["id"]),
    ]
    checks = predicate["checks"]
    rows += [("check", _brief(check)) for check in (checks if isinstance(checks, list) else [checks])]
    records = predicate["records"]
    for kind, entry in records.items() if isinstance(records, dict) else [("?", records)]:
        digest = entry.get("sha256") if isinstance(entry, dict) else entry
        rows.append(("record", f"{kind:<15}{digest}"))
    effects = predicate["external_effects"]
    rows += [("effect", _brief(effect)) for effect in (effects if isinstance(effects, list) else [effects])]
    rows += [
        (name, json.dumps(predicate[name], ensure_ascii=False))
        for name in ("policy", "stop_decision", "verifier_isolation")
        if name in predicate
    ]
    for label, text in rows:
        say(f"{label:<20}{printable(str(text))}")
    return 0


def _brief(value: Any) -> str:
    """Return the words of an object, whatever it holds."""
    if not isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    known = [value[name] for name in ("claim_type", "decision", "reason", "vantage", "witness_scope") if name in value]
    return "  ".join(str(word) for word in known) or json.dumps(value, ensure_ascii=False)
