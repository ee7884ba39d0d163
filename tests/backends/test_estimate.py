"""The wall that is proposed: cases worked by hand, a second computation, and what must always hold."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import estimate_model
from troth.backends.estimate import Settings, Timing, estimate, nearest_rank, seed, unrounded

CODEX = Settings("codex", "https://api.openai.com")
CLAUDE = Settings("claude", "https://api.anthropic.com")


def done(settings: Settings, size: int, seconds: float) -> Timing:
    return Timing(settings, size, seconds, 600.0, completed=True, exceeded=False)


def over(settings: Settings, size: int, wall: float) -> Timing:
    return Timing(settings, size, wall, wall, completed=False, exceeded=True)


# Each worked by hand from §11: (settings, bytes, rows, wall, basis).
WORKED: list[Any] = [
    # nothing known: 180 * 1.25 = 225 -> at least 300
    (CODEX, 0, [], 300, "heuristic"),
    # k = 10: (180 + 400) * 1.25 = 725 -> 780
    (CODEX, 40_000, [], 780, "heuristic"),
    # k = 10: (300 + 700) * 1.25 = 1250 -> 1260
    (CLAUDE, 40_000, [], 1260, "heuristic"),
    # effort high: (180 + 400 * 1.6) * 1.25 = 1025 -> 1080
    (Settings("codex", "e", None, "high"), 40_000, [], 1080, "heuristic"),
    # xhigh and fast: (180 + 400 * 2.2 * 0.8) * 1.25 = 1105 -> 1140
    (Settings("codex", "e", None, "xhigh", "fast"), 40_000, [], 1140, "heuristic"),
    # none: (300 + 700 * 0.6) * 1.25 = 900, which is a multiple already
    (Settings("claude", "e", None, "none"), 40_000, [], 900, "heuristic"),
    # very large: (180 + 40 * 1000) * 1.25 -> at most 5400
    (CODEX, 4_000_000, [], 5400, "heuristic"),
    # four runs do not count
    (CODEX, 40_000, [done(CODEX, 40_000, 200.0)] * 4, 780, "heuristic"),
    # five do: rate (200 - 180) / 10 = 2, 180 + 2 * 10 = 200, * 1.25 = 250 -> 300
    (CODEX, 40_000, [done(CODEX, 40_000, 200.0)] * 5, 300, "empirical"),
    # p90 of five is the largest: rate (1180 - 180) / 10 = 100, 180 + 1000 = 1180, * 1.25 = 1475 -> 1500
    (CODEX, 40_000, [*[done(CODEX, 40_000, 200.0)] * 4, done(CODEX, 40_000, 1180.0)], 1500, "empirical"),
    # p90 of ten is the ninth: one slow run of ten does not count
    (CODEX, 40_000, [*[done(CODEX, 40_000, 200.0)] * 9, done(CODEX, 40_000, 5000.0)], 300, "empirical"),
    # a small payload after large ones: 180 + 2 * 0.5 = 181, but p90 of the durations is 600: * 1.25 = 750 -> 780
    (CODEX, 2000, [done(CODEX, 840_000, 600.0)] * 5, 780, "empirical"),
    # tiny samples: k counts as 0.1 at least: rate (200 - 180) / 0.1 = 200; k = 0.05: 190; p90 200; * 1.25 -> 300
    (CODEX, 200, [done(CODEX, 40, 200.0)] * 5, 300, "empirical"),
    # more than twice the median and the seed larger: 180 + 40 * 25 = 1180, * 1.25 = 1475 -> 1500
    (CODEX, 100_000, [done(CODEX, 40_000, 190.0)] * 5, 1500, "heuristic"),
    # exactly twice is not more: rate 1, 180 + 20 = 200, p90 190 -> 250 -> 300
    (CODEX, 80_000, [done(CODEX, 40_000, 190.0)] * 5, 300, "empirical"),
    # more than twice, but the seed is smaller: rate (1180 - 180) / 10 = 100, 180 + 2500 = 2680, * 1.25 = 3350 -> 3360
    (CODEX, 100_000, [done(CODEX, 40_000, 1180.0)] * 5, 3360, "empirical"),
    # more than twice, and the seed just as large as the fit: rate 40, 180 + 1000 = 1180, * 1.25 = 1475 -> 1500
    (CODEX, 100_000, [done(CODEX, 40_000, 580.0)] * 5, 1500, "empirical"),
    # a wall of 812.5 was exceeded: (180 + 600) * 1.25 = 975 is 1.2 * 812.5 exactly, so 1218.75 -> 1260
    (CODEX, 60_000, [over(CODEX, 60_000, 812.5)], 1260, "heuristic"),
    # exactly half and exactly twice the size count
    (CODEX, 40_000, [over(CODEX, 20_000, 700.0)], 1080, "heuristic"),
    (CODEX, 40_000, [over(CODEX, 80_000, 700.0)], 1080, "heuristic"),
    # the median of six is between the third and the fourth: 30,000, and 60,000 is not more than twice that
    (CODEX, 60_000, [*[done(CODEX, 20_000, 190.0)] * 3, *[done(CODEX, 40_000, 190.0)] * 3], 300, "empirical"),
    (CODEX, 60_004, [*[done(CODEX, 20_000, 190.0)] * 3, *[done(CODEX, 40_000, 190.0)] * 3], 1020, "heuristic"),
    # a wall of 700 was exceeded: 725 <= 840, so 1050 -> 1080
    (CODEX, 40_000, [over(CODEX, 40_000, 700.0)], 1080, "heuristic"),
    # a wall of 600 was: 725 > 720, so it stays
    (CODEX, 40_000, [over(CODEX, 40_000, 600.0)], 780, "heuristic"),
    # the longest one counts, of payloads from half to twice the size
    (CODEX, 40_000, [over(CODEX, 20_000, 700.0), over(CODEX, 80_000, 900.0)], 1380, "heuristic"),
    (CODEX, 40_000, [over(CODEX, 19_999, 700.0), over(CODEX, 80_001, 900.0)], 780, "heuristic"),
    # exceeded walls of other settings are others'
    (CODEX, 40_000, [over(CLAUDE, 40_000, 3000.0)], 780, "heuristic"),
    # runs of other settings are others'
    (CODEX, 40_000, [done(Settings("codex", CODEX.endpoint, "m"), 40_000, 9.0)] * 9, 780, "heuristic"),
    # what failed or was cut off is in no fit
    (CODEX, 40_000, [Timing(CODEX, 40_000, 9.0, 600.0, completed=False, exceeded=False)] * 9, 780, "heuristic"),
]


@pytest.mark.parametrize(("settings", "size", "rows", "wall", "basis"), WORKED)
def test_worked_by_hand(settings: Settings, size: int, rows: list[Timing], wall: int, basis: str) -> None:
    found = estimate(settings, size, rows)
    assert (found.wall, found.basis) == (wall, basis)
    assert estimate_model.wall(_run(settings), size, [_row(row) for row in rows]) == (wall, basis)


def test_what_was_decisive_is_said() -> None:
    (note,) = estimate(CODEX, 100_000, [done(CODEX, 40_000, 190.0)] * 5).notes
    assert "twice as large" in note
    (note,) = estimate(CODEX, 40_000, [over(CODEX, 40_000, 700.0)]).notes
    assert "700 seconds" in note
    plain = estimate(CODEX, 40_003, [done(CODEX, 40_000, 190.0)] * 5)
    assert plain.notes == ()
    assert plain.as_json() == {
        "wall": 300, "basis": "empirical", "runs": 5, "estimated_tokens": 10_000, "notes": [],
    }  # fmt: skip


def test_the_nearest_rank() -> None:
    numbers = [Fraction(one) for one in range(1, 12)]
    assert nearest_rank(numbers[:1], 90) == 1
    assert nearest_rank(numbers[:10], 90) == 9
    assert nearest_rank(numbers, 90) == 10
    with pytest.raises(ValueError, match="nothing"):
        nearest_rank([], 90)


# --- against the second computation --------------------------------------------------------------------------------


def _run(settings: Settings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in ("backend", "endpoint", "model", "effort", "speed")}


def _row(row: Timing) -> dict[str, Any]:
    end = "completed" if row.completed else "wall_timeout" if row.exceeded else "idle_timeout"
    return {**_run(row.settings), "size": row.size, "seconds": row.seconds, "wall": row.wall, "end": end}


SETTINGS = st.builds(
    Settings,
    st.sampled_from(["codex", "claude", "openai"]),
    st.just("https://a.example"),
    st.sampled_from([None, "m"]),
    st.sampled_from([None, "none", "low", "medium", "high", "xhigh"]),
    st.sampled_from([None, "standard", "fast"]),
)
SIZES = st.integers(0, 200_000) | st.integers(0, 4_000_000)
SECONDS = st.integers(0, 6000).map(float) | st.floats(0, 6000)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Settings, int, list[Timing]]:
    settings = draw(SETTINGS)
    others = SETTINGS if draw(st.booleans()) else st.just(settings)
    ends = st.sampled_from([(True, False), (True, False), (False, True), (False, False)])
    size = draw(SIZES)
    near = st.integers(0, 3 * size) | SIZES
    rows = draw(
        st.lists(
            st.builds(
                lambda kind, bytes_, seconds, wall, end: Timing(kind, bytes_, seconds, wall, *end),
                others,
                near,
                SECONDS,
                SECONDS,
                ends,
            ),
            max_size=14,
        )
    )
    return settings, size, rows


@given(cases())
def test_the_second_computation_agrees(case: tuple[Settings, int, list[Timing]]) -> None:
    settings, size, rows = case
    run, told = _run(settings), [_row(row) for row in rows]
    found = estimate(settings, size, rows)
    assert (found.wall, found.basis) == estimate_model.wall(run, size, told)
    # The limits and the rounding hide much: what stands before them agrees as well.
    seconds, basis, _ = unrounded(settings, size, rows)
    expected, other = estimate_model.unrounded(run, size, told)
    assert basis == other
    assert abs(seconds - Fraction(expected)) < Fraction(1, 10**20)


@given(cases(), st.randoms(use_true_random=False))
def test_what_always_holds(case: tuple[Settings, int, list[Timing]], shuffle: Any) -> None:
    settings, size, rows = case
    found = estimate(settings, size, rows)
    assert 300 <= found.wall <= 5400
    assert found.wall % 60 == 0
    completed = [row for row in rows if row.completed and row.settings == settings]
    assert found.runs == len(completed)
    if len(completed) < 5:
        assert found.basis == "heuristic"
    shuffle.shuffle(rows)
    assert estimate(settings, size, rows) == found  # the order of the rows is nothing
    # Timeouts never enter the fit: they can only lengthen the wall.
    assert estimate(settings, size, [row for row in rows if row.completed]).wall <= found.wall


@given(SETTINGS, SIZES, SIZES)
def test_a_larger_payload_never_takes_less(settings: Settings, one: int, other: int) -> None:
    small, large = sorted((one, other))
    assert seed(settings, small) <= seed(settings, large)
    assert estimate(settings, small, []).wall <= estimate(settings, large, []).wall
