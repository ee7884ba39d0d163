"""``troth genesis``: the workspace's constitution: written to begin with, shown, checked, explained."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from troth.cli.answer import coloured, emit_json, note, printable, say
from troth.cli.options import acting, actor_option, json_option, open_ledger, reading_options, store_option
from troth.core.errors import Place, Refused, TrothError
from troth.core.instants import format_instant, system_clock

if TYPE_CHECKING:
    from troth.ledger.genesis import Genesis, Tier
    from troth.ledger.genesis_diff import Change
    from troth.ledger.genesis_explain import Explanation
    from troth.ledger.yamltree import Finding
    from troth.stores.protocol import LedgerStore

_NONE = "There is no genesis key: everyone may do everything, and submissions wait for an approval."


@click.group("genesis", epilog="Example: troth genesis explain agent:worker close --tag security")
def genesis_cmd() -> None:
    """Write, check and explain the workspace's constitution: .mentu/genesis.key."""


def template(name: str, owner: str, created: str) -> str:
    """Return the key that ``genesis init`` writes: commented, and valid as it stands."""
    text = Path(__file__).with_name("genesis_template.yaml").read_text(encoding="utf-8")
    # A JSON string of printable characters is a YAML string with the same meaning.
    return text.format(
        **{
            label: json.dumps(value, ensure_ascii=False)
            for label, value in (("name", name), ("owner", owner), ("created", created))
        }
    )


def _own_key(store: LedgerStore) -> Path:
    """Return where the workspace's key lies.

    Raises:
        Refused: ``E_NO_WORKSPACE`` for a ledger whose key is no file, or that can have none.
    """
    from troth.stores.jsonl import JsonlStore

    if not isinstance(store, JsonlStore):
        raise Refused(
            "E_NO_WORKSPACE",
            "the genesis key of this ledger is in its database",
            remedy="Name a FILE; `troth store genesis FILE` puts it in force.",
        )
    if store.key_file is None:
        raise Refused(
            "E_NO_WORKSPACE", "this ledger lies in no workspace, so it can have no genesis key", remedy="Name a FILE."
        )
    return store.key_file


@genesis_cmd.command(
    "init", short_help="Write a commented key to begin with.", epilog="Example: troth genesis init --as human:reviewer"
)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@actor_option
@store_option
@json_option
def init_cmd(file: Path | None, actor: str | None, store: str | None, as_json: bool) -> int:
    """Write a commented key that is valid as it stands, to FILE or as the workspace's own; overwrite nothing.

    Its owner is whoever acts. As the workspace's own it is in force from the next row on.
    """
    from troth.ledger.genesis import parse_genesis
    from troth.stores.durable import create_whole, os_fault

    ledger = open_ledger(store)
    where = file if file is not None else _own_key(ledger)
    text = template(ledger.workspace or "workspace", acting(actor, ledger), format_instant(system_clock())[:10])
    data = text.encode("utf-8", "surrogateescape")
    parse_genesis(data)  # a name or an actor of an odd form would spoil it
    try:
        created = create_whole(where, data)
    except OSError as fault:
        raise os_fault("E_UNREADABLE", fault, where, "the key cannot be written") from None
    if not created:
        raise Refused(
            "E_GENESIS_EXISTS",
            "a genesis key stands there already",
            place=Place(file=str(where)),
            remedy="Edit it, or move it away first.",
        )
    if as_json:
        emit_json({"file": str(where), "created": True})
        return 0
    say(f"Created {printable(str(where))}. Read it, change it, then: troth genesis validate")
    return 0


# show ----------------------------------------------------------------------------------------------------------


@genesis_cmd.command("show", short_help="Show the key in force.", epilog="Example: troth genesis show --json")
@reading_options
def show_cmd(store: str | None, as_json: bool) -> int:
    """Show the key in force, and whether the ledger has recorded it."""
    ledger = open_ledger(store)
    ruling = ledger.ruling()
    if ruling.error is not None:
        return _tell_invalid(ruling.error, as_json)
    genesis = ruling.genesis
    last = ledger.read().state.genesis
    recorded = last.sha256 if last is not None else None
    if as_json:
        answer: dict[str, Any] = {"ok": True, "key": genesis_json(genesis) if genesis is not None else None}
        answer["recorded"] = recorded
        answer["warnings"] = [warning.as_json() for warning in ruling.warnings()]
        emit_json(answer)
        return 0
    for warning in ruling.warnings():
        note(f"warning: {warning.warning}: {printable(warning.message, 400)}")
    if genesis is None:
        say(_NONE)
        if recorded is not None:
            say("The ledger recorded one; the next row is preceded by a record of its removal.")
        return 0
    for line in _shown(genesis):
        say(line)
    if recorded == genesis.sha256:
        say("The ledger has recorded this key.")
    else:
        say("The ledger has not recorded this key yet; the next row is preceded by its record.")
    return 0


