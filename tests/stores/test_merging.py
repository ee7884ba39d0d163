"""Merging ledger files: bytes kept, nothing half, nobody's row lost; and the command at the front door."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from ledger.building import Ledger, lines
from stores.test_concurrency import Worker
from stores.test_crash import CHANGING, LOOKING, _calls, _killing, _run, needs_strace
from support.ledgers import capture, commitment, fresh, ticking
from support.shell import Shell, make_shell
from troth.core.errors import Busy, DoesNotHold, Refused
from troth.ledger.operations import Candidate
from troth.stores.jsonl import JsonlStore
from troth.stores.merging import merge


@pytest.fixture
def troth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Shell:
    """Run commands in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TROTH_ACTOR", "agent:worker")
    return make_shell(capfd)


def apart(root: Path, rows: int = 3) -> tuple[JsonlStore, JsonlStore]:
    """Return two workspaces that share an observation and a commitment; both went on, with ids of their own."""
    ours = fresh(root / "a")
    about = commitment(ours)
    shutil.copytree(root / "a", root / "b")
    theirs = JsonlStore.open(root / "b", clock=ticking())
    ours.append(Candidate("claim", "agent:worker", {"body": "mine", "commitment": about}))
    theirs.append(Candidate("claim", "agent:rival", {"body": "mine", "commitment": about}))
    for number in range(rows):
        capture(ours, f"a {number}")
        capture(theirs, f"b {number}", "agent:rival")
    return ours, theirs


def bodies(store: JsonlStore) -> list[str]:
    return [row.value["payload"]["body"] for row in store.read().rows]


def test_a_new_file_gets_the_result_and_both_ledgers_stay(tmp_path: Path) -> None:
    ours, theirs = apart(tmp_path)
    before = ours.ledger_file.read_bytes(), theirs.ledger_file.read_bytes()
    out = tmp_path / "both.jsonl"
    done = merge(tmp_path / "a", tmp_path / "b", out=out, clock=ticking())
    assert (ours.ledger_file.read_bytes(), theirs.ledger_file.read_bytes()) == before
    assert out.read_bytes().startswith(before[0])
    assert done.found.ok
    assert JsonlStore.open(out).verify().head == done.found.head
    assert [(one.code, one.line) for one in done.lost] == [("E_ALREADY_CLAIMED", 7)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "both.jsonl"]
    with pytest.raises(Refused) as caught:
        merge(tmp_path / "a", tmp_path / "b", out=out)
    assert caught.value.code == "E_FILE_EXISTS"


def test_in_place_keeps_the_mode_and_an_open_store_goes_on(tmp_path: Path) -> None:
    ours, theirs = apart(tmp_path)
    os.chmod(ours.ledger_file, 0o600)
    before = ours.ledger_file.read_bytes()
    kept = bodies(ours)
    merge(tmp_path / "a", tmp_path / "b", in_place=True)
    assert stat.S_IMODE(os.stat(ours.ledger_file).st_mode) == 0o600
    assert ours.ledger_file.read_bytes().startswith(before)
    capture(ours, "after")
    found = bodies(ours)
    assert found[: len(kept)] == kept
    assert set(bodies(theirs)) < set(found)
    assert found[-1] == "after"
    assert ours.verify().ok
    assert sorted(os.listdir(tmp_path / "a" / ".mentu")) == [".lock", "AGENTS.md", "config.yaml", "ledger.jsonl"]


def test_a_dry_run_and_nothing_to_add_write_nothing(tmp_path: Path) -> None:
    ours, _ = apart(tmp_path)
    before = os.stat(ours.ledger_file)
    planned = merge(tmp_path / "a", tmp_path / "b", clock=ticking())
    assert planned.found.ok
    assert merge(tmp_path / "a", tmp_path / "a", in_place=True).plan.outcome == "nothing_to_add"
    assert os.stat(ours.ledger_file) == before
    done = merge(tmp_path / "a", tmp_path / "b", in_place=True, clock=ticking())
    assert (done.found, done.lost) == (planned.found, planned.lost)


@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n"], ids=["no line feed", "line feed", "blank line"])
def test_odd_bytes_of_the_first_ledger_stay(tmp_path: Path, end: bytes) -> None:
    sides = []
    for side in "ab":
        ledger = Ledger()
        ledger.add("capture")
        ledger.add("capture", body=side, id=f"mem_{side * 8}")
        path = tmp_path / f"{side}.jsonl"
        data = lines(ledger.rows).replace(b"\n", b"\r\n").removesuffix(b"\r\n") + end
        path.write_bytes(b"\xef\xbb\xbf" + data)
        sides.append(path)
    out = tmp_path / "out.jsonl"
    done = merge(*sides, out=out)
    assert out.read_bytes().startswith(sides[0].read_bytes())
    assert (done.found.ok, done.found.total) == (True, 4)


