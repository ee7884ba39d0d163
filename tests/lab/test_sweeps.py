"""Sweeps: the same bytes whoever plays them, taken up where they were cut off, and counted right."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.calibrating import inside
from troth.core.errors import Busy, Refused
from troth.deals.codes import LABELS
from troth.lab.measures import Rate
from troth.lab.playing import Game
from troth.lab.policies import make
from troth.lab.statistics import wilson
from troth.lab.sweepconfig import Sweep, read_sweep
from troth.lab.sweepfolder import SweepFolder
from troth.lab.sweeping import Workers, run
from troth.lab.sweeps import COLUMNS, play_chunk, read_chunk

CONFIG = """\
name = "tested"
seeds = [3, 1]
deals = {deals}
series = 5
chunk = {chunk}
counterparties = ["honest", "withholding"]
agents = ["mixed(0.5)", "learning(reserve=2, reserve_to=9)"]

[[offers]]
name = "cash"

[[noise]]
name = "none"

[[noise]]
name = "forged"
checker = "noisy(0.2, 0.1)"
forged = "forged_hold"
forged_rate = 0.5
"""


def made(deals: int = 15, chunk: int = 25) -> Sweep:
    return read_sweep(CONFIG.format(deals=deals, chunk=chunk).encode())


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def sweep() -> Sweep:
    return made()


@pytest.fixture(scope="module")
def whole(sweep: Sweep, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The finished folder of a sweep that nothing disturbed."""
    folder = tmp_path_factory.mktemp("sweeps") / "whole"
    run(sweep, folder)
    return folder


