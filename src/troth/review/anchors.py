"""Anchors resolved in the artifact's bytes: each leads to places in members, or tells which rule it breaks (§5 L3).

Text is decoded as UTF-8 and CRLF becomes LF on both sides; nothing else is normalised. Lines end at LF.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from troth.core.digests import sha256_hex
from troth.review.artifact import Artifact, Member, NotJson
from troth.review.sections import body_of
from troth.review.structure import whole

_PARAGRAPH: Final = re.compile(r"(?:\n[^\S\n]*)+\n")
_INDEX: Final = re.compile(r"(?:0|[1-9][0-9]*)\Z")
_TILDE: Final = re.compile(r"~(?![01])")


class Span(NamedTuple):
    """A place in a member's text: characters from ``start`` up to, not including, ``end``."""

    path: str
    start: int
    end: int


class Fault(NamedTuple):
    """What is wrong with an anchor: the rule, the member of the anchor that breaks it, a sentence."""

    rule: str
    member: str
    message: str


class Resolved(NamedTuple):
    """What an anchor leads to.

    ``unchecked`` names what can neither pass nor fail, as (member of the anchor, sentence).
    """

    spans: tuple[Span, ...] = ()
    value: Any = None
    faults: tuple[Fault, ...] = ()
    unchecked: tuple[tuple[str, str], ...] = ()

    @property
    def holds(self) -> bool:
        """Whether no rule is broken."""
        return not self.faults


def resolve(anchor: dict[str, Any], artifact: Artifact) -> Resolved:
    """Resolve one anchor that has the members of its type (L1), and say which L3 rule it breaks.

    The first fault that makes further questions meaningless is the only one told.
    """
    return _BY_TYPE[anchor["type"]](anchor, artifact)


def normal(text: str) -> str:
    """Return the text with CRLF made LF."""
    return text.replace("\r\n", "\n")


def _not_a_member(path: str, artifact: Artifact) -> Fault:
    held = ", ".join(list(artifact.members)[:5]) + (", …" if len(artifact.members) > 5 else "")
    return Fault("path-in-artifact", "path", f"the artifact has no member {path!r}; it has {held}")


# --- file_range ---


def _file_range(anchor: dict[str, Any], artifact: Artifact) -> Resolved:
    member = artifact.members.get(anchor["path"])
    if member is None:
        return Resolved(faults=(_not_a_member(anchor["path"], artifact),))
    faults = []
    spans: list[Span] = []
    count = len(member.lines)
    start, end = (whole(anchor[name]) if name in anchor else None for name in ("line_start", "line_end"))
    beyond = next((name for name, line in (("line_start", start), ("line_end", end)) if line and line > count), None)
    if beyond is not None:
        said = f"{count} line{'' if count == 1 else 's'}" if member.text is not None else "no text"
        faults.append(Fault("line-in-file", beyond, f"{member.path} has {said}, so no line {anchor[beyond]}"))
    elif start is not None:
        spans.append(Span(member.path, member.starts[start - 1], member.starts[max(start, end or start)]))
    symbol = anchor.get("symbol")
    if symbol is not None:
        found = member.text.find(normal(symbol)) if member.text is not None else -1
        if found < 0:
            faults.append(Fault("symbol-in-file", "symbol", f"{symbol!r} does not occur in {member.path}"))
        elif not spans and not faults:
            spans.append(Span(member.path, found, found + len(normal(symbol))))
    if not spans and not faults:
        spans.append(Span(member.path, 0, len(member.text or "")))
    return Resolved(tuple(spans), faults=tuple(faults))


# --- section ---


def _section(anchor: dict[str, Any], artifact: Artifact) -> Resolved:
    members = list(artifact.members.values())
    if "path" in anchor:
        member = artifact.members.get(anchor["path"])
        if member is None:
            return Resolved(faults=(_not_a_member(anchor["path"], artifact),))
        members = [member]
    found = _section_body(anchor["heading"], members)
    if found is None:
        return Resolved(faults=(_no_section("heading", anchor["heading"]),))
    return Resolved((found,))


def _section_body(heading: str, members: list[Member]) -> Span | None:
    for member in members:
        found = body_of(normal(heading), member)
        if found is not None:
            return Span(member.path, *found)
    return None


def _no_section(member: str, heading: str) -> Fault:
    return Fault("section-in-artifact", member, f"the artifact has no section {heading!r}")


# --- text_quote ---