def test_a_side_that_only_went_on_is_taken_byte_for_byte(tmp_path: Path) -> None:
    ledger = Ledger()
    ledger.add("capture", hashed=False)
    for _ in range(3):
        ledger.add("capture")
    whole = lines(ledger.rows).replace(b'"op":"capture"', b'"op" : "capture"')
    (tmp_path / "b.jsonl").write_bytes(whole)
    for cut in range(5):
        begun = b"".join(whole.splitlines(keepends=True)[:cut])
        (tmp_path / "a.jsonl").write_bytes(begun)
        out = tmp_path / f"{cut}.jsonl"
        done = merge(tmp_path / "a.jsonl", tmp_path / "b.jsonl", out=out)
        assert out.read_bytes() == whole
        assert done.plan.outcome == ("fast_forward" if cut < 4 else "nothing_to_add")


def test_a_broken_ledger_is_not_merged_from_either_side(tmp_path: Path) -> None:
    ours, theirs = apart(tmp_path)
    data = theirs.ledger_file.read_bytes()
    for bad in (data.replace(b"b 1", b"B 1"), data[:-20]):
        theirs.ledger_file.write_bytes(bad)
        for one, two in ((ours, theirs), (theirs, ours)):
            before = one.ledger_file.read_bytes()
            with pytest.raises(DoesNotHold) as caught:
                merge(one.ledger_file, two.ledger_file, in_place=True)
            assert caught.value.code == "E_CHAIN_BROKEN"
            assert one.ledger_file.read_bytes() == before


def test_a_writer_holds_a_merge_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, _ = apart(tmp_path)
    held = lambda _: (_ for _ in ()).throw(Busy("E_BUSY", "x"))  # noqa: E731 - a raise as an expression
    monkeypatch.setattr("troth.stores.ledgerfile.WriteLock.__enter__", held)
    with pytest.raises(Busy):
        merge(tmp_path / "a", tmp_path / "b", in_place=True)
    assert merge(tmp_path / "a", tmp_path / "b").found.ok  # looking waits for nobody
    assert "b 0" not in bodies(ours)


def _whole(ledger: Path, before: bytes, other: list[str]) -> bool:
    """The ledger is the old one or the new one; tell which."""
    store = JsonlStore.open(ledger)
    assert store.verify().ok
    assert ledger.read_bytes().startswith(before)
    missing = [body for body in other if body not in bodies(store)]
    assert ledger.read_bytes() == before or not missing
    return not missing


@needs_strace
@pytest.mark.parametrize(
    "names",
    [
        frozenset({"flock", "write", "fsync", "rename", "unlink"}),
        pytest.param(CHANGING | LOOKING, marks=pytest.mark.slow),
    ],
    ids=["changing", "all"],
)
def test_a_merge_killed_around_each_call(tmp_path: Path, names: frozenset[str]) -> None:
    ours, theirs = apart(tmp_path)
    ledger, before, other = ours.ledger_file, ours.ledger_file.read_bytes(), bodies(theirs)
    words = ["merge", str(tmp_path / "a"), str(tmp_path / "b")]
    calls = _calls(words, names, tmp_path / "trace")
    assert {"flock", "write", "fsync", "rename"} <= {name for name, _ in calls}
    outcomes = set()
    for name, number in calls:
        ledger.write_bytes(before)
        ended = _run(words, *_killing(name, number))
        assert ended.killed
        outcomes.add(_whole(ledger, before, other))
        capture(JsonlStore.open(tmp_path / "a"), "next")  # no lock is left behind
    assert outcomes == {False, True}


@needs_strace
@pytest.mark.parametrize(
    ("name", "error"), [("write", "ENOSPC"), ("write", "EIO"), ("fsync", "EIO"), ("rename", "EIO")]
)
def test_a_failing_disk_leaves_the_old_ledger_or_tells(tmp_path: Path, name: str, error: str) -> None:
    ours, theirs = apart(tmp_path)
    ledger, before, other = ours.ledger_file, ours.ledger_file.read_bytes(), bodies(theirs)
    words = ["merge", str(tmp_path / "a"), str(tmp_path / "b")]
    # The last words are said with `write`, too; what happens to those is no matter of the disk.
    calls = [call for call in _calls(words, frozenset({name}), tmp_path / "trace") if call[0] == name]
    calls = calls[:-1] if name == "write" else calls
    assert calls
    for _, number in calls:
        ledger.write_bytes(before)
        inject = f"inject={name}:error={error}:when={number}"
        ended = _run(words, "-o", "/dev/null", "-e", f"trace={name}", "-e", inject)
        assert ended.said[1:] == [{"code": "E_WRITE_FAILED"}]
        _whole(ledger, before, other)
        assert not list(ledger.parent.glob(".*.new"))


