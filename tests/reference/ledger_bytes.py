"""A slow, literal model of the ledger's bytes: parsing, canonical form, hash and verification (§2-§4, §16).

Part of the yardstick for differential tests; `ledger_replay` and `ledger_admission` stand on it. Nothing is
imported from the product and nothing is shared with it. Where the spec leaves a corner open, the plainest
reading stands at the place, in a comment that begins with "Open:".
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import dataclass
from typing import Any

Json = Any
ZEROS = "0" * 64
OPS = ("capture", "commit", "claim", "release", "close", "submit", "approve", "reopen", "annotate")
V1_OPS = ("link", "dismiss", "triage")
ONE_MIB = 1_048_576


class Malformed(Exception):
    """The bytes of one line are no well-formed row."""


# --- §3: parsing ------------------------------------------------------------------------------------------


def parse_row(raw: bytes) -> dict[str, Json]:
    """One line without LF and without its CR. Raises `Malformed` for everything §3 and §4 call so."""
    if len(raw) > ONE_MIB:
        raise Malformed("over 1 MiB")

    def whole_number(literal: str) -> int:
        if len(literal.lstrip("-")) > 4300:
            raise Malformed("integer over 4300 digits")
        return int(literal)

    def other_number(literal: str) -> float:
        value = float(literal)
        if math.isinf(value):
            raise Malformed("overflows a double")
        return value

    def word(token: str) -> None:
        raise Malformed(token)

    def members(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        if len({name for name, _ in pairs}) < len(pairs):
            raise Malformed("duplicate key")
        return dict(pairs)

    try:
        value = json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=members,
            parse_int=whole_number,
            parse_float=other_number,
            parse_constant=word,
        )
    except (ValueError, RecursionError):
        raise Malformed("not JSON") from None
    if not isinstance(value, dict):
        raise Malformed("not an object")
    if depth(value) > 100:
        raise Malformed("nested over 100 levels")
    if any(has_lone_surrogate(text) for text in strings(value)):
        raise Malformed("lone surrogate")
    if not is_unhashed(value) and is_blank(value.get("prevHash")):
        raise Malformed("hash without prevHash")
    return value


def is_blank(value: Json) -> bool:
    """Absent, null or empty. Open: "empty" is read as the empty string, for every field that is a string."""
    return value is None or value == ""


def is_unhashed(row: dict[str, Json]) -> bool:
    return is_blank(row.get("hash"))


def depth(value: Json) -> int:
    """The row object is level 1; containers alone count (§16)."""
    if isinstance(value, dict):
        return 1 + max((depth(inner) for inner in value.values()), default=0)
    if isinstance(value, list):
        return 1 + max((depth(inner) for inner in value), default=0)
    return 0


def strings(value: Json) -> list[str]:
    """Every string in the value, names of members too."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for inner in value for text in strings(inner)]
    if isinstance(value, dict):
        return [*value, *(text for inner in value.values() for text in strings(inner))]
    return []


def has_lone_surrogate(text: str) -> bool:
    return any(0xD800 <= ord(character) <= 0xDFFF for character in text)


# --- §3: canonical bytes ----------------------------------------------------------------------------------


