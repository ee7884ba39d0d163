"""Plots of a suite's results, SVG and PNG: the same bytes from the same results, readable in grey.

Conditions are told apart by name, marker, fill, hatch and line, never by colour. Every axis names what it shows and its
unit, and every picture carries the labels. Names are text: control characters are escaped, nothing is taken for
mathematics, long names are cut. matplotlib is imported only when something is drawn, without its interactive part, and
no user's settings are heeded.
"""

from __future__ import annotations

import functools
import io
import math
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from troth.core.words import printable
from troth.deals.codes import LABELS, NON_CLAIMS_REF
from troth.lab.inference import Measured, Results, Tested
from troth.lab.measures import Rate
from troth.lab.statistics import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
LINES: Final = ("-", "--", ":", "-.")
INK: Final = "#1a1a1a"
PALE: Final = "#8a8a8a"

WIDTH: Final = 8.4
"""Width of every picture, in inches."""
ROW: Final = 0.30
"""Height of one row of a picture, in inches."""
ROWS: Final = 60
"""Most rows that one picture shows; what is beyond stands in the tables."""
DOTS: Final = 144
"""Dots per inch of the PNG."""


class Picture(NamedTuple):
    """One plot: a file name without its ending, what it shows in a sentence (its alternative text), and its bytes."""

    name: str
    sentence: str
    svg: bytes
    png: bytes


@functools.lru_cache(maxsize=32)
def draw(results: Results) -> tuple[Picture, ...]:
    """Return the plots of a suite's results, those alone for which there is something to show."""
    pictures = [_by_unit(results, unit) for unit in dict.fromkeys(one.named.unit for one in results.measured)]
    pictures.append(_by_dose(results))
    pictures.append(_differences(results))
    return tuple(picture for picture in pictures if picture is not None)


# One row for each condition ------------------------------------------------------------------------------------------


def _by_unit(results: Results, unit: str) -> Picture | None:
    shown = [one for one in results.measured if one.named.unit == unit and one.estimate.value is not None]
    if not shown:
        return None
    names = list(dict.fromkeys(one.named.name for one in shown))
    arms = list(dict.fromkeys(one.arm.name for one in results.measured))
    rows = [one for name in names for one in shown if one.named.name == name][:ROWS]
    shares = all(isinstance(one.named.measure, Rate) for one in rows)
    references = results.report.references if shares else ()
    sentence = (
        f"{results.report.suite}: {unit} by condition, with {_percent(results.confidence)} intervals "
        f"({', '.join(dict.fromkeys(one.estimate.method for one in rows))})."
    )
    with _settings(f"{results.report.suite}:{unit}"):
        figure, axes = _sheet(len(rows) + len(references), legend=len(arms) > 1)
        for place, one in enumerate(rows):
            marker, fill = _marker(arms.index(one.arm.name))
            _point(axes, place, one.estimate, marker, fill)
            if one.named.truth is not None:
                axes.plot([one.named.truth] * 2, [place - 0.38, place + 0.38], color=PALE, linewidth=2.2, zorder=1)
        for place, reference in enumerate(references, len(rows)):
            axes.barh(
                place, reference.high - reference.low, left=reference.low, height=0.55,
                facecolor="white", edgecolor=PALE, hatch="////", linewidth=1,
            )  # fmt: skip
        _rows(
            axes,
            [f"{_name(one.named.name)}: {_name(one.arm.name)}" for one in rows]
            + [_wrapped(f"another setting: {printable(reference.name, 70)}") for reference in references],
            [_told(one.estimate) for one in rows]
            + [f"{reference.low:.3g} to {reference.high:.3g}" for reference in references],
            "measure: condition",
        )
        if shares:
            axes.set_xlim(-0.02, 1.02)
        axes.set_xlabel(f"{printable(unit, 80)}, with {_percent(results.confidence)} interval")
        keys = [_key(*_marker(place), _name(arm)) for place, arm in enumerate(arms)] if len(arms) > 1 else []
        if any(one.named.truth is not None for one in rows):
            keys.append(_key("|", INK, "value in closed form"))
        _finish(figure, f"{results.report.suite}, {results.report.title}", keys)
        return _picture(figure, f"{_slug(unit)}", sentence)