def test_nothing_is_lost_of_those_who_append_while_it_is_merged(tmp_path: Path) -> None:
    ours, theirs = apart(tmp_path, 40)
    kept = {*bodies(ours), *bodies(theirs)}
    workers = [Worker("many", str(tmp_path / "a"), f"worker {number}", "12") for number in range(3)]
    for worker in workers:
        assert worker.hear() == "ready"
    for worker in workers:
        worker.tell("go")
    turns = itertools.count()
    added = 0
    while any(worker.process.poll() is None for worker in workers) and next(turns) < 4:
        capture(theirs, f"later {added}", "agent:rival")
        kept.add(f"later {added}")
        merge(tmp_path / "a", tmp_path / "b", in_place=True)
        added += 1
    said = [worker.hear() for worker in workers]
    for worker in workers:
        worker.end()
    assert added
    store = JsonlStore.open(tmp_path / "a")
    assert store.verify().ok
    ids = {row.id for row in store.read().rows}
    assert {one for ids_of in said for one in ids_of} <= ids
    assert kept <= set(bodies(store))


def test_a_merge_moves_no_confidence_by_itself(tmp_path: Path) -> None:
    ours, theirs = apart(tmp_path)
    before = {}
    for store in (theirs, ours):
        trust = store.read(trust=True).trust
        before |= {name: trust.standing(name).effective for name in trust}
    done = merge(tmp_path / "a", tmp_path / "b", in_place=True)
    trust = JsonlStore.open(tmp_path / "a").read(trust=True).trust
    assert {name: trust.standing(name).effective for name in trust if name != done.event} == before


def test_both_sides_must_still_begin_with_their_ancestor(tmp_path: Path, troth: Shell) -> None:
    ours, theirs = apart(tmp_path)
    begun = ours.ledger_file.read_bytes().splitlines(keepends=True)
    ancestor = tmp_path / "ancestor.jsonl"
    before = ours.ledger_file.read_bytes()
    for rows, code in ((3, 1), (2, 0), (0, 0)):
        ancestor.write_bytes(b"".join(begun[:rows]))
        ours.ledger_file.write_bytes(before)
        said = troth("merge", "--driver", ancestor, ours.ledger_file, theirs.ledger_file, ".mentu/ledger.jsonl")
        assert said.exit == code, said
        assert ("E_REWRITTEN" in said.err) == bool(code)
        assert (ours.ledger_file.read_bytes() == before) == bool(code)
    assert not list(tmp_path.rglob("*.jsonl.lock"))


def test_a_beginning_without_a_hash_that_the_settings_forbid_is_refused(tmp_path: Path) -> None:
    ledger = Ledger()
    ledger.add("capture", hashed=False)
    ledger.add("capture")
    (tmp_path / "b.jsonl").write_bytes(lines(ledger.rows))
    ours = fresh(tmp_path / "a")
    with pytest.raises(Refused) as caught:
        merge(tmp_path / "a", tmp_path / "b.jsonl", in_place=True)
    assert caught.value.code == "E_UNHASHED"
    assert ours.ledger_file.read_bytes() == b""
    ours.space.config_file.write_text("workspace: w\n")
    assert merge(tmp_path / "a", tmp_path / "b.jsonl", in_place=True).plan.outcome == "fast_forward"


def test_a_workspace_whose_ledger_is_in_a_database_is_not_merged_by_its_file(tmp_path: Path) -> None:
    apart(tmp_path)
    settings = tmp_path / "a" / ".mentu" / "config.yaml"
    with settings.open("a") as file:
        file.write("store: postgresql://host/x?workspace=w\n")
    for sides in (("a", "b"), ("b", "a")):
        with pytest.raises(Refused) as caught:
            merge(tmp_path / sides[0], tmp_path / sides[1])
        assert caught.value.code == "E_UNSUPPORTED"


# The command ----------------------------------------------------------------------------------------------------


def test_the_command_tells_what_became_of_every_row(tmp_path: Path, troth: Shell) -> None:
    apart(tmp_path)
    said = troth("merge", "a", "b", "--dry-run", "--json")
    assert said.exit == 0
    answer = said.json
    assert (answer["result"], answer["added"], answer["out"]) == ("merged", 4, None)
    assert [one["code"] for one in answer["without_effect"]] == ["E_ALREADY_CLAIMED"]
    said = troth("merge", "a", "b", "-o", "both.jsonl")
    assert said.exit == 0
    assert "Merged 4 row(s) of B behind 6 of A, 2 in common (both.jsonl)." in said.out
    assert "E_ALREADY_CLAIMED: no effect any more" in said.out
    assert "11/11 verified" in said.out
    assert "those of A do" in said.err
    again = troth("merge", "both.jsonl", "b", "--in-place")
    assert again.out.startswith("Nothing to add")
    shown = troth("show", answer["event"], "--store", "both.jsonl", "--json").json
    assert shown["signal"]["payload"]["meta"]["merge"]["heads"] == [head.partition(":")[0] for head in answer["heads"]]