def rows_of(folder: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = pq.read_table(folder / "results.parquet").to_pylist()
    return rows


class Cut(Exception):
    """Stands for whatever cuts a sweep off."""


def cut_after(count: int) -> Callable[[int, int], None]:
    left = iter(range(count))

    def told(done: int, total: int) -> None:
        if next(left, None) is None:
            raise Cut

    return told


def test_a_row_is_the_deal_that_its_cell_and_chance_make(sweep, whole):
    rows = rows_of(whole)
    assert list(rows[0]) == [name for name, _ in COLUMNS]
    assert len(rows) == sweep.deals == 240
    games = {cell.number: Game(cell.setting) for cell in sweep.cells}
    for row in rows:
        played = games[row["cell"]].play(row["seed"], row["index"]).outcome
        assert (row["state"], row["paid"], row["real"], row["note"], row["loss"], row["result"]) == (
            played.state, played.paid, played.real, played.note, played.loss_a, played.result,
        )  # fmt: skip
    assert {row["real"] for row in rows} == {True, False}
    assert len({row["state"] for row in rows}) > 3


def test_the_summary_counts_what_the_table_holds(sweep, whole):
    told = json.loads((whole / "summary.json").read_bytes())
    rows = rows_of(whole)
    for cell in told["cells"]:
        mine = [row for row in rows if row["cell"] == cell["cell"]]
        assert cell["deals"] == len(mine)
        assert cell["ends"] == dict(Counter(row["state"] for row in mine))
        accepted = sum(row["accepted"] for row in mine)
        interval = wilson(Rate(accepted, len(mine)))
        rate = cell["rates"]["accepted"]
        assert (rate["k"], rate["n"], rate["low"], rate["high"]) == (accepted, len(mine), interval.low, interval.high)
        fakes = [row for row in mine if row["disclosed"] and not row["satisfied"]]
        assert cell["checker"]["false_pass"]["k"] == sum(row["result"] == "pass" for row in fakes)
        assert cell["checker"]["false_pass"]["n"] == len(fakes)
        assert cell["points"]["loss"] == sum(row["loss"] for row in mine)
        assert cell["forged"] == sum(not row["real"] for row in mine)
    honest = told["cells"][0]
    assert honest["rates"]["accepted"]["value"] == 1.0
    assert honest["ends"].get("settled", 0) + honest["ends"]["breached(A:fail)"] == honest["deals"]


def test_rates_are_those_of_the_closed_form(tmp_path):
    agent, checker = "rational(belief=0.6, reserve=1, reserve_to=11, follow=0.8)", "noisy(0.2, 0.1)"
    text = (
        f'name = "c"\nseeds = [5, 6]\ndeals = 1500\ncounterparties = ["honest"]\nagents = ["{agent}"]\n'
        f'[[offers]]\nname = "cash"\n[[noise]]\nname = "n"\nchecker = "{checker}"\n'
        'forged = "forged_honesty"\nforged_rate = 0.25\n'
    )
    (cell,) = run(read_sweep(text.encode()), tmp_path / "out").summary["cells"]
    accepted = make("A", agent).accepts(10)
    assert accepted == pytest.approx(0.5)
    deals = cell["deals"]
    assert inside(cell["rates"]["accepted"]["k"], deals, accepted)
    assert inside(cell["rates"]["disclosed"]["k"], deals, accepted * 0.8)
    assert inside(cell["rates"]["settled"]["k"], deals, accepted * 0.8 * 0.9 * 0.75)
    assert inside(cell["checker"]["false_fail"]["k"], cell["checker"]["false_fail"]["n"], 0.1)
    assert inside(cell["forged"], deals, 0.25)
    assert not inside(cell["rates"]["accepted"]["k"], deals, accepted + 0.1)


def test_labels_and_non_claims_are_in_every_file(whole):
    import pyarrow.parquet as pq

    marks = pq.read_schema(whole / "results.parquet").metadata
    assert marks[b"troth.labels"].decode() == ", ".join(LABELS)
    assert b"section 8" in marks[b"troth.non_claims_see"]
    for name in ("summary.json", "sweep.json"):
        assert json.loads((whole / name).read_bytes())["labels"] == list(LABELS)


def test_rows_do_not_depend_on_how_the_sweep_is_cut(whole, tmp_path):
    run(made(chunk=100), tmp_path / "other")
    assert rows_of(tmp_path / "other") == rows_of(whole)


def test_a_chunk_is_the_same_bytes_each_time(sweep):
    assert play_chunk(sweep.form, 3) == play_chunk(sweep.form, 3)
    assert read_chunk(sweep, 3, play_chunk(sweep.form, 3)).num_rows == 25


def test_a_sweep_that_was_cut_off_goes_on_to_the_same_bytes(sweep, whole, tmp_path):
    folder = tmp_path / "cut"
    with pytest.raises(Cut):
        run(sweep, folder, told=cut_after(4))
    assert not (folder / "results.parquet").exists()
    kept = {path.name: path.stat().st_mtime_ns for path in (folder / "chunks").iterdir()}
    assert len(kept) == 4
    done = run(sweep, folder)
    assert done.found == 4 * 25
    assert files(folder) == files(whole)


def test_a_sweep_that_was_cut_off_while_it_was_joined_goes_on(sweep, whole, tmp_path):
    folder = tmp_path / "cut"
    with pytest.raises(Cut):
        run(sweep, folder, told=cut_after(sweep.chunks))
    (folder / ".results.parquet.0123456789ab.new").write_bytes(b"PAR1 half")
    (folder / "chunks" / ".000001.part.0123456789ab.new").write_bytes(b"half")
    (folder / "results.parquet").write_bytes(b"of another time")
    done = run(sweep, folder)
    assert done.found == sweep.deals
    assert files(folder) == files(whole)


DAMAGES: list[tuple[str, Callable[[Path], object]]] = [
    ("a bit", lambda path: path.write_bytes(path.read_bytes()[:-9] + b"\x01" + path.read_bytes()[-8:])),
    ("cut short", lambda path: path.write_bytes(path.read_bytes()[:200])),
    ("empty", lambda path: path.write_bytes(b"")),
    ("another's", lambda path: path.write_bytes(path.with_name("000000.part").read_bytes())),
    ("a link", lambda path: (path.rename(path.with_name("x")), path.symlink_to(path.with_name("x")))),
    ("its digest", lambda path: path.write_bytes(b"troth-sweep-chunk 1 " + b"0" * 64 + path.read_bytes()[84:])),
]


@pytest.mark.parametrize(("what", "damage"), DAMAGES, ids=[name for name, _ in DAMAGES])
def test_a_chunk_that_is_not_what_was_written_is_played_again_and_told(what, damage, sweep, whole, tmp_path):
    folder = tmp_path / "spoilt"
    with pytest.raises(Cut):
        run(sweep, folder, told=cut_after(5))
    damage(folder / "chunks" / "000002.part")
    done = run(sweep, folder)
    assert done.spoilt == (2,)
    assert done.found == 4 * 25
    (folder / "chunks" / "x").unlink(missing_ok=True)
    if (folder / "chunks").exists():
        (folder / "chunks").rmdir()
    assert files(folder) == files(whole)


def test_a_finished_sweep_is_not_played_again_and_a_changed_table_is(sweep, whole, tmp_path):
    folder = tmp_path / "again"
    run(sweep, folder)
    seen = (folder / "results.parquet").stat().st_mtime_ns
    done = run(sweep, folder)
    assert (done.found, done.spoilt) == (sweep.deals, ())
    assert (folder / "results.parquet").stat().st_mtime_ns == seen
    table = bytearray((folder / "results.parquet").read_bytes())
    table[100] ^= 1
    (folder / "results.parquet").write_bytes(table)
    assert run(sweep, folder).found == 0
    assert files(folder) == files(whole)


def test_another_configuration_and_anything_else_in_the_folder_are_refused(sweep, tmp_path):
    with pytest.raises(Cut):
        run(sweep, tmp_path / "mine", told=cut_after(2))
    before = {path: path.read_bytes() for path in (tmp_path / "mine").rglob("*") if path.is_file()}
    with pytest.raises(Refused) as refused:
        run(made(deals=20), tmp_path / "mine")
    assert refused.value.code == "E_SWEEP_OTHER"
    assert before == {path: path.read_bytes() for path in (tmp_path / "mine").rglob("*") if path.is_file()}
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "thesis.tex").write_text("x")
    with pytest.raises(Refused) as refused:
        run(sweep, tmp_path / "theirs")
    assert refused.value.code == "E_SWEEP_FOLDER"
    assert [path.name for path in (tmp_path / "theirs").iterdir()] == ["thesis.tex"]
    (tmp_path / "file").write_text("x")
    with pytest.raises(Refused) as refused:
        run(sweep, tmp_path / "file")
    assert refused.value.code == "E_SWEEP_FOLDER"


