"""What a sweep is, as a TOML file: read strictly, refused with the key, its line where it can be told, and what to do.

counterparties × agents × offers × noise × seeds, ``deals`` of each.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta

from troth.core.errors import Place, Refused
from troth.deals.messages import Malformed, read_message
from troth.deals.run import Clocks
from troth.deals.snapshots import canonical
from troth.deals.writing import offer_body
from troth.lab.playing import BUDGET, Game, Setting
from troth.lab.view import Terms

MAX_FILE_BYTES: Final = 1 << 20
MAX_CELLS: Final = 10_000
MAX_DEALS: Final = 1_000_000_000
"""Bounds of one sweep: what its summary can hold, and what anyone waits for."""

CODES: Final[dict[str, str]] = {
    "E_SWEEP_CONFIG": "The configuration of a sweep is not as it must be; the place names the key and its line.",
}
"""Refusals of configurations."""

Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=60, pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.+-]*$")]
Spec: TypeAlias = Annotated[str, Meta(min_length=1, max_length=300)]
Specs: TypeAlias = Annotated[tuple[Spec, ...], Meta(min_length=1, max_length=1000)]
Steps: TypeAlias = Annotated[int, Meta(ge=0, le=10_000)]
Seed: TypeAlias = Annotated[int, Meta(ge=0, le=2**53 - 1)]
Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table whose keys are all named."""


class Option(_Strict, frozen=True, kw_only=True):
    """Something else than points that C offers."""

    id: Name
    desc: Annotated[str, Meta(max_length=300)] = ""


class OfferConfig(_Strict, frozen=True, kw_only=True):
    """One offer: points, object options, clocks; ``checklist`` as an offer holds it, else the source's own (§3.1)."""

    name: Name
    amount: Annotated[int, Meta(ge=0, le=1_000_000_000)] = 10
    object_options: tuple[Option, ...] = ()
    checklist: Annotated[tuple[dict[str, Any], ...], Meta(min_length=1)] | None = None
    deadline_steps: Steps = 5
    expires_steps: Steps = 3


class NoiseConfig(_Strict, frozen=True, kw_only=True):
    """What disturbs a deal: K's policy, and how often the oracle forges (F-D′)."""

    name: Name
    checker: Spec = "honest"
    forged: Literal["forged_hold", "forged_honesty", "doctored_transcript_ready"] | None = None
    forged_rate: Share = 1.0


class ClocksConfig(_Strict, frozen=True, kw_only=True):
    """The clocks that no offer sets, in steps."""

    adjudicate_steps: Steps = 2
    settle_steps: Steps | None = None


class SeedRange(_Strict, frozen=True, kw_only=True):
    """Seeds in a row."""

    first: Seed = 0
    count: Annotated[int, Meta(ge=1, le=1_000_000)]


class SweepConfig(_Strict, frozen=True, kw_only=True):
    """A whole sweep. ``chunk`` deals are kept at once: as much as an interruption can cost, one Parquet row group."""

    name: Name
    counterparties: Specs
    agents: Specs
    offers: Annotated[tuple[OfferConfig, ...], Meta(min_length=1, max_length=1000)]
    noise: Annotated[tuple[NoiseConfig, ...], Meta(min_length=1, max_length=1000)] = (NoiseConfig(name="none"),)
    seeds: Annotated[tuple[Seed, ...], Meta(min_length=1, max_length=1_000_000)] | SeedRange = (0,)
    deals: Annotated[int, Meta(ge=1, le=MAX_DEALS)]
    series: Annotated[int, Meta(ge=1, le=100_000)] = 1
    chunk: Annotated[int, Meta(ge=1, le=200_000)] = 10_000
    budget: Annotated[int, Meta(ge=1, le=100_000)] = BUDGET
    clocks: ClocksConfig = ClocksConfig()


class Cell(NamedTuple):
    """One combination of the sweep: all but its seeds."""

    number: int
    counterparty: str
    agent: str
    offer: str
    noise: str
    setting: Setting