def _text_quote(anchor: dict[str, Any], artifact: Artifact) -> Resolved:
    within = [Span(m.path, 0, len(m.text)) for m in artifact.members.values() if m.text is not None]
    if "section" in anchor:
        body = _section_body(anchor["section"], list(artifact.members.values()))
        if body is None:
            return Resolved(faults=(_no_section("section", anchor["section"]),))
        within = [body]
    where = f" in section {anchor['section']!r}" if "section" in anchor else ""
    if "quote" in anchor:
        spans = tuple(_matches(normal(anchor["quote"]), within, artifact))
        missing = Fault("quote-in-artifact", "quote", f"the quote does not occur{where}")
    else:
        spans = tuple(_digested(anchor["digest"], within, artifact, whole_members="section" not in anchor))
        missing = Fault("digest-in-artifact", "digest", f"no member, line, paragraph or section has this digest{where}")
    if not spans:
        return Resolved(faults=(missing,))
    wanted = whole(anchor.get("occurrence", 1)) or 1
    if len(spans) < wanted:
        said = f"{len(spans)} match{'' if len(spans) == 1 else 'es'}{where}, not {wanted}"
        return Resolved(faults=(Fault("quote-occurrence", "occurrence", said),))
    return Resolved(spans[wanted - 1 : wanted] if "occurrence" in anchor else spans)


def _matches(quote: str, within: list[Span], artifact: Artifact) -> Iterator[Span]:
    """Yield the matches that do not overlap, from left to right, members in the order of their paths."""
    for span in within:
        text = artifact.members[span.path].text or ""
        at = text.find(quote, span.start, span.end)
        while at >= 0:
            yield Span(span.path, at, at + len(quote))
            at = text.find(quote, at + len(quote), span.end)


def _digested(digest: str, within: list[Span], artifact: Artifact, *, whole_members: bool) -> Iterator[Span]:
    """Yield each place, once, whose bytes have the digest: members, section bodies, paragraphs and lines."""
    wanted = digest.lower().removeprefix("sha256:")
    seen: set[Span] = set()
    if whole_members:
        for member in artifact.members.values():
            place = Span(member.path, 0, len(member.text or ""))
            if sha256_hex(member.data) == wanted:
                seen.add(place)
                yield place
    for span in within:
        for place in _parts(span, artifact.members[span.path], bodies=whole_members):
            text = (artifact.members[place.path].text or "")[place.start : place.end]
            if place not in seen and sha256_hex(text.encode()) == wanted:
                seen.add(place)
                yield place


def _parts(span: Span, member: Member, *, bodies: bool) -> Iterator[Span]:
    from troth.review.sections import bodies_of

    text = member.text or ""
    yield span
    yield _trimmed(span, text)
    if bodies:
        for start, end in bodies_of(member):
            yield Span(member.path, start, end)
            yield _trimmed(Span(member.path, start, end), text)
    at = span.start
    for gap in _PARAGRAPH.finditer(text, span.start, span.end):
        yield _trimmed(Span(span.path, at, gap.start()), text)
        at = gap.end()
    yield _trimmed(Span(span.path, at, span.end), text)
    at = span.start
    while at < span.end:
        end = text.find("\n", at, span.end)
        end = span.end if end < 0 else end
        yield Span(span.path, at, end)
        at = end + 1


def _trimmed(span: Span, text: str) -> Span:
    start, end = span.start, span.end
    while start < end and text[start] == "\n":
        start += 1
    while end > start and text[end - 1] == "\n":
        end -= 1
    return Span(span.path, start, end)


# --- structured_path and generic ---


def _structured_path(anchor: dict[str, Any], artifact: Artifact) -> Resolved:
    kind = anchor.get("format", "json_pointer")
    if kind != "json_pointer":
        return Resolved(unchecked=(("pointer", f"a path of format {kind} is not checked"),))
    readable = 0
    for member in artifact.members.values():
        try:
            value = member.json()
        except NotJson:
            continue
        readable += 1
        try:
            found = pointed(anchor["pointer"], value)
        except LookupError:
            continue
        return Resolved((Span(member.path, 0, 0),), found)
    said = "leads nowhere" if readable else "needs a member that is JSON, and there is none"
    return Resolved(faults=(Fault("pointer-resolves", "pointer", f"{anchor['pointer']!r} {said}"),))


def pointed(pointer: str, value: Any) -> Any:
    """Return what a JSON Pointer leads to (RFC 6901).

    Raises:
        LookupError: it leads nowhere; ``-`` and an index with a leading zero never lead anywhere.
    """
    if _TILDE.search(pointer) or (pointer and not pointer.startswith("/")):
        raise LookupError(pointer)
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value[name]
        elif isinstance(value, list) and _INDEX.match(name) and len(name) < 16:
            value = value[int(name)]
        else:
            raise LookupError(pointer)
    return value


def _generic(anchor: dict[str, Any], artifact: Artifact) -> Resolved:
    unchecked = (("locator", "a locator is not checked"),)
    if "excerpt" not in anchor:
        return Resolved(unchecked=unchecked)
    within = [Span(m.path, 0, len(m.text)) for m in artifact.members.values() if m.text is not None]
    spans = tuple(_matches(normal(anchor["excerpt"]), within, artifact))
    faults = () if spans else (Fault("excerpt-in-artifact", "excerpt", "the excerpt does not occur"),)
    return Resolved(spans, faults=faults, unchecked=unchecked)


_BY_TYPE: Final = {
    "file_range": _file_range,
    "text_quote": _text_quote,
    "section": _section,
    "structured_path": _structured_path,
    "generic": _generic,
}