def test_two_at_once_in_one_folder_are_refused(sweep, tmp_path):
    mine = SweepFolder.open(tmp_path / "one", sweep)
    with pytest.raises(Busy) as busy:
        run(sweep, tmp_path / "one")
    assert busy.value.code == "E_SWEEP_BUSY"
    mine.close()
    run(sweep, tmp_path / "one")


def test_what_a_worker_hands_back_is_looked_at(sweep, tmp_path):
    folder = SweepFolder.open(tmp_path / "one", sweep)
    good = play_chunk(sweep.form, 1)
    folder.keep(1, good)
    for payload in (b"", b"x" * 100, good[:-20], play_chunk(sweep.form, 2), play_chunk(made(deals=20).form, 1)):
        with pytest.raises(Refused) as refused:
            folder.keep(1, payload)
        assert refused.value.code == "E_SWEEP_CHUNK"
    assert folder.load(1).num_rows == 25
    folder.close()


def test_a_chunk_that_cannot_be_removed_is_told(sweep, tmp_path):
    folder = SweepFolder.open(tmp_path / "one", sweep)
    (tmp_path / "one" / "chunks" / "000001.part").mkdir()
    with pytest.raises(Refused) as refused:
        folder.missing(lambda chunk: None)
    assert refused.value.code == "E_SWEEP_FOLDER"
    folder.close()


def test_a_pattern_in_a_checklist_is_searched_or_the_engine_is_missed(tmp_path, monkeypatch):
    item = '[[offers]]\nname = "pattern"\nchecklist = [{ id = "x", predicate = "claim_regex", pattern = "." }]\n'
    text = f'name = "p"\ndeals = 2\ncounterparties = ["honest"]\nagents = ["failing"]\n{item}'
    run(read_sweep(text.encode()), tmp_path / "with")
    assert {row["result"] for row in rows_of(tmp_path / "with")} == {"pass"}
    monkeypatch.setitem(sys.modules, "re2", None)
    with pytest.raises(ImportError):
        run(read_sweep(text.encode()), tmp_path / "without")


# Other processes -----------------------------------------------------------------------------------------------------

LONG = CONFIG.format(deals=500, chunk=250)


@pytest.fixture(scope="module")
def long_one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweeps") / "long"
    run(read_sweep(LONG.encode()), folder)
    return folder