def genesis_json(genesis: Genesis) -> dict[str, Any]:
    """Return a key as ``genesis show --json`` tells it: every default filled in."""
    from troth.ledger.genesis import effective_half_life

    identity, federation, constraints = genesis.identity, genesis.federation, genesis.constraints
    return {
        "sha256": genesis.sha256,
        "identity": {
            "name": identity.name,
            "owner": identity.owner,
            "created": identity.created,
            "description": identity.description,
        },
        "actors": [{"id": one.id, "role": one.role} for one in genesis.actors] if genesis.actors is not None else None,
        "permissions": {role: _in_order(ops) for role, ops in genesis.permissions.items()}
        if genesis.permissions is not None
        else None,
        "constraints": {
            "require_tags": constraints.require_tags,
            "allow_self": constraints.allow_self,
            "tags": {
                tag: {
                    "require_approval": rule.require_approval,
                    "approvers": list(rule.approvers) if rule.approvers is not None else None,
                }
                for tag, rule in constraints.tags.items()
            },
        },
        "trust": {"weights": dict(genesis.weights), "half_life_days": effective_half_life(genesis)},
        "tiers": {tier.name: _tier_json(tier) for tier in _tiers(genesis)},
        "classification": {
            "matches": [{"tags": sorted(tags), "tier": f"tier_{number}"} for tags, number in genesis.classes],
            "default": f"tier_{genesis.default_tier}" if genesis.default_tier is not None else None,
        },
        "federation": {
            "enabled": federation.enabled,
            "sync_target": federation.sync_target,
            "workspaces": list(federation.workspaces),
        },
    }


def _in_order(ops: frozenset[str]) -> list[str]:
    from troth.ledger.fields import OPS

    return [op for op in OPS if op in ops]


def _tiers(genesis: Genesis) -> list[Tier]:
    return [genesis.tiers[number] for number in sorted(genesis.tiers)]


def _tier_json(tier: Tier) -> dict[str, Any]:
    return {
        "auto_close": tier.auto_close,
        "review_window": tier.review_window,
        "require_human": tier.require_human,
        "validators": list(tier.validators),
    }


def _shown(genesis: Genesis) -> list[str]:
    """Return a key in words, what somebody wrote made harmless."""
    from troth.ledger.fields import OPS
    from troth.ledger.genesis import effective_half_life
    from troth.ledger.trust import WEIGHTS

    identity, constraints = genesis.identity, genesis.constraints
    lines = [f"{_safe(identity.name)}, owned by {_safe(identity.owner)}", f"sha256 {genesis.sha256}"]
    if identity.description is not None:
        lines.append(_safe(identity.description, 300))
    if genesis.actors is None or genesis.permissions is None:
        lines.append("Everyone may do everything.")
    else:
        lines.append("Actors")
        lines += [f"  {_safe(one.id)}: {_safe(one.role)}" for one in genesis.actors]
        lines.append("Roles")
        for role, ops in genesis.permissions.items():
            told = "everything" if len(ops) == len(OPS) else ", ".join(_in_order(ops)) or "nothing"
            lines.append(f"  {_safe(role)}: {told}")
    lines.append("Constraints")
    lines.append(f"  self-approval: {'allowed' if constraints.allow_self else 'refused'}")
    if constraints.require_tags:
        lines.append("  a commitment needs a tag")
    for tag, rule in constraints.tags.items():
        parts = ["no direct close"] if rule.require_approval else []
        if rule.approvers is not None:
            parts.append("approved by " + ", ".join(map(_safe, rule.approvers)))
        lines.append(f"  tag {_safe(tag)}: {'; '.join(parts) or 'no rule'}")
    lines.append("Tiers" if genesis.tiers else "No tiers: every submission waits for an approval.")
    for tier in _tiers(genesis):
        tags = sorted({tag for held, number in genesis.classes if number == tier.number for tag in held})
        lines.append(f"  {_tier_words(tier)}; tags: {', '.join(map(_safe, tags)) or '-'}")
    if genesis.tiers:
        default = genesis.default_tier if genesis.default_tier is not None else max(genesis.tiers)
        lines.append(f"  without a match: tier_{default}")
    usual = "the usual ones" if dict(genesis.weights) == WEIGHTS else json.dumps(dict(genesis.weights))
    lines.append(f"Weights: {usual}; half-life {effective_half_life(genesis)} days")
    lines.append("Federation: " + ("enabled" if genesis.federation.enabled else "off"))
    return lines