# Along a dose --------------------------------------------------------------------------------------------------------


def _by_dose(results: Results) -> Picture | None:
    axis = results.report.axis
    shown = [
        one
        for one in results.measured
        if one.arm.dose is not None and isinstance(one.named.measure, Rate) and one.estimate.value is not None
    ]
    if axis is None or len({one.arm.dose for one in shown}) < 2:
        return None
    names = list(dict.fromkeys(one.named.name for one in shown))[: len(MARKERS)]
    with _settings(f"{results.report.suite}:dose"):
        figure, axes = _sheet(12, legend=True)
        keys = []
        for place, name in enumerate(names):
            line = sorted((one for one in shown if one.named.name == name), key=lambda one: one.arm.dose or 0.0)
            _along(axes, line, MARKERS[place], LINES[place % len(LINES)])
            keys.append(_key(MARKERS[place], "white", _name(name), LINES[place % len(LINES)]))
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel(printable(axis, 100))
        doses = sorted({one.arm.dose for one in shown if one.arm.dose is not None})
        if len(doses) <= len(MARKERS):
            axes.set_xticks(doses)
        axes.set_ylabel(f"share, with {_percent(results.confidence)} interval")
        axes.grid(color="#dddddd", linewidth=0.6)
        _finish(figure, f"{results.report.suite}, {results.report.title}", keys)
        return _picture(figure, "dose", f"{results.report.suite}: shares along {axis}, with Wilson intervals.")


def _along(axes: Axes, line: Sequence[Measured], marker: str, style: str) -> None:
    at = [one.arm.dose for one in line]
    values = [one.estimate.value for one in line]
    low = [_or(one.estimate.low, one.estimate.value) for one in line]
    high = [_or(one.estimate.high, one.estimate.value) for one in line]
    axes.plot(at, values, linestyle=style, color=INK, marker=marker, markerfacecolor="white", markersize=7)  # type: ignore[arg-type]  # numbers: filtered above
    axes.vlines(at, low, high, color=INK, linewidth=1.2)  # type: ignore[arg-type]  # the same


# Differences ---------------------------------------------------------------------------------------------------------


def _differences(results: Results) -> Picture | None:
    shown = [one for one in results.tested if one.compared.difference.value is not None][:ROWS]
    if not shown:
        return None
    level = 1 - results.confidence
    with _settings(f"{results.report.suite}:differences"):
        figure, axes = _sheet(len(shown), legend=True)
        axes.axvline(0, color=PALE, linewidth=1, linestyle="--", zorder=0)
        for place, one in enumerate(shown):
            _point(axes, place, one.compared.difference, "o", INK if _found(one, level) else "white")
        _rows(axes, [_against(one) for one in shown], [_told(one.compared.difference) for one in shown], "comparison")
        axes.set_xlabel(f"difference of shares (first minus second), with {_percent(results.confidence)} interval")
        keys = [
            _key("o", INK, f"adjusted p at most {level:.2g} ({results.correction})"),
            _key("o", "white", "adjusted p greater"),
        ]
        _finish(figure, f"{results.report.suite}, {results.report.title}: comparisons", keys)
        sentence = (
            f"{results.report.suite}: differences between conditions with {_percent(results.confidence)} intervals; "
            f"filled where the p-value adjusted by {results.correction} is at most {level:.2g}."
        )
        return _picture(figure, "differences", sentence)


def _found(one: Tested, level: float) -> bool:
    return one.adjusted is not None and one.adjusted <= level


def _against(one: Tested) -> str:
    comparison = one.comparison
    return f"{_name(comparison.measure)}: {_name(comparison.first)} minus {_name(comparison.second)}"