def canonical(value: Json) -> str:
    """Rules 2 to 4 of §3; the result is ASCII."""
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, str):
        return canonical_string(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return canonical_double(value)
    if isinstance(value, list):
        return "[" + ",".join(canonical(inner) for inner in value) + "]"
    if isinstance(value, dict):
        by_code_point = sorted(value, key=lambda name: [ord(character) for character in name])
        return "{" + ",".join(canonical_string(name) + ":" + canonical(value[name]) for name in by_code_point) + "}"
    raise TypeError(type(value))


def canonical_string(text: str) -> str:
    out = '"'
    for character in text:
        point = ord(character)
        if character == '"':
            out += '\\"'
        elif character == "\\":
            out += "\\\\"
        elif character == "/":
            out += "\\/"
        elif point == 0x08:
            out += "\\b"
        elif point == 0x09:
            out += "\\t"
        elif point == 0x0A:
            out += "\\n"
        elif point == 0x0C:
            out += "\\f"
        elif point == 0x0D:
            out += "\\r"
        elif 0x20 <= point <= 0x7E:
            out += character
        elif point <= 0xFFFF:
            out += f"\\u{point:04x}"
        else:
            above = point - 0x10000
            out += f"\\u{0xD800 + above // 0x400:04x}\\u{0xDC00 + above % 0x400:04x}"
    return out + '"'


def canonical_double(value: float) -> str:
    """Shortest round-trip digits (as `repr` finds them), laid out by the rule of §3."""
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if value == 0:
        return sign + "0.0"
    # The shortest digits d1 d2 d3 … and the decimal exponent e, so that the value is d1.d2d3… times 10 to the e.
    mantissa, _, power = repr(abs(value)).partition("e")
    before, _, after = mantissa.partition(".")
    exponent = len(before) - 1 + int(power or "0")
    digits = before + after
    while digits.startswith("0"):
        digits = digits[1:]
        exponent -= 1
    digits = digits.rstrip("0")
    if exponent < -4 or exponent > 15:
        point = "." if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{point}{digits[1:]}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if exponent < 0:
        return sign + "0." + "0" * (-exponent - 1) + digits
    digits = digits.ljust(exponent + 2, "0")
    return sign + digits[: exponent + 1] + "." + digits[exponent + 1 :]


def row_hash(row: dict[str, Json]) -> str:
    blanked = {**row, "hash": "", "prevHash": ""}
    return hashlib.sha256(canonical(blanked).encode("ascii")).hexdigest()


# --- §4: lines --------------------------------------------------------------------------------------------


@dataclass
class Line:
    """A physical line that is not blank; `row` is None when it is malformed."""

    number: int
    terminated: bool
    row: dict[str, Json] | None

    @property
    def id(self) -> str | None:
        # Open: a malformed line is reported without an id, even where one could be read in it.
        found = self.row.get("id") if self.row is not None else None
        return found if isinstance(found, str) and found != "" else None


Warnings = list[tuple["int | None", "str | None", str]]


def read_lines(data: bytes) -> tuple[list[Line], Warnings]:
    """The lines of a ledger with the file warnings. Open: the spec names no warnings but `envelope`."""
    warnings: Warnings = []
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
        warnings.append((1, None, "bom"))
    pieces = data.split(b"\n")
    last = pieces.pop()
    ended = [(piece, True) for piece in pieces] + ([(last, False)] if last != b"" else [])
    lines = []
    for number, (given, terminated) in enumerate(ended, start=1):
        piece = given
        if piece.endswith(b"\r"):
            piece = piece[:-1]
            warnings.append((number, None, "trailing_cr"))
        # Open: a line of one CR is blank, as it is empty once that CR is stripped.
        if piece == b"":
            warnings.append((number, None, "blank_line"))
            continue
        try:
            row = parse_row(piece)
        except Malformed:
            row = None
        line = Line(number, terminated, row)
        lines.append(line)
        if row is not None and not terminated:
            warnings.append((number, line.id, "no_final_newline"))
    return lines, warnings


def without_torn_tail(data: bytes) -> bytes:
    """What is left when the next writer has moved a torn write away."""
    lines, _ = read_lines(data)
    if lines and lines[-1].row is None and not lines[-1].terminated:
        return data[: data.rfind(b"\n") + 1]
    return data


# --- §4: the verifier -------------------------------------------------------------------------------------


def verify(
    data: bytes,
    unhashed_prefix: int | None = None,
    in_workspace: str | None = None,
    expect_head: str | None = None,
) -> dict[str, Json]:
    """Verify a ledger.

    Args:
        data: the file's bytes.
        unhashed_prefix: the setting of that name, None when absent.
        in_workspace: the workspace named by the configuration, None when there is none.
        expect_head: the head digest to compare, `HEX` or `HEX:ROWS`.

    Returns:
        `faults` and `warnings` as lists of (line, id, name), and `verified`, `total`, `unhashed`, `head`.
    """
    lines, warnings = read_lines(data)
    faults: list[tuple[int | None, str | None, str]] = []
    ids: set[str] = set()
    stored: list[str] = []
    verified = prefix = 0
    head = ZEROS
    latest = ""
    for line in lines:
        found: list[str] = []
        row = line.row
        if row is None:
            found.append("malformed" if line.terminated else "torn_tail")
        else:
            # Open: only an id that is a non-empty string can be repeated.
            if line.id is not None and line.id in ids:
                found.append("duplicate_id")
            if line.id is not None:
                ids.add(line.id)
            if is_unhashed(row):
                if stored:
                    found.append("unhashed_after_cutover")
                else:
                    prefix += 1
            else:
                if row["hash"] != row_hash(row):
                    found.append("content_mismatch")
                found += link_faults(row, stored)
                # "Compared as it stands": numbers and the like are told apart by their canonical text.
                stored.append(canonical(row["hash"]))
                # Open: a hash that is no string is folded as its canonical text.
                text = row["hash"] if isinstance(row["hash"], str) else canonical(row["hash"])
                head = hashlib.sha256((head + text).encode("utf-8")).hexdigest()
                if not found:
                    verified += 1
            warnings += [(line.number, line.id, name) for name in row_warnings(row, in_workspace, latest)]
            latest = comparable_instant(row.get("ts")) or latest
        faults += [(line.number, line.id, name) for name in found]
    # Open: with no hashed row at all, every unhashed row belongs to the prefix.
    if unhashed_prefix is not None and prefix != unhashed_prefix:
        faults.append((None, None, "unhashed_count"))
    if unhashed_prefix is None and prefix > 0:
        warnings.append((None, None, "unhashed_prefix"))
    # Open: the row count behind the colon explains a difference and decides nothing.
    if expect_head is not None and expect_head.partition(":")[0] != head:
        faults.append((None, None, "head_mismatch"))
    return {
        "faults": faults,
        "warnings": warnings,
        "verified": verified,
        "total": len(lines),
        "unhashed": prefix,
        "head": head,
    }


def link_faults(row: dict[str, Json], stored: list[str]) -> list[str]:
    """`stored` holds the stored hashes of the earlier parsed, hashed rows, as canonical text.

    Open: a malformed line has no stored hash, so a successor that named it is `missing_ancestor`; a successor
    that names the last stored hash before it is right, as behind an unhashed row.
    """
    named = row["prevHash"]
    if not stored:
        return [] if named == ZEROS else ["missing_ancestor"]
    # Zeros are wrong here even behind a row that claims zeros as its hash (§16).
    if named == ZEROS:
        return ["link_mismatch"]
    if canonical(named) == stored[-1]:
        return []
    if canonical(named) in stored:
        return ["link_mismatch"]
    return ["missing_ancestor"]


def row_warnings(row: dict[str, Json], in_workspace: str | None, latest: str) -> list[str]:
    names = []
    op, row_id, ts = row.get("op"), row.get("id"), row.get("ts")
    # Open: the three names of version 1 are no unknown ops, as they are read as annotate.
    if op not in OPS + V1_OPS or is_blank(row_id) or not isinstance(row.get("payload"), dict):
        names.append("envelope")
    if isinstance(row_id, str) and op in OPS and not row_id.startswith(id_prefix(op)):
        names.append("id_prefix")
    workspace = row.get("workspace")
    if in_workspace is not None and not is_blank(workspace) and workspace != in_workspace:
        names.append("workspace")
    if isinstance(ts, str) and ts.endswith("+00:00"):
        names.append("ts_offset")
    instant = comparable_instant(ts)
    if instant is not None and instant < latest:
        names.append("ts_backwards")
    return names


def id_prefix(op: str) -> str:
    if op == "capture":
        return "mem_"
    if op == "commit":
        return "cmt_"
    if op == "annotate":
        return "ann_"
    return "op_"


def comparable_instant(ts: Json) -> str | None:
    """A text that sorts as the instant does, or None when the timestamp has not the form of §2."""
    shape = r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?(?:Z|\+00:00)"
    found = re.fullmatch(shape, ts) if isinstance(ts, str) else None
    return None if found is None else found[1] + (found[2] or "").ljust(9, "0")