def _tier_words(tier: Tier) -> str:
    parts = ["closes by itself" if tier.auto_close else "waits for an approval"]
    if tier.review_window is not None:
        parts.append(f"disputed within {tier.review_window} s")
    if tier.require_human:
        parts.append("by a person only")
    return f"{tier.name}: {', '.join(parts)}; validators: {', '.join(map(_safe, tier.validators)) or 'none'}"


def _safe(text: str, limit: int = 80) -> str:
    return printable(text, limit)


# validate ------------------------------------------------------------------------------------------------------


@genesis_cmd.command(
    "validate", short_help="Name everything wrong with a key.", epilog="Example: troth genesis validate draft.key"
)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@reading_options
def validate_cmd(file: Path | None, store: str | None, as_json: bool) -> int:
    """Check FILE, or the workspace's own key with its signature, and name everything wrong by line and path."""
    from troth.core.digests import sha256_hex
    from troth.ledger.genesis import check_genesis
    from troth.stores.constitution import read_key

    ledger = open_ledger(store) if file is None else None
    where = file if ledger is None else _own_key(ledger)
    assert where is not None
    data = read_key(where)
    genesis, problems = check_genesis(data)
    # A key that is sound in itself may still lack the signature that the settings ask for.
    ruling = ledger.ruling() if ledger is not None and genesis is not None else None
    unsigned = ruling.error if ruling is not None else None
    ok = genesis is not None and unsigned is None
    remarks = list(genesis.remarks) if genesis is not None else []
    warnings = [] if ruling is None or unsigned is not None else ruling.warnings()
    if as_json:
        answer: dict[str, Any] = {
            "file": str(where),
            "ok": ok,
            "sha256": sha256_hex(data),
            "problems": [one.as_json() for one in problems],
            "remarks": [one.as_json() for one in remarks],
            "signature": unsigned.as_json()["error"] if unsigned is not None else None,
            "warnings": [warning.as_json() for warning in warnings],
        }
        emit_json(answer)
        return 0 if ok else 1
    name = printable(str(where))
    for one in problems:
        say(coloured(_finding(name, one), "red"))
    if unsigned is not None:
        say(coloured(printable(str(unsigned), 1000), "red"))
    for one in remarks:
        note(f"remark: {_finding(name, one)}")
    for warning in warnings:
        note(f"warning: {warning.warning}: {printable(warning.message, 400)}")
    say(f"{name}: valid" if ok else f"{name}: invalid, {len(problems) or 1} problem(s)")
    return 0 if ok else 1


def _finding(name: str, found: Finding) -> str:
    return printable(f"{name}:{found.line} {found.path}: {found.message}. {found.remedy}", 1000)


def _tell_invalid(error: TrothError, as_json: bool) -> int:
    """Tell an invalid key that cannot be shown; every problem where there are several."""
    findings: Sequence[Finding] = getattr(error, "findings", ())
    if as_json:
        emit_json(
            {
                "ok": False,
                "key": None,
                "problems": [one.as_json() for one in findings],
                "error": error.as_json()["error"],
            }
        )
        return 1
    note(f"troth: {printable(str(error), 1000)}")
    for one in findings[1:]:
        note(f"troth: {_finding('', one).lstrip(':')}")
    return 1


# diff ----------------------------------------------------------------------------------------------------------


@genesis_cmd.command(
    "diff", short_help="Tell what another key would change.", epilog="Example: troth genesis diff draft.key"
)
@click.argument("file", type=click.Path(path_type=Path))
@reading_options
def diff_cmd(file: Path, store: str | None, as_json: bool) -> int:
    """Tell what the key in FILE would decide otherwise than the one in force."""
    from troth.ledger.genesis import parse_genesis
    from troth.ledger.genesis_diff import changes
    from troth.stores.constitution import read_key

    new = parse_genesis(read_key(file), str(file))
    old = open_ledger(store).genesis()
    found = changes(old, new)
    if as_json:
        before = old.sha256 if old is not None else None
        emit_json({"before": before, "after": new.sha256, "changes": [change.as_json() for change in found]})
        return 0
    if not found:
        same = old is not None and old.sha256 == new.sha256
        say("The same key." if same else "Other bytes; what it decides is the same.")
    for change in found:
        say(f"{change.section}: {_safe(change.what)}: {_change_words(change)}")
    return 0


def _change_words(change: Change) -> str:
    if change.section != "actors":
        return f"{_value(change.before)} -> {_value(change.after)}"
    gained = [op for op in change.after if op not in change.before]
    lost = [op for op in change.before if op not in change.after]
    told = [f"{verb} {', '.join(ops)}" for verb, ops in (("gains", gained), ("loses", lost)) if ops]
    return "; ".join(told)


