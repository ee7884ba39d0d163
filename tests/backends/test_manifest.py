"""The payload manifest: what is told is what is sent."""

from __future__ import annotations

import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth.backends.manifest import manifest
from troth.review.artifact import Artifact

KEY = "https://api.openai.com"
MEMBERS = st.dictionaries(
    st.from_regex(r"[a-z]{1,6}(/[a-z]{1,4})?", fullmatch=True), st.binary(max_size=60), min_size=1
)


@given(MEMBERS, st.binary(max_size=40), st.binary(max_size=40), st.binary(max_size=40))
def test_every_byte_is_accounted_for(
    members: dict[str, bytes], instruction: bytes, schema: bytes, rebuttal: bytes
) -> None:
    artifact = Artifact(members.items())
    held = [(path, member.data) for path, member in artifact.members.items()]
    made = manifest(KEY, artifact.payload, held, instruction=instruction, schema=schema, rebuttal=rebuttal)
    told = made.as_json()
    everything = artifact.payload + instruction + schema + rebuttal
    assert told["total_bytes"] == len(everything)
    assert told["estimated_tokens"] == len(everything) // 4
    assert told["payload_sha256"] == artifact.digest
    assert [(one["path"], one["bytes"]) for one in told["members"]] == [(path, len(data)) for path, data in held]
    assert all(
        one["sha256"] == hashlib.sha256(data).hexdigest() for one, (_, data) in zip(told["members"], held, strict=True)
    )
    # What a person is shown sums up to the total.
    lines = made.lines()
    numbers = [int(match[1].replace(",", "")) for line in lines if (match := re.match(r" +([\d,]+)  ", line))]
    assert sum(numbers[:-1]) == numbers[-1] == len(everything)


def test_the_table() -> None:
    artifact = Artifact([("memo.md", b"x" * 1200)])
    made = manifest(KEY, artifact.payload, [("memo.md", b"x" * 1200)], instruction=b"i" * 10, schema=b"s" * 34)
    assert made.lines() == [
        "to be sent to https://api.openai.com",
        "  1,200  memo.md",
        "     10  (instruction)",
        "     34  (response schema)",
        "  1,244  bytes in all, about 311 tokens",
        f"  payload sha256 {artifact.digest}",
    ]


def test_of_very_many_members_the_largest_are_shown() -> None:
    members = [(f"f{number:04}", b"x" * number) for number in range(500)]
    lines = manifest(KEY, b"".join(data for _, data in members), members, instruction=b"").lines()
    assert any("(460 more)" in line for line in lines)
    assert any("f0499" in line for line in lines)
    assert len(lines) < 50


@pytest.mark.parametrize("path", ["a\x1b[2Jb", "a\u202eb", "a\nb"])
def test_a_name_drives_no_terminal(path: str) -> None:
    text = "\n".join(manifest(KEY, b"x", [(path, b"x")], instruction=b"").lines())
    assert path not in text
