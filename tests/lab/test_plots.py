"""Plots read back: axes with units, labels in every picture, nothing told by colour, the same bytes each time."""

from __future__ import annotations

import hashlib
import io
import re
import subprocess
import sys
from dataclasses import replace
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest
from PIL import Image

from lab.telling import files, hostile_files, report, small
from troth.deals.codes import LABELS
from troth.lab.inference import infer
from troth.lab.measures import Arm, Comparison, Named, Paired, Rate
from troth.lab.plots import draw

SVG = "{http://www.w3.org/2000/svg}"


class Drawn(NamedTuple):
    name: str
    sentence: str
    svg: bytes
    png: bytes


def drawn(of: dict[str, bytes]) -> dict[str, Drawn]:
    found = {}
    for name in ("share-of-deals", "points-a-deal", "dose", "differences"):
        svg = of[f"plots/{name}.svg"]
        title = ElementTree.fromstring(svg).findtext(f"{SVG}title") or ""
        found[name] = Drawn(name, title, svg, of[f"plots/{name}.png"])
    return found


@pytest.fixture
def pictures() -> dict[str, Drawn]:
    return drawn(files())


def texts(picture: Any) -> list[str]:
    return ["".join(node.itertext()) for node in ElementTree.fromstring(picture.svg).iter(f"{SVG}text")]


@pytest.mark.parametrize(
    ("name", "axes"),
    [
        ("share-of-deals", ["share of deals, with 95 % interval", "measure: condition"]),
        ("points-a-deal", ["points a deal, with 95 % interval", "measure: condition"]),
        ("dose", ["look-alikes before the offer (messages) A sentence.", "share, with 95 % interval"]),
        ("differences", ["difference of shares (first minus second), with 95 % interval", "comparison"]),
    ],
)
def test_every_axis_is_named_with_its_unit_and_every_picture_is_labelled(
    name: str, axes: list[str], pictures: dict[str, Drawn]
) -> None:
    said = texts(pictures[name])
    for axis in axes:
        assert axis in said
    (labels,) = [text for text in said if text.startswith(LABELS[0])]
    assert all(label in labels for label in LABELS)
    assert "non-claims" in labels
    assert all(label in pictures[name].sentence for label in LABELS)


def test_values_and_names_stand_in_the_picture(pictures: dict[str, Drawn]) -> None:
    said = texts(pictures["share-of-deals"])
    assert "accepted: cash" in said
    assert "0.6 [0.531, 0.665]" in said
    assert "another setting: cash" in said
    assert "0.16 to 0.24" in said
    assert "value in closed form" in said
    assert "accepted: cash minus object" in texts(pictures["differences"])


def test_nothing_is_told_by_colour(pictures: dict[str, Drawn]) -> None:
    for picture in pictures.values():
        colours = {found.lower() for found in re.findall(rb"#[0-9a-fA-F]{6}\b", picture.svg)}
        assert colours
        assert all(colour[1:3] == colour[3:5] == colour[5:7] for colour in colours), picture.name
        image = Image.open(io.BytesIO(picture.png)).convert("RGB")
        red, green, blue = image.split()
        assert red.tobytes() == green.tobytes() == blue.tobytes()
        assert len(set(red.tobytes())) > 2  # something is drawn


def test_hollow_and_filled_tell_what_was_found(pictures: dict[str, Drawn]) -> None:
    def hollow(pairs: Paired) -> bool:
        comparison = Comparison("cash", "object", "accepted", "s", pairs)
        *_, picture = draw(infer(replace(small(), comparisons=(comparison,))))
        assert picture.name == "differences"
        return b"fill: #ffffff; stroke: #1a1a1a" in picture.svg.split(b'id="legend_1"')[0]

    assert hollow(Paired(21, 20, 70, 60))
    assert not hollow(Paired(50, 20, 70, 60))


def test_the_same_results_give_the_same_bytes_here_and_in_another_process(pictures: dict[str, Drawn]) -> None:
    script = (
        "import hashlib; from lab.telling import small; from troth.lab.inference import infer; "
        "from troth.lab.plots import draw; "
        "print(hashlib.sha256(b''.join(p.svg + p.png for p in draw(infer(small())))).hexdigest())"
    )
    env = {"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": "77", "MPLBACKEND": "svg", "TZ": "Asia/Tokyo"}
    other = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    mine = hashlib.sha256(b"".join(one.svg + one.png for one in draw(infer(small())))).hexdigest()
    assert other.stdout.strip() == mine
    assert all(b"<dc:date>" not in one.svg for one in pictures.values())
    assert all(b"matplotlib" not in one.png.lower() for one in pictures.values())


def test_hostile_names_are_text() -> None:
    for picture in drawn(hostile_files()).values():
        tree = ElementTree.fromstring(picture.svg)
        tags = {node.tag for node in tree.iter()}
        assert f"{SVG}script" not in tags
        assert not [name for node in tree.iter() for name in node.attrib if name.lower().startswith("on")]
        assert b"\x1b" not in picture.svg
        said = "".join(texts(picture))
        assert "\u202e" not in said
        assert picture.name == "dose" or "<script>" in said  # shown as it is


def test_labels_stand_also_where_there_is_nothing_to_explain() -> None:
    arm = Arm("alone", "s", (Named("accepted", "s", "share of deals", Rate(1, 3)),))
    (picture,) = draw(infer(replace(small(), arms=(arm,))))
    assert [text for text in texts(picture) if text.startswith(LABELS[0])]


def test_many_arms_and_an_empty_one_are_drawn() -> None:
    arms = tuple(
        Arm(f"arm {number}", "s", (Named("accepted", "s", "share of deals", Rate(number % 3, min(number, 7))),))
        for number in range(25)
    )
    (picture,) = draw(infer(replace(report(), arms=arms, comparisons=(), references=(), axis=None)))
    said = texts(picture)
    assert "accepted: arm 1" in said
    assert "accepted: arm 0" not in said  # nothing was counted: there is nothing to show
    assert draw(infer(replace(report(), arms=arms[:1], comparisons=(), axis=None))) == ()