def _value(value: Any) -> str:
    return "-" if value is None else printable(json.dumps(value, ensure_ascii=False), 200)


# sign ----------------------------------------------------------------------------------------------------------


@genesis_cmd.command(
    "sign", short_help="Sign a key, beside it.", epilog="Example: troth genesis sign --key example.com/my-ledger"
)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--key", "name", metavar="NAME", help="The key that signs; by default the only one you have.")
@reading_options
def sign_cmd(file: Path | None, name: str | None, store: str | None, as_json: bool) -> int:
    """Sign FILE, or the workspace's own key: the signature lies beside it, under its name plus .sig.

    Signatures by others on the same key are kept. config.yaml says whose signature is needed:
    genesis_signers, a list of public keys.
    """
    from troth.core.notes import ED25519
    from troth.ledger.genesis import parse_genesis
    from troth.stores.constitution import read_key, write_signature
    from troth.stores.keys import load_signer, only_signer

    ledger = open_ledger(store) if file is None else None
    where = file if ledger is None else _own_key(ledger)
    assert where is not None
    data = read_key(where)
    parse_genesis(data, str(where))
    signer = load_signer(name) if name is not None else only_signer()
    if signer.kind != ED25519:
        raise Refused("E_KEY_KIND", f"{signer.name} is a witness's key", remedy="Name a signer's key with --key.")
    path, count = write_signature(where, data, signer)
    public = str(signer.verifier)
    if as_json:
        emit_json({"file": str(path), "key": public, "signatures": count})
        return 0
    say(f"Signed: {printable(str(path))}, {count} signature(s)")
    if ledger is not None and public not in ledger.config.genesis_signers:
        note(f"troth: config.yaml does not name this key; to require its signature: genesis_signers: [{public!r}]")
    return 0


# explain -------------------------------------------------------------------------------------------------------


@genesis_cmd.command(
    "explain",
    short_help="Tell what decides about an operation.",
    epilog="Example: troth genesis explain agent:worker close --commitment cmt_e5f6g7h8",
)
@click.argument("actor")
@click.argument("op")
@click.option("--commitment", metavar="ID", help="The commitment it is about; its state and tags decide too.")
@click.option("--tag", "tags", multiple=True, metavar="T", help="A tag of a commitment that is not there yet.")
@reading_options
def explain_cmd(
    *, actor: str, op: str, commitment: str | None, tags: tuple[str, ...], store: str | None, as_json: bool
) -> int:
    """Tell what decides when ACTOR does OP: the entry, the roles, the rule or tier, and the code it would get."""
    from troth.ledger.fields import OPS
    from troth.ledger.genesis_explain import explain
    from troth.stores.requests import resolve

    if op not in OPS:
        raise Refused("E_USAGE", f"{printable(op, 60)!r} is none of the operations", remedy=f"{', '.join(OPS)}.")
    ledger = open_ledger(store)
    genesis = ledger.genesis()
    state = ledger.read().state
    record = None
    if commitment is not None:
        identifier = resolve(commitment, state, ("commit",))
        record = state.commitments.get(identifier)
        if record is None:
            raise Refused("E_REF_NOT_FOUND", f"there is no commitment {printable(identifier, 80)}", detail="absent")
    if genesis is None:
        if as_json:
            emit_json({"key": None, "actor": actor, "op": op, "permitted": True, "code": None, "reason": _NONE})
        else:
            say(_NONE)
        return 0
    found = explain(genesis, actor, op, state=state, now=system_clock(), record=record, tags=tags)
    if as_json:
        emit_json({"key": genesis.sha256, **found.as_json(), "commitment": record.id if record is not None else None})
        return 0
    _tell_explanation(found)
    return 0


def _tell_explanation(found: Explanation) -> None:
    say(f"{_safe(found.actor)} {found.op}: {printable(found.permission, 400)}")
    if found.tags:
        say(f"tags: {', '.join(map(_safe, found.tags))}")
    for tag, rule in found.tag_rules:
        parts = ["require_approval"] if rule.require_approval else []
        if rule.approvers is not None:
            parts.append(f"approvers {', '.join(map(_safe, rule.approvers))}")
        say(f"rule of the tag {_safe(tag)}: {'; '.join(parts) or 'none'}")
    if found.tier is not None:
        say(f"tier by {_safe(found.by or '')}: {_tier_words(found.tier)}")
    if found.code is None:
        say("answer: allowed")
    else:
        detail = f" ({found.detail})" if found.detail is not None else ""
        say(f"answer: {found.code}{detail}: {printable(found.reason, 300)}")
    for condition in found.conditions:
        say(f"  but {condition}")