# Parts ---------------------------------------------------------------------------------------------------------------


@contextmanager
def _settings(salt: str) -> Iterator[None]:
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(
            {
                "svg.hashsalt": salt,
                "svg.fonttype": "none",
                "text.parse_math": False,
                "font.family": ["DejaVu Sans", "sans-serif"],
                "font.sans-serif": ["DejaVu Sans"],
                "font.size": 9.0,
                "axes.spines.top": False,
                "axes.spines.right": False,
                "axes.edgecolor": INK,
                "hatch.color": PALE,
            }
        )
        yield


def _sheet(rows: int, *, legend: bool) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, ROW * max(rows, 2) + (2.1 if legend else 1.8)), layout="constrained")
    return figure, figure.add_subplot()


def _marker(place: int) -> tuple[str, str]:
    """Return marker and fill of the condition at that place: filled ones first, then the same ones hollow."""
    return MARKERS[place % len(MARKERS)], INK if place // len(MARKERS) % 2 == 0 else "white"


def _point(axes: Axes, place: int, found: Estimate, marker: str, fill: str) -> None:
    assert found.value is not None
    if found.low is not None and found.high is not None:
        axes.hlines(place, found.low, found.high, color=INK, linewidth=1.4)
        axes.vlines([found.low, found.high], place - 0.16, place + 0.16, color=INK, linewidth=1.4)
    axes.plot(found.value, place, linestyle="none", marker=marker, markersize=7, color=INK, markerfacecolor=fill)


def _rows(axes: Axes, names: Sequence[str], told: Sequence[str], title: str) -> None:
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylabel(title)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    right = axes.secondary_yaxis("right")
    right.set_yticks(range(len(told)), told)
    right.tick_params(length=0, labelsize=8)
    right.spines["right"].set_visible(False)


def _key(marker: str, fill: str, text: str, style: Any = "none") -> Any:
    from matplotlib.lines import Line2D

    truth = marker == "|"
    return Line2D(
        [], [], color=PALE if truth else INK, marker=marker, linestyle=style, markerfacecolor=fill, markersize=7,
        markeredgewidth=2.2 if truth else 1.0, label=text,
    )  # fmt: skip


def _finish(figure: Figure, title: str, keys: Sequence[Any]) -> None:
    figure.suptitle(printable(title, 90), fontsize=11, x=0.01, ha="left")
    said = f"{', '.join(LABELS)}; see {NON_CLAIMS_REF}"
    legend = figure.legend(
        handles=list(keys), loc="outside lower left", ncols=max(1, min(3, len(keys))), fontsize=8, frameon=False,
        title=said, title_fontsize=8, alignment="left",
    )  # fmt: skip
    legend.get_title().set_fontstyle("italic")


def _picture(figure: Figure, name: str, sentence: str) -> Picture:
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # laid out once, for both
    svg, png = io.BytesIO(), io.BytesIO()
    told = f"{sentence} {', '.join(LABELS)}: {NON_CLAIMS_REF}."
    figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None, "Title": told})
    figure.savefig(png, format="png", dpi=DOTS, metadata={"Software": None, "Title": told})
    return Picture(name, told, svg.getvalue(), png.getvalue())


def _told(found: Estimate) -> str:
    if found.low is None or found.high is None:
        return f"{found.value:.3g}"
    return f"{found.value:.3g} [{found.low:.3g}, {found.high:.3g}]"


def _or(value: float | None, otherwise: float | None) -> float:
    chosen = otherwise if value is None else value
    return math.nan if chosen is None else chosen


def _name(text: str) -> str:
    return printable(text, 36)


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(text, 44))


def _percent(confidence: float) -> str:
    return f"{100 * confidence:.4g} %"


def _slug(text: str) -> str:
    """Return a file's name for a unit: ASCII letters and digits, words joined by hyphens."""
    kept = "".join(char if char.isascii() and char.isalnum() else " " for char in text.lower())
    return "-".join(kept.split())[:40] or "measures"
