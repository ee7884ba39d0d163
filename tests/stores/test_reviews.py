"""Run folders of reviews: claimed, owner-only, durable, closed to paths and links."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from troth.core.digests import sha256_hex
from troth.core.errors import Refused
from troth.review.artifact import Artifact
from troth.stores.reviews import IGNORE, MAX_ID, ReviewFolder, Reviews, safe_id


def refused(code: str) -> pytest.RaisesExc[Refused]:
    return pytest.RaisesExc(Refused, check=lambda fault: fault.code == code)


def kept(folder: ReviewFolder, members: list[tuple[str, bytes]]) -> Artifact:
    artifact = Artifact(members)
    listed = [
        {"path": member.path, "bytes": len(member.data), "sha256": sha256_hex(member.data)}
        for member in artifact.members.values()
    ]
    folder.write("payload", artifact.payload)
    folder.write_json("run.json", {"created": "2026-04-02T10:30:00Z", "members": listed, "revision": artifact.revision})
    return artifact


@pytest.mark.parametrize(
    ("wanted", "start", "changed"),
    [
        ("memo", "memo", False),
        ("memo-2.final_1", "memo-2.final_1", False),
        ("a b", "a-b-", True),
        ("../../etc/passwd", "..-..-etc-passwd-", True),
        (".", "unknown-", True),
        ("...", "unknown-", True),
        ("", "unknown-", True),
        ("über", "-ber-", True),
        ("x" * 200, "x" * 107 + "-", True),
        ("x" * 120, "x" * 120, False),
    ],
)
def test_ids_are_made_safe(wanted: str, start: str, changed: bool) -> None:
    found = safe_id(wanted)
    assert found.startswith(start)
    assert (found != wanted) == changed
    assert len(found) <= MAX_ID
    assert safe_id(found) == found
    if changed:
        assert found == start + sha256_hex(wanted.encode())[:12]


def test_two_ids_that_clean_alike_stay_two() -> None:
    assert safe_id("a b") != safe_id("a/b")


def test_a_folder_is_claimed_once(tmp_path: Path) -> None:
    reviews = Reviews(tmp_path / "reviews")
    ids = [reviews.claim("memo").id for _ in range(3)]
    assert ids == ["memo", "memo-2", "memo-3"]
    long = "x" * MAX_ID
    assert [reviews.claim(long).id for _ in range(2)] == [long, "x" * (MAX_ID - 2) + "-2"]


def test_only_the_owner_can_look(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        folder = Reviews(tmp_path / "reviews").claim("memo")
        folder.write("raw/answer-1", b"x")
        folder.append("events.jsonl", b"{}\n")
        folder.write("run.json", b"{}\n")
        folder.write("run.json", b"{}\n")
        folder.archive("run.json")
    finally:
        os.umask(old)
    modes = {path.relative_to(tmp_path): path.lstat().st_mode for path in (tmp_path / "reviews").rglob("*")}
    assert len(modes) == 9
    for path, mode in modes.items():
        assert stat.S_IMODE(mode) == (0o700 if stat.S_ISDIR(mode) else 0o600), path
    assert stat.S_IMODE((tmp_path / "reviews").stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "name",
    ["../x", "/etc/passwd", "raw", "archive", "raw/../x", "other/x", "a/b/c", "", ".", "..", ".lock", "raw/", "x\n"],
)
def test_a_name_reaches_nowhere_else(tmp_path: Path, name: str) -> None:
    folder = Reviews(tmp_path / "reviews").claim("memo")
    for act in (folder.read, folder.has, lambda n: folder.write(n, b""), lambda n: folder.append(n, b"\n")):
        with refused("E_REVIEW_FILE"):
            act(name)
    assert sorted(path.name for path in folder.path.iterdir()) == [".lock"]


def test_links_are_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret\n")
    reviews = Reviews(tmp_path / "reviews")
    folder = reviews.claim("memo")
    (folder.path / "events.jsonl").symlink_to(secret)
    for act in (lambda: folder.read("events.jsonl"), lambda: folder.append("events.jsonl", b"{}\n")):
        with refused("E_NOT_REGULAR"):
            act()
    (folder.path / "raw").symlink_to(tmp_path)
    with refused("E_NOT_REGULAR"):
        folder.read("raw/secret")
    with refused("E_NOT_REGULAR"):
        folder.write("raw/secret", b"")
    (reviews.folder / "linked").symlink_to(tmp_path)
    with refused("E_NOT_REGULAR"):
        reviews.open("linked")
    with refused("E_NOT_REGULAR"):
        reviews.forget(ReviewFolder(reviews.folder / "linked"))
    assert [found.id for found in reviews.list()] == ["memo"]
    # A file put in the place of a link takes the name, and leaves what the link led to.
    folder.write("events.jsonl", b"new\n")
    assert secret.read_bytes() == b"secret\n"
    (tmp_path / "elsewhere").symlink_to(tmp_path)
    with refused("E_NOT_REGULAR"):
        Reviews(tmp_path / "elsewhere").claim("memo")


def test_a_torn_line_was_never_acknowledged(tmp_path: Path) -> None:
    folder = Reviews(tmp_path / "reviews").claim("memo")
    folder.append("events.jsonl", b'{"a":1}\n{"a":2}\n')
    with open(folder.path / "events.jsonl", "ab") as file:
        file.write(b'{"a":3' + b" " * 200_000)
    assert folder.values("events.jsonl") == [{"a": 1}, {"a": 2}]
    folder.append("events.jsonl", b'{"a":4}\n')
    assert folder.read("events.jsonl") == b'{"a":1}\n{"a":2}\n{"a":4}\n'
    with open(folder.path / "calls.jsonl", "ab") as file:
        file.write(b"torn from the first line on")
    assert folder.values("calls.jsonl") == []
    folder.append("calls.jsonl", b"{}\n")
    assert folder.read("calls.jsonl") == b"{}\n"
    with open(folder.path / "calls.jsonl", "ab") as file:
        file.write(b"not json\n")
    with refused("E_REVIEW_UNREADABLE"):
        folder.values("calls.jsonl")


def test_what_cannot_be_written_leaves_what_stood_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Reviews(tmp_path / "reviews").claim("memo")
    folder.write("run.json", b"{}\n")
    folder.append("events.jsonl", b"{}\n")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("troth.stores.durable.write_all", full)
    with refused("E_WRITE_FAILED"):
        folder.write("run.json", b"{1}\n")
    with refused("E_WRITE_FAILED"):
        folder.append("events.jsonl", b"{1}\n")
    monkeypatch.undo()
    assert folder.read("run.json") == folder.read("events.jsonl") == b"{}\n"
    assert sorted(path.name for path in folder.path.iterdir()) == [".lock", "events.jsonl", "run.json"]


def test_the_artifact_comes_back_as_it_was_sent(tmp_path: Path) -> None:
    reviews = Reviews(tmp_path / "reviews")
    for number, members in enumerate(
        (
            [("memo.md", b"# Memo\r\n\xff")],
            [("b", b""), ("a/\u00fc", b"--- impasse-file 0 b\n\n"), ("c", b"x")],
            [("e", b"")],
        )
    ):
        folder = reviews.claim(f"r{number}")
        artifact = kept(folder, members)
        found = folder.members()
        assert found.payload == artifact.payload
        assert {path: member.data for path, member in found.members.items()} == dict(members)


@pytest.mark.parametrize("change", ["payload", "member", "revision", "gone", "sizes"])
def test_other_bytes_are_not_what_was_reviewed(tmp_path: Path, change: str) -> None:
    folder = Reviews(tmp_path / "reviews").claim("memo")
    kept(folder, [("a", b"one"), ("b", b"two")])
    run = json.loads(folder.read("run.json"))
    if change == "payload":
        folder.write("payload", folder.read("payload").replace(b"two", b"TWO"))
    elif change == "gone":
        (folder.path / "payload").unlink()
    elif change == "member":
        run["members"][0]["sha256"] = "0" * 64
    elif change == "revision":
        run["revision"]["value"] = "0" * 64
    else:
        run["members"][0]["bytes"] = 4
    folder.write_json("run.json", run)
    with refused("artifact_unavailable"):
        folder.members()


def test_runs_are_found_by_what_begins_them(tmp_path: Path) -> None:
    reviews = Reviews(tmp_path / "reviews")
    with refused("E_REVIEW_UNKNOWN"):
        reviews.find("@last")
    for number, name in enumerate(("memo", "memo", "draft")):
        reviews.claim(name).write_json("run.json", {"created": f"2026-04-02T10:30:0{9 - number}Z"})
    assert [folder.id for folder in reviews.list()] == ["draft", "memo-2", "memo"]
    assert reviews.find("@last").id == "memo"
    assert reviews.find("memo").id == "memo"
    assert reviews.find("memo-").id == "memo-2"
    assert reviews.find("d").id == "draft"
    with refused("E_AMBIGUOUS_ID"):
        reviews.find("mem")
    for word in ("other", "", "../reviews/memo", "MEMO/."):
        with refused("E_REVIEW_UNKNOWN"):
            reviews.find(word)


def test_a_run_is_forgotten_and_gone(tmp_path: Path) -> None:
    reviews = Reviews(tmp_path / "reviews")
    folder = reviews.claim("memo")
    folder.write("raw/answer-1", b"x")
    reviews.forget(folder)
    assert [path.name for path in reviews.folder.iterdir()] == [IGNORE]
    # What a crash left half removed is no run, and the next sweep takes it.
    left = reviews.folder / ".gone~0123456789ab"
    left.mkdir()
    (left / "payload").write_bytes(b"x")
    assert reviews.list() == []
    reviews.sweep()
    assert list(reviews.folder.iterdir()) == [reviews.folder / IGNORE]


def test_the_archive_keeps_each_once(tmp_path: Path) -> None:
    folder = Reviews(tmp_path / "reviews").claim("memo")
    assert folder.archive("reconciliation.json") is None
    for text in (b"1\n", b"1\n", b"2\n"):
        folder.write("reconciliation.json", text)
        folder.archive("reconciliation.json")
    assert folder.names("archive") == ["archive/reconciliation-0001.json", "archive/reconciliation-0002.json"]
    assert [folder.read(name) for name in folder.names("archive")] == [b"1\n", b"2\n"]


def test_one_command_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("troth.stores.lock.WAIT_SECONDS", 0.05)
    monkeypatch.setattr("troth.stores.lock.exclusive.__defaults__", (0.05,))
    folder = Reviews(tmp_path / "reviews").claim("memo")
    with (
        folder.exclusively(),
        pytest.raises(Exception, match="another command is at work on the review memo"),
        folder.exclusively(),
    ):
        raise AssertionError
    with folder.exclusively():
        pass
