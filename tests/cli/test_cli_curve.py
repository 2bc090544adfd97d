"""``vimbank curve``."""

import builtins
import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.cli.conftest import Vimbank


def test_it_prints_every_curve_at_every_strength(vimbank: Vimbank) -> None:
    lines = [line.split() for line in vimbank("curve").out.splitlines()]
    assert " ".join(lines[0]) == "curve strength 0 d 1 d 7 d 30 d 90 d 365 d floor lasts"
    assert [line[:2] for line in lines[1:]] == [
        [kind, strength] for kind in ("exponential", "ilstma", "fsrs") for strength in ("1", "2", "5")
    ]


def test_its_figures_are_the_papers(vimbank: Vimbank) -> None:
    """tau 5: exp(-7 / 5) = .247 and exp(-7 / 10) = .497 (B21); it lasts 5 ln 20 = 15.0 days at strength 1."""
    done = vimbank("curve", "--kind", "exponential", "--tau", "5", "--strength", "1", "--strength", "2", "--days", "7")
    assert [line.split() for line in done.out.splitlines()[1:]] == [
        ["exponential", "1", "0.247", "0.05", "15.0", "d"],
        ["exponential", "2", "0.497", "0.05", "30.0", "d"],
    ]


def test_json_is_one_document_of_full_figures(vimbank: Vimbank) -> None:
    document = vimbank(
        "curve", "--json", "--kind", "ilstma", "--strength", "1", "--days", "0, 1.5", "--floor", "0.1"
    ).json
    assert document["days"] == [0.0, 1.5]
    assert document["plot"] is None
    (row,) = document["curves"]
    assert row["kind"] == "ilstma"
    assert row["retention"] == pytest.approx([1.0, math.exp(-0.3)])
    assert row["floor"] == 0.1
    assert row["lasting_days"] == pytest.approx(5 * math.log(10))


def test_what_never_falls_to_the_floor_lasts_for_ever(vimbank: Vimbank) -> None:
    assert vimbank("curve", "--floor", "0", "--kind", "fsrs").out.count("for ever") == 3
    rows = vimbank("curve", "--floor", "0", "--json").json["curves"]
    assert {row["lasting_days"] for row in rows} == {None}


def test_it_draws_a_line_for_each(vimbank: Vimbank, tmp_path: Path) -> None:
    drawn = tmp_path / "curves.svg"
    done = vimbank("curve", "--plot", str(drawn))
    assert done.code == 0
    assert done.out.endswith(f"drawn to {drawn}\n")
    root = ET.parse(drawn).getroot()
    lines = [each for each in root.iter("{http://www.w3.org/2000/svg}g") if each.get("id", "").startswith("line2d_")]
    assert len(lines) >= 9
    assert vimbank("curve", "--json", "--plot", str(tmp_path / "curves.png")).json["plot"].endswith("curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("--tau", "0"), "tau_days"),
        (("--tau", "nan"), "tau_days"),
        (("--strength", "0"), "strength"),
        (("--strength", "inf"), "strength"),
        (("--days", "1,x"), "days"),
        (("--days", "-1"), "days"),
        (("--days", ""), "days"),
        (("--floor", "1.5"), "floor"),
        (("--days", "0", "--plot", "x.svg"), "days"),
        (("--plot", "x.nonsense"), "plot"),
        (("--plot", "no/such/folder/x.svg"), "plot"),
    ],
)
def test_bad_input_is_named_and_exits_2_case_98(
    vimbank: Vimbank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], field: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = vimbank("curve", *arguments)
    assert done.code == 2
    assert field in done.err
    assert not done.out


def test_an_unknown_kind_is_a_usage_error(vimbank: Vimbank) -> None:
    assert vimbank("curve", "--kind", "linear").code == 2


def test_without_matplotlib_it_says_what_to_install(vimbank: Vimbank, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return honest(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    done = vimbank("curve", "--plot", "x.svg")
    assert done.code == 2
    assert "vimbank[bench]" in done.err


def test_it_opens_no_store(vimbank: Vimbank, data: Path) -> None:
    assert vimbank("curve").code == 0
    assert not data.exists()