def test_refusals_and_their_twins(tmp_path: Path, troth: Shell) -> None:
    apart(tmp_path)
    cases = {
        ("merge", "a"): "E_USAGE",
        ("merge", "a", "b"): "E_USAGE",
        ("merge", "a", "b", "-o", "x", "--in-place"): "E_USAGE",
        ("merge", "a", "nowhere", "--dry-run"): "E_NO_LEDGER",
        ("merge", "a", "postgresql://host/x", "--dry-run"): "E_UNSUPPORTED",
        ("merge", "--driver", "a", "b"): "E_USAGE",
        ("merge", "--driver", "a", "a", "b", "--unrelated"): "E_USAGE",
    }
    for words, code in cases.items():
        said = troth(*words, "--json")
        assert (said.exit, said.json["error"]["code"]) == (2, code), words
    other = fresh(tmp_path / "c")
    capture(other, "of another house")
    said = troth("merge", "a", "c", "-o", "x.jsonl", "--json")
    assert (said.exit, said.json["error"]["code"]) == (2, "E_UNRELATED")
    assert not (tmp_path / "x.jsonl").exists()
    assert troth("merge", "a", "c", "-o", "x.jsonl", "--unrelated").exit == 0
    assert troth("verify", "--store", "x.jsonl").exit == 0


def test_a_colliding_id_and_key_are_told(tmp_path: Path, troth: Shell) -> None:
    sides = []
    for side in "ab":
        ledger = Ledger()
        ledger.add("capture")
        ledger.add("capture", body=side, source_key="key")
        (tmp_path / f"{side}.jsonl").write_bytes(lines(ledger.rows))
        sides.append(ledger)
    said = troth("merge", "a.jsonl", "b.jsonl", "--dry-run")
    assert "mem_00000002 is mem_" in said.out
    assert "gave up its source_key: mem_00000002 has key" in said.out
    assert "no effect" not in said.out


def test_a_checkpoint_of_the_first_ledger_still_holds(
    tmp_path: Path, troth: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    apart(tmp_path)
    key = troth("key", "new", "example.com/log").out.strip()
    for side in "ab":
        said = troth("checkpoint", "create", "--key", "example.com/log", "--store", side, "-o", f"{side}.checkpoint")
        assert said.exit == 0, said
    assert troth("merge", "a", "b", "--in-place").exit == 0
    assert troth("verify", "--store", "a", "--checkpoint", "a.checkpoint", "--key", key).exit == 0
    said = troth("verify", "--store", "a", "--checkpoint", "b.checkpoint", "--key", key)
    assert said.exit == 1
    assert "checkpoint_mismatch" in said.out + said.err


# A wish to delete -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["delete", "del", "rm", "remove"])
def test_a_wish_to_delete_is_answered_with_what_works(tmp_path: Path, troth: Shell, word: str) -> None:
    store = fresh(tmp_path)
    name = capture(store, actor="agent:worker")
    before = store.ledger_file.read_bytes()
    said = troth(word, name)
    assert said.exit == 2
    assert "E_APPEND_ONLY" in said.err
    assert f'troth retract {name} "REASON"' in said.err
    assert troth(word, name, "--json").json["error"]["code"] == "E_APPEND_ONLY"
    assert store.ledger_file.read_bytes() == before
    assert troth("retract", name, "REASON").exit == 0
    assert troth("show", name, "--json").json["signal"]["id"] == name


def test_a_retraction_of_ones_own_is_total_and_of_anothers_a_doubt(tmp_path: Path, troth: Shell) -> None:
    store = fresh(tmp_path)
    own, other = capture(store, actor="agent:worker"), capture(store, actor="human:reviewer")
    for name in (own, other):
        row = troth("retract", name, "read from the wrong host", "--json").json["signal"]
        assert (row["op"], row["payload"]["kind"], row["payload"]["target"]) == ("annotate", "retraction", name)
    trust = JsonlStore.open(tmp_path).read(trust=True).trust
    worth = {name: trust.standing(name).effective for name in (own, other)}
    assert worth[own] == 0
    assert 0 < worth[other] < 0.5
    assert json.loads(store.ledger_file.read_bytes().splitlines()[0])["id"] == own
