"""The sections of a genesis key, read from its tree: every problem is named, with line, path and remedy (§11)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from troth.core.words import printable
from troth.ledger.fields import OPS
from troth.ledger.genesis import (
    Constraints,
    Entry,
    Federation,
    Genesis,
    Identity,
    TagRule,
    Tier,
)
from troth.ledger.genesis_event import SUM_TOLERANCE
from troth.ledger.trust import WEIGHTS
from troth.ledger.values import MAX_SAFE_INTEGER, is_actor, is_workspace
from troth.ledger.yamltree import Finding, Node, member_path, read_tree

SECTIONS: Final = ("identity", "actors", "permissions", "constraints", "trust", "validation", "federation")
"""The sections of a key, in the order of the spec."""

OP_RULES: Final = {
    "claim": "require_claim",
    "close": "require_evidence",
    "commit": "require_tags",
    "approve": "allow_self",
}
"""Constraints by operation: the one rule each of these sections may hold."""

RESTATING: Final = {"require_claim": "an owner is always needed", "require_evidence": "evidence is always needed"}
"""Rules that restate what the protocol demands anyway."""

TIERS: Final = {"tier_1": 1, "tier_2": 2, "tier_3": 3}
WINDOW_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
MAX_WINDOW_SECONDS: Final = 36500 * 86400
"""A century: a longer window is a slip, and dates end."""

_WINDOW: Final = re.compile(r"([0-9]{1,12})([smhd])", re.ASCII)
_EXTENSION: Final = "x-"


def read_genesis(data: bytes, sha256: str) -> tuple[Genesis | None, list[Finding]]:
    """Return the key these bytes are, or ``None`` with everything wrong, in the order of the lines."""
    tree, findings = read_tree(data)
    if tree is None:
        return None, _sorted(findings)
    reader = _Sections(findings)
    genesis = reader.key(tree, sha256)
    return (None if findings else genesis), _sorted(findings)


def _sorted(findings: list[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: finding.line)


class _Sections:
    """Reads members and notes what is wrong; where something is, the value read does not matter any more."""

    def __init__(self, findings: list[Finding]) -> None:
        self.findings = findings
        self.remarks: list[Finding] = []

    def key(self, tree: Node, sha256: str) -> Genesis:
        top = self._members(tree, SECTIONS, needed=("identity",))
        actors = self._actors(top["actors"]) if "actors" in top else None
        permissions = self._permissions(top["permissions"]) if "permissions" in top else None
        self._together(tree, top, actors, permissions)
        constraints = self._constraints(top["constraints"]) if "constraints" in top else Constraints()
        weights, half_life = self._trust(top["trust"]) if "trust" in top else (WEIGHTS, None)
        tiers, classes, default = self._validation(top["validation"]) if "validation" in top else ({}, (), None)
        return Genesis(
            sha256=sha256,
            identity=self._identity(top["identity"]) if "identity" in top else Identity("", ""),
            actors=actors,
            permissions=MappingProxyType(permissions) if permissions is not None else None,
            constraints=constraints,
            weights=MappingProxyType(weights),
            half_life_days=half_life,
            tiers=MappingProxyType(tiers),
            classes=classes,
            default_tier=default,
            federation=self._federation(top["federation"]) if "federation" in top else Federation(),
            remarks=tuple(_sorted(self.remarks)),
        )

    # Sections ----------------------------------------------------------------------------------------------------

    def _identity(self, node: Node) -> Identity:
        names = ("name", "owner", "created", "description")
        members = self._members(node, names, needed=("name", "owner"))
        values = {name: self._text(members[name]) for name in ("name", "owner") if name in members}
        rest = {name: self._text_or_none(members[name]) for name in ("created", "description") if name in members}
        return Identity(values.get("name", ""), values.get("owner", ""), **rest)

    def _actors(self, node: Node) -> tuple[Entry, ...]:
        entries = []
        for item in self._list(node):
            members = self._members(item, ("id", "role"), needed=("id", "role"))
            if "id" in members and "role" in members:
                identifier = self._pattern(members["id"])
                entries.append(Entry(identifier, self._text(members["role"]), item.line))
        return tuple(entries)

    def _permissions(self, node: Node) -> dict[str, frozenset[str]]:
        found: dict[str, frozenset[str]] = {}
        for role, value in self._map(node).items():
            if not role.strip():
                self._wrong(value, "a role without a name", "Name the role.")
            if value.value == "*" and not value.bad:
                found[role] = frozenset(OPS)
                continue
            ops = []
            for item in self._list(value, hint='Write a list of operations, or "*" for all of them.'):
                op = self._text(item)
                if op == "*":
                    self._wrong(item, "* stands in a list", f'Write `{printable(role, 40)}: "*"` for all operations.')
                elif op and op not in OPS:
                    self._wrong(item, f"no operation is called {_shown(op)}", f"{_near(op, OPS)}")
                else:
                    ops.append(op)
            found[role] = frozenset(ops)
        return found

    def _together(
        self,
        tree: Node,
        top: Mapping[str, Node],
        actors: tuple[Entry, ...] | None,
        permissions: dict[str, frozenset[str]] | None,
    ) -> None:
        """Look at what actors and permissions say of each other ([D37])."""
        if (actors is None) != (permissions is None):
            there, missing = ("actors", "permissions") if permissions is None else ("permissions", "actors")
            if there in top:
                self._told(
                    tree.names[there],
                    f"$.{there}",
                    f"{there} stands without {missing}",
                    f"Add {missing}, or leave both out and everyone may do everything.",
                )
            return
        if actors is None or permissions is None:
            return
        items = [item for item in top["actors"].value if isinstance(item.value, dict)] if actors else []
        for item in items:
            role = item.value.get("role")
            if role is not None and isinstance(role.value, str) and not role.bad and role.value not in permissions:
                self._wrong(
                    role,
                    f"the role {_shown(role.value)} has no entry in permissions",
                    f"Add it there. {_near(role.value, permissions)}",
                )
        if not actors:
            self._remark(top["actors"], "no actor is named, so nobody may do anything", "Name who may act.")
        for entry in actors:
            if entry.id and not entry.id.endswith("*") and not is_actor(entry.id):
                self._remark_at(
                    entry.line,
                    "$.actors",
                    f"{_shown(entry.id)} matches nobody who can write",
                    "Actors are human:NAME, agent:NAME, system:NAME or an e-mail address.",
                )
        used = {entry.role for entry in actors}
        for role in permissions:
            if role not in used:
                self._remark_at(
                    top["permissions"].names.get(role, 0),
                    member_path("$.permissions", role),
                    f"no actor has the role {_shown(role)}",
                    "Give it to somebody, or remove it.",
                )

    def _constraints(self, node: Node) -> Constraints:
        flags: dict[str, bool] = {}
        tags: dict[str, TagRule] = {}
        for name, value in self._map(node).items():
            rule = OP_RULES.get(name)
            if rule is not None:
                members = self._members(value, (rule,))
                if rule in members:
                    flags[rule] = self._flag(members[rule])
                    if rule in RESTATING and not flags[rule]:
                        self._remark(
                            members[rule], f"{rule}: false has no effect: {RESTATING[rule]}", "Remove it, or say true."
                        )
                continue
            tags[name] = self._tag_rule(name, value)
        return Constraints(
            require_tags=flags.get("require_tags", False),
            allow_self=flags.get("allow_self", False),
            tags=MappingProxyType(tags),
        )

    def _tag_rule(self, tag: str, node: Node) -> TagRule:
        if tag in OPS:
            self._remark(
                node,
                f"{tag} is read as a tag of commitments: this operation has no constraints",
                "Rules by operation: " + ", ".join(f"{op}.{rule}" for op, rule in OP_RULES.items()) + ".",
            )
        members = self._members(node, ("require_approval", "approvers"))
        approvers: tuple[str, ...] | None = None
        if "approvers" in members:
            approvers = tuple(self._pattern(item) for item in self._list(members["approvers"]))
            if not approvers and not members["approvers"].bad and isinstance(members["approvers"].value, list):
                self._wrong(members["approvers"], "nobody could approve", "Name an approver, or leave it out.")
        required = self._flag(members["require_approval"]) if "require_approval" in members else False
        if approvers is not None and not required:
            self._remark(
                members["approvers"],
                "approvers without require_approval: the owner may still close directly",
                "Add require_approval: true.",
            )
        return TagRule(required, approvers)

    def _trust(self, node: Node) -> tuple[dict[str, float], int | None]:
        members = self._members(node, ("weights", "decay"))
        weights = self._weights(members["weights"]) if "weights" in members else WEIGHTS
        half_life: int | None = None
        if "decay" in members:
            name = "default_half_life_days"
            decay = self._members(members["decay"], (name,))
            if name in decay:
                half_life = self._whole(decay[name], 1, MAX_SAFE_INTEGER, "days")
        return weights, half_life

    def _weights(self, node: Node) -> dict[str, float]:
        members = self._members(node, tuple(WEIGHTS), needed=tuple(WEIGHTS))
        weights: dict[str, float] = {}
        for name, member in members.items():
            value = member.value
            if member.bad:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
                self._wrong(member, "a weight is a number from 0 to 1", "Write such a number.")
            else:
                weights[name] = float(value)
        if len(weights) == len(WEIGHTS):
            total = math.fsum(weights.values())
            if abs(total - 1.0) > SUM_TOLERANCE:
                self._wrong(node, f"the weights sum to {total:.9g}", "Let them sum to 1.")
        return {name: weights.get(name, 0.0) for name in WEIGHTS}

    def _federation(self, node: Node) -> Federation:
        members = self._members(node, ("enabled", "sync_target", "workspaces"))
        workspaces = []
        for item in self._list(members["workspaces"]) if "workspaces" in members else ():
            name = self._text(item)
            if name and not is_workspace(name):
                self._wrong(item, "a workspace has 1 to 128 characters and no white space", "Write its name.")
            workspaces.append(name)
        return Federation(
            enabled=self._flag(members["enabled"]) if "enabled" in members else False,
            sync_target=self._text_or_none(members["sync_target"]) if "sync_target" in members else None,
            workspaces=tuple(workspaces),
        )

    # Tiers -------------------------------------------------------------------------------------------------------

    def _validation(self, node: Node) -> tuple[dict[int, Tier], tuple[tuple[frozenset[str], int], ...], int | None]:
        members = self._members(node, ("tiers", "classification"))
        tiers: dict[int, Tier] = {}
        if "tiers" in members:
            named = self._members(members["tiers"], tuple(TIERS))
            tiers = {TIERS[name]: self._tier(TIERS[name], value) for name, value in named.items()}
        if "classification" not in members:
            return tiers, (), None
        return (tiers, *self._classification(members["classification"], tiers))

    def _tier(self, number: int, node: Node) -> Tier:
        members = self._members(node, ("auto_close", "review_window", "require_human", "validators"))
        auto_close = self._flag(members["auto_close"]) if "auto_close" in members else False
        require_human = self._flag(members["require_human"]) if "require_human" in members else False
        window = self._window(members["review_window"]) if "review_window" in members else None
        tier = Tier(number, auto_close, window, require_human)
        if "validators" in members:
            listed = members["validators"]
            tier = Tier(
                number, auto_close, window, require_human, tuple(self._text(item) for item in self._list(listed))
            )
            if auto_close and not tier.validators and listed.value == [] and not listed.bad:
                self._wrong(
                    listed,
                    "auto_close without a validator would close everything unchecked",
                    "Name a validator; leave the list out for `technical`.",
                )
        if auto_close and require_human:
            self._wrong(
                members["auto_close"],
                "auto_close together with require_human",
                "Either it closes by itself or a person closes it: set one of them to false.",
            )
        if auto_close and "intent" in tier.validators:
            self._remark(
                members["validators"],
                "intent is a person's approval and never passes by itself, so nothing closes automatically",
                "Remove it from the validators, or set auto_close to false.",
            )
        if window is not None and not auto_close:
            self._remark(
                members["review_window"],
                "review_window without auto_close has no effect",
                "It bounds the dispute of what closed automatically.",
            )
        return tier

    def _classification(
        self, node: Node, tiers: Mapping[int, Tier]
    ) -> tuple[tuple[tuple[frozenset[str], int], ...], int | None]:
        classes: list[tuple[frozenset[str], int]] = []
        default: int | None = None
        seen_default = False
        for item in self._list(node):
            members = self._members(item, ("match", "tier", "default"))
            if "default" in members:
                if "match" in members or "tier" in members:
                    self._wrong(item, "default beside match or tier", "Make two entries of it.")
                if seen_default:
                    self._wrong(item, "a second default", "Keep one of them.")
                seen_default = True
                default = self._tier_named(members["default"], tiers)
                continue
            for name in ("match", "tier"):
                if name not in members and isinstance(item.value, dict) and not item.bad:
                    self._wrong(item, f"{name} is missing", "An entry is {match: {tags: […]}, tier} or {default}.")
            number = self._tier_named(members["tier"], tiers) if "tier" in members else None
            tags = self._matched_tags(members["match"]) if "match" in members else frozenset()
            if number is not None and tags:
                classes.append((tags, number))
        return tuple(classes), default

    def _matched_tags(self, node: Node) -> frozenset[str]:
        members = self._members(node, ("tags",), needed=("tags",))
        if "tags" not in members:
            return frozenset()
        tags = frozenset(self._text(item) for item in self._list(members["tags"]))
        if not tags and members["tags"].value == [] and not members["tags"].bad:
            self._wrong(members["tags"], "an empty list of tags matches nothing", "Name a tag.")
        return tags

    def _tier_named(self, node: Node, tiers: Mapping[int, Tier]) -> int | None:
        if node.bad:
            return None
        value = node.value
        number = TIERS.get(value) if isinstance(value, str) else value
        if isinstance(number, bool) or not isinstance(number, int) or number not in TIERS.values():
            self._wrong(node, "no tier is called that", f"Write {', '.join(TIERS)}.")
            return None
        if number not in tiers:
            self._wrong(node, f"tier_{number} is not defined", "Define it in validation.tiers.")
            return None
        return number

    def _window(self, node: Node) -> int | None:
        if node.bad or node.value is None:
            return None
        match = _WINDOW.fullmatch(node.value) if isinstance(node.value, str) else None
        seconds = int(match[1]) * WINDOW_SECONDS[match[2]] if match is not None else -1
        if not 0 <= seconds <= MAX_WINDOW_SECONDS:
            self._wrong(node, "a window is a whole number and s, m, h or d, at most 36500d", "Write one such as 24h.")
            return None
        return seconds

    # Values ------------------------------------------------------------------------------------------------------

    def _map(self, node: Node) -> Mapping[str, Node]:
        if isinstance(node.value, dict):
            return node.value
        self._kind(node, "a mapping", "Write names and values.")
        return {}

    def _members(self, node: Node, known: tuple[str, ...], needed: tuple[str, ...] = ()) -> dict[str, Node]:
        found: dict[str, Node] = {}
        if not isinstance(node.value, dict):
            self._kind(node, "a mapping", f"Its members are {', '.join(known)}.")
            return found
        for name, value in node.value.items():
            if name in known:
                found[name] = value
            elif not name.startswith(_EXTENSION):
                self._told(
                    node.names[name],
                    member_path(node.path, name),
                    f"{_shown(name)} is not known here",
                    f"{_near(name, known)} Names of your own begin with x-.",
                )
        for name in needed:
            # A name that stands there with something wrong about it was told already.
            if name not in found and name not in node.names and not node.bad:
                self._told(node.line, member_path(node.path, name), f"{name} is missing", f"Add {name}.")
        return found

    def _list(self, node: Node, hint: str = "Write a list.") -> list[Node]:
        if isinstance(node.value, list):
            return node.value
        self._kind(node, "a list", hint)
        return []

    def _text(self, node: Node) -> str:
        if isinstance(node.value, str) and node.value.strip():
            return node.value
        if isinstance(node.value, str):
            self._wrong(node, "the text is empty", "Write something.")
        else:
            self._kind(node, "text", "Write text, in quotes where YAML would read it otherwise.")
        return ""

    def _text_or_none(self, node: Node) -> str | None:
        return None if node.value is None else self._text(node)

    def _flag(self, node: Node) -> bool:
        if isinstance(node.value, bool):
            return node.value
        self._kind(node, "true or false", "Write true or false.")
        return False

    def _whole(self, node: Node, least: int, most: int, of: str) -> int | None:
        value = node.value
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        self._kind(node, f"a whole number of {of}, {least} or more", "Write such a number.")
        return None

    def _pattern(self, node: Node) -> str:
        text = self._text(node)
        if text and ("*" in text[:-1] or any(char.isspace() for char in text)):
            self._wrong(
                node, f"{_shown(text)} is no actor or pattern", "* may end an id, and no white space stands in it."
            )
        return text

    # Telling -----------------------------------------------------------------------------------------------------

    def _kind(self, node: Node, wanted: str, remedy: str) -> None:
        self._wrong(node, f"{_kind_of(node.value)} where {wanted} is due", remedy)

    def _wrong(self, node: Node, message: str, remedy: str) -> None:
        if not node.bad:
            self._told(node.line, node.path, message, remedy)

    def _told(self, line: int, path: str, message: str, remedy: str) -> None:
        self.findings.append(Finding(line, path, message, remedy.strip()))

    def _remark(self, node: Node, message: str, remedy: str) -> None:
        self._remark_at(node.line, node.path, message, remedy)

    def _remark_at(self, line: int, path: str, message: str, remedy: str) -> None:
        self.remarks.append(Finding(line, path, message, remedy))


def _kind_of(value: Any) -> str:
    names: tuple[tuple[type, str], ...] = (
        (bool, "true or false"), (str, "text"), (int, "a number"), (float, "a number"),
        (dict, "a mapping"), (list, "a list"),
    )  # fmt: skip
    return next((name for kind, name in names if isinstance(value, kind)), "nothing")


def _shown(text: str) -> str:
    return f"`{printable(text, 60)}`"


def _near(text: str, known: Any) -> str:
    import difflib

    names = [*known]
    near = difflib.get_close_matches(text, names, n=2)
    if near:
        return f"Did you mean {' or '.join(printable(name, 40) for name in near)}?"
    return f"Known are {', '.join(printable(name, 40) for name in names[:12])}."