def started(tmp_path: Path, *words: str) -> subprocess.Popen[bytes]:
    (tmp_path / "s.toml").write_text(LONG)
    return subprocess.Popen(
        [sys.executable, "-m", "troth", "deal", "sweep", "s.toml", "--out", "out", "--json", *words],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def chunks_kept(tmp_path: Path, at_least: int, process: subprocess.Popen[bytes]) -> None:
    while len(list((tmp_path / "out").glob("chunks/*.part"))) < at_least:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def children(pid: int) -> list[int]:
    """The processes that a process started and that they started, spawned interpreters alone."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
            command = (path.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if int(fields[1]) == pid:
            mine = int(path.parent.name)
            found += [mine] if b"spawn_main" in command else []
            found += children(mine)
    return found


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.mark.slow
@linux
def test_many_processes_write_the_same_bytes_and_one_of_them_may_be_killed(long_one, tmp_path):
    process = started(tmp_path, "--jobs", "2")
    chunks_kept(tmp_path, 2, process)
    victims = children(process.pid)
    assert len(victims) == 2
    os.kill(victims[0], signal.SIGKILL)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert json.loads(out)["spoilt"] == []
    assert files(tmp_path / "out") == files(long_one)


@pytest.mark.slow
@linux
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_sweep_that_is_killed_leaves_nobody_behind_and_goes_on(jobs, long_one, tmp_path):
    process = started(tmp_path, "--jobs", jobs)
    chunks_kept(tmp_path, 2, process)
    workers = children(process.pid)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 30
    while not all(map(gone, workers)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not (tmp_path / "out" / "results.parquet").exists()
    again = started(tmp_path, "--jobs", "2")
    out, err = again.communicate(timeout=120)
    assert again.returncode == 0, err
    assert json.loads(out)["found"] >= 500
    assert files(tmp_path / "out") == files(long_one)


@pytest.mark.slow
@linux
def test_an_interrupt_leaves_what_is_finished(long_one, tmp_path):
    process = started(tmp_path, "--jobs", "2")
    chunks_kept(tmp_path, 2, process)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert b"start the sweep again" in err
    assert b"Traceback" not in err
    again = started(tmp_path)
    out, err = again.communicate(timeout=120)
    assert json.loads(out)["found"] >= 500
    assert files(tmp_path / "out") == files(long_one)


@pytest.mark.slow
@linux
def test_a_cluster_writes_the_same_bytes_and_a_worker_may_be_killed(long_one, tmp_path):
    process = started(tmp_path, "--cluster", "local", "--jobs", "2")
    chunks_kept(tmp_path, 2, process)
    os.kill(children(process.pid)[-1], signal.SIGKILL)
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    assert files(tmp_path / "out") == files(long_one)
    assert json.loads(out)["deals"] == 8000


def test_workers_that_die_one_after_another_are_given_up(monkeypatch):
    from concurrent.futures import Future
    from concurrent.futures.process import BrokenProcessPool

    from troth.lab import workers

    begun = 0

    class Dying:
        def __init__(self) -> None:
            nonlocal begun
            begun += 1

        def submit(self, *_: Any) -> Future[bytes]:
            future: Future[bytes] = Future()
            future.set_exception(BrokenProcessPool("killed"))
            return future

        def shutdown(self, **_: Any) -> None: ...

    monkeypatch.setattr(workers, "_pool", lambda jobs: Dying())
    with pytest.raises(Refused) as refused:
        list(workers.processes(b"", range(9), 2))
    assert refused.value.code == "E_SWEEP_WORKER"
    assert begun == workers.FRUITLESS


@pytest.mark.slow
def test_a_cluster_that_is_not_there_is_refused(sweep, tmp_path, monkeypatch):
    from troth.lab import workers

    monkeypatch.setattr(workers, "CONNECT_SECONDS", 2)
    for address in ("tcp://127.0.0.1:9", "nowhere", "tcp://127.0.0.1:port"):
        with pytest.raises(Refused) as refused:
            run(sweep, tmp_path / "out", Workers(2, address))
        assert refused.value.code == "E_SWEEP_CLUSTER"
        assert refused.value.remedy


@pytest.mark.slow
def test_a_cluster_that_runs_already_is_named_by_its_address(sweep, whole, tmp_path, monkeypatch):
    import logging

    import distributed

    from troth.lab import workers

    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, silence_logs=logging.CRITICAL
    ) as cluster:
        address = cluster.scheduler_address
        run(sweep, tmp_path / "out", Workers(1, address))
        assert files(tmp_path / "out") == files(whole)
        monkeypatch.setattr(workers, "__version__", "0.0.0")
        with pytest.raises(Refused) as refused:
            run(sweep, tmp_path / "other", Workers(1, address))
    assert refused.value.code == "E_SWEEP_CLUSTER"
    assert "not 0.0.0" in refused.value.message