class Sweep:
    """A configuration that was read, and what follows from it.

    The deals of a sweep stand in one row: by cell, in it by seed as listed, in it by index. A chunk is a stretch of
    that row. Which process plays it changes nothing: all chance of a deal comes from its seed and its index.
    """

    def __init__(self, config: SweepConfig) -> None:
        self.config = config
        self.form = canonical(msgspec.to_builtins(config))
        """The configuration as canonical JSON, all defaults filled in."""
        self.digest = hashlib.sha256(self.form).hexdigest()
        """By which two configurations are told to be the same."""
        seeds = config.seeds
        self.seeds = range(seeds.first, seeds.first + seeds.count) if isinstance(seeds, SeedRange) else seeds
        self.per_cell = len(self.seeds) * config.deals
        self.cells = tuple(_cells(config))
        self.deals = len(self.cells) * self.per_cell
        self.chunks = -(-self.deals // config.chunk)

    def size(self, chunk: int) -> int:
        """Return how many deals a chunk has."""
        start = chunk * self.config.chunk
        return min(self.config.chunk, self.deals - start)

    def pieces(self, chunk: int) -> Iterator[tuple[Cell, int, range]]:
        """Yield (cell, seed, indices) of a chunk, in the row's order."""
        at, end = chunk * self.config.chunk, chunk * self.config.chunk + self.size(chunk)
        deals = self.config.deals
        while at < end:
            number, rest = divmod(at, self.per_cell)
            which, index = divmod(rest, deals)
            stop = min(deals, index + end - at)
            yield self.cells[number], self.seeds[which], range(index, stop)
            at += stop - index


def _cells(config: SweepConfig) -> Iterator[Cell]:
    number = 0
    clocks = Clocks(config.clocks.adjudicate_steps, config.clocks.settle_steps)
    for counterparty in config.counterparties:
        for agent in config.agents:
            for offer in config.offers:
                for noise in config.noise:
                    setting = Setting(
                        c=counterparty,
                        a=agent,
                        k=noise.checker,
                        terms=terms_of(offer),
                        forged=noise.forged,
                        forged_rate=noise.forged_rate,
                        series=config.series,
                        clocks=clocks,
                        budget=config.budget,
                    )
                    yield Cell(number, counterparty, agent, offer.name, noise.name, setting)
                    number += 1


def terms_of(offer: OfferConfig) -> Terms:
    """Return what C may offer."""
    options = tuple({"id": option.id, "desc": option.desc} for option in offer.object_options)
    return Terms(offer.amount, options, offer.checklist, offer.deadline_steps, offer.expires_steps)


# Reading -------------------------------------------------------------------------------------------------------------


def read_sweep(data: bytes, file: str | None = None) -> Sweep:
    """Return the sweep that a TOML file describes.

    Args:
        data: the file's bytes.
        file: its name, for the refusal's place.

    Raises:
        Refused: ``E_SWEEP_CONFIG`` with the place, or ``E_POLICY`` and ``E_SETTING`` with it.
    """
    if len(data) > MAX_FILE_BYTES:
        raise _refused(f"the configuration is longer than {MAX_FILE_BYTES} bytes", "Shorten it.", file, None, None)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise _refused(f"byte {fault.start} is not UTF-8", "Save it as UTF-8.", file, None, None) from None
    try:
        value = tomllib.loads(text)
    except ValueError as fault:  # of TOML's own, or a number of more digits than are read
        found = re.search(r" \(at line (\d+), column (\d+)\)", str(fault))
        why = str(fault)[: found.start()] if found else str(fault).partition(" (at ")[0]
        line = int(found[1]) if found else None
        raise _refused(f"it is not TOML: {why}", _SEE, file, line, None) from None
    except RecursionError:
        raise _refused("it is nested too deep", _SEE, file, None, None) from None
    lines = _Lines(text)
    try:
        config = msgspec.convert(value, SweepConfig, strict=True)
    except msgspec.ValidationError as fault:
        raise _told(fault, lines, file) from None
    _check(config, lines, file)
    return Sweep(config)


_SEE: Final = "`troth deal sweep --example` prints one to start from."


def _refused(why: str, remedy: str, file: str | None, line: int | None, path: str | None) -> Refused:
    return Refused("E_SWEEP_CONFIG", why, remedy=remedy, place=Place(file, line, path))


_AT: Final = re.compile(r"(.*?)(?: - at `(.*)`)?\Z", re.DOTALL)
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`\Z", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(.*)`\Z", re.DOTALL)
_WORDS: Final[Mapping[str, str]] = {
    "array": "list", "object": "table", "str": "text", "int": "whole number", "float": "number", "null": "nothing",
    "bool": "true or false",
}  # fmt: skip


def _told(fault: msgspec.ValidationError, lines: _Lines, file: str | None) -> Refused:
    found = _AT.match(str(fault))
    why, path = (found[1], found[2] or "$") if found else (str(fault), "$")
    unknown, missing = _UNKNOWN.match(why), _MISSING.match(why)
    if unknown:
        import difflib

        path = f"{path}.{unknown[1]}"
        near = difflib.get_close_matches(unknown[1], _KEYS, n=1)
        remedy = f"Did you mean {near[0]}?" if near else f"Leave it out. {_SEE}"
        return _refused(f"no such key: {unknown[1][:80]!r}", remedy, file, lines.of(path), path)
    if missing:
        line = lines.of(path) if path != "$" else None
        return _refused(f"the key {missing[1]!r} is missing", f"Add it. {_SEE}", file, line, f"{path}.{missing[1]}")
    why = re.sub(r"`([^`]*)`", lambda match: " or ".join(_WORDS.get(word, word) for word in match[1].split(" | ")), why)
    return _refused(why[:1].lower() + why[1:], f"Mend the value. {_SEE}", file, lines.of(path), path)


_KEYS: Final = sorted(
    {
        field.encode_name
        for made in (SweepConfig, OfferConfig, NoiseConfig, ClocksConfig, SeedRange, Option)
        for field in msgspec.structs.fields(made)
    }
)


def _check(config: SweepConfig, lines: _Lines, file: str | None) -> None:
    """Refuse what no schema tells: names that stand twice, numbers that do not fit, policies that nobody has."""
    lists: tuple[tuple[str, list[str], str], ...] = (
        ("counterparties", list(config.counterparties), ""),
        ("agents", list(config.agents), ""),
        ("offers", [offer.name for offer in config.offers], ".name"),
        ("noise", [noise.name for noise in config.noise], ".name"),
    )
    for key, names, inner in lists:
        for number, name in enumerate(names):
            if name in names[:number]:
                path = f"$.{key}[{number}]{inner}"
                raise _refused(f"{name!r} stands twice", "Leave one out or rename it.", file, lines.of(path), path)
    if not isinstance(config.seeds, SeedRange) and len(set(config.seeds)) != len(config.seeds):
        raise _refused("a seed stands twice", "List each once.", file, lines.of("$.seeds"), "$.seeds")
    if isinstance(config.seeds, SeedRange) and config.seeds.first + config.seeds.count > 2**53:
        raise _refused("the seeds end beyond 2^53", "Begin lower.", file, lines.of("$.seeds"), "$.seeds")
    for key, value in (("deals", config.deals), ("chunk", config.chunk)):
        if value % config.series:
            why = f"{value} is no multiple of the series of {config.series} deals that one agent plays"
            raise _refused(why, "Choose a multiple of series.", file, lines.of(f"$.{key}"), f"$.{key}")
    cells = len(config.counterparties) * len(config.agents) * len(config.offers) * len(config.noise)
    seeds = config.seeds.count if isinstance(config.seeds, SeedRange) else len(config.seeds)
    if cells > MAX_CELLS or cells * seeds * config.deals > MAX_DEALS:
        why = f"{cells} combinations and {cells * seeds * config.deals} deals are more than a sweep takes"
        raise _refused(why, f"At most {MAX_CELLS} and {MAX_DEALS}: split it.", file, None, "$")
    for path, setting in _each(config):
        try:
            Game(setting)
        except Refused as fault:
            fault.place = Place(file, lines.of(path), path)
            raise
    for number, offer in enumerate(config.offers):
        path = f"$.offers[{number}]"
        why_not = unfit(terms_of(offer))
        if why_not is not None:
            raise _refused(why_not, "Mend the offer.", file, lines.of(f"{path}.checklist"), f"{path}.checklist")


def _each(config: SweepConfig) -> Iterator[tuple[str, Setting]]:
    """Yield (path, setting) of every policy alone."""
    yield from ((f"$.counterparties[{number}]", Setting(c=spec)) for number, spec in enumerate(config.counterparties))
    yield from ((f"$.agents[{number}]", Setting(a=spec)) for number, spec in enumerate(config.agents))
    yield from ((f"$.noise[{number}].checker", Setting(k=one.checker)) for number, one in enumerate(config.noise))


def unfit(terms: Terms) -> str | None:
    """Return why the reader of deals would take no offer with these terms; ``None`` when it would."""
    chosen: dict[str, Any] = {} if terms.checklist is None else {"checklist": terms.checklist}
    message = {
        "msg_id": "msg_1", "ts": "2026-01-01T00:00:00Z", "from": "C", "to": "A", "type": "Offer",
        **offer_body(
            "off_1", amount=terms.amount, object_options=terms.object_options, deadline_steps=terms.deadline_steps,
            expires_steps=terms.expires_steps, **chosen,
        ),
    }  # fmt: skip
    try:
        read_message(message)
        canonical(message)
    except (Malformed, ValueError) as fault:
        return str(fault)
    return None if _is_json(terms.checklist) else "a value that no message can carry"


def _is_json(value: Any) -> bool:
    """Tell whether a value of TOML is one of JSON: no date, no number that is none."""
    if isinstance(value, dict):
        return all(_is_json(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return all(_is_json(item) for item in value)
    if isinstance(value, float):
        return value - value == 0
    return value is None or isinstance(value, (str, bool)) or (isinstance(value, int) and abs(value) < 2**53)


class _Lines:
    """Where keys stand in a TOML text written one key a line, as people write it; whatever is not is not found."""

    _TABLE = re.compile(r"\s*(\[\[?)\s*([A-Za-z0-9_.-]+)\s*\]\]?\s*(?:#.*)?\Z")
    _KEY = re.compile(r"\s*([A-Za-z0-9_-]+)\s*=")

    def __init__(self, text: str) -> None:
        self._found: dict[str, int] = {}
        table, counts = "$", {}  # type: tuple[str, dict[str, int]]
        for number, line in enumerate(text.splitlines(), 1):
            head = self._TABLE.match(line)
            if head:
                table = f"$.{head[2]}"
                if head[1] == "[[":
                    counts[table] = counts.get(table, -1) + 1
                    table = f"{table}[{counts[table]}]"
                self._found.setdefault(table, number)
                continue
            key = self._KEY.match(line)
            if key:
                self._found.setdefault(f"{table}.{key[1]}", number)

    def of(self, path: str) -> int | None:
        """Return the line of a path, or of the nearest thing around it."""
        while path not in self._found:
            cut = max(path.rfind("."), path.rfind("["))
            if cut <= 0:
                return None
            path = path[:cut]
        return self._found[path]


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a configuration, for editors; what no schema tells is refused by :func:`read_sweep`."""
    made = msgspec.json.schema(SweepConfig)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A sweep of simulated deals", **made}


EXAMPLE: Final = """\
# A sweep of simulated deals: every counterparty x agent x offer x noise x seed, `deals` of each.
# Experimental and non-transfer: what comes out says nothing about the world.
#
#     troth deal sweep THIS-FILE --out results --jobs 2

name = "example"

# All chance derives from a seed and a deal's index. A list, or { first = 0, count = 100 }.
seeds = [0, 1]

# Deals of each combination with each seed.
deals = 250

# Deals in a row that one agent plays; of use with `learning`, which is a new one after so many.
series = 1

# Deals that are kept at once: as much as an interruption can cost.
chunk = 2000

# Who makes the offers: honest, withholding, accusing, mutating(...), superseding, holds_early, holds_other(...),
# no_hold, forges_hold, deceptive(...), poisoning(...).
counterparties = ["honest", "withholding"]

# Who answers them: cooperative, vigilant, protesting, rejecting, ignoring, ghosting, refusing(...), failing, stuffing,
# mixed(...), rational(...), learning(...), suspicious(...).
agents = ["cooperative", "rational(belief=0.7, reserve=0, reserve_to=14, non_punishment=4)"]

# What is offered. `checklist` may replace the two items of the protocol's own offer.
[[offers]]
name = "cash"
amount = 10
deadline_steps = 5
expires_steps = 3

[[offers]]
name = "both"
amount = 10
object_options = [{ id = "non_punishment", desc = "No penalty for honest disclosure in-sim" }]

# What disturbs a deal: the checker (honest, noisy(...), inconclusive(...), colludes_with(...), stalling, insisting),
# and how often the environment forges a deal: forged_hold, forged_honesty or doctored_transcript_ready.
[[noise]]
name = "none"

[[noise]]
name = "errs and forges"
checker = "noisy(0.05, 0.1)"
forged = "forged_hold"
forged_rate = 0.2

# Steps that the checker and, after its pass, the counterparty may take. Without settle_steps: the offer's deadline.
[clocks]
adjudicate_steps = 2
"""
"""A configuration that runs, with every key explained."""
