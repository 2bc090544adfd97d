"""What a replay found, as rows, as a page and as a plot."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from vimbank.errors import ConfigError, InvalidInput

__all__ = ["ALL", "Outcome", "Row", "draw", "rows_of", "to_markdown"]

ALL: Final = "all"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One world under one setting: memories in the hot index and in all, recall@5 of each evaluated question, the same
    questions' recall@5 without what is measured, and how much each counts in the traffic (``replay_access``)."""

    split: str
    hot: int
    memories: int
    recall: Sequence[float]
    without: Sequence[float]
    traffic: Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a report.

    Attributes:
        access: how questions were asked.  setting: what was measured, by name.  split: tune, report or all.
        hot_share: of all memories, how many are in the hot index, in [0, 1].
        recall, without: mean recall@5 over the questions, with and without what is measured, in [0, 1].
        change: their difference in points (hundredths); error: its standard error, paired by question, in points.
        traffic_change: the mean change where each question counts as often as it is asked, in points; ``change`` again
            where the evaluated questions are not the ones that are asked.
    """

    access: str
    setting: Mapping[str, Any]
    split: str
    questions: int
    hot_share: float
    recall: float
    without: float
    change: float
    error: float
    traffic_change: float


def rows_of(access: str, setting: Mapping[str, Any], outcomes: Sequence[Outcome]) -> Iterator[Row]:
    """A row for each split, and one for all where there are several."""
    splits = sorted({each.split for each in outcomes})
    for split in [*splits, ALL] if len(splits) > 1 else splits:
        chosen = [each for each in outcomes if split in (each.split, ALL)]
        recall = np.array([value for each in chosen for value in each.recall])
        without = np.array([value for each in chosen for value in each.without])
        traffic = np.array([value for each in chosen for value in each.traffic])
        change = 100.0 * (recall - without)
        n = len(change)
        yield Row(
            access=access,
            setting=setting,
            split=split,
            questions=n,
            hot_share=round(sum(each.hot for each in chosen) / sum(each.memories for each in chosen), 4),
            recall=round(float(recall.mean()), 4),
            without=round(float(without.mean()), 4),
            change=round(float(change.mean()), 2),
            error=round(float(change.std(ddof=1) / np.sqrt(n)), 2) if n > 1 else 0.0,
            traffic_change=round(float(np.average(change, weights=traffic)), 2),
        )


def to_markdown(report: Mapping[str, Any]) -> str:
    """The report as a page."""
    habits, machine = report["plan"]["habits"], report["machine"]
    asked, evaluated = report["questions"]["held-out"], report["questions"]["evaluated"]
    lines = [
        f"# Forgetting on {report['set']}",
        "",
        f"{report['conversations']:,} conversations of {report['memories']:,} memories; {evaluated:,} questions "
        f"measure, {asked:,} are held out for asking. Each conversation has {habits['questions_a_day']} questions "
        f"a day, from its first day until {habits['days_after']} days after its last; popularity Zipf "
        f"{habits['exponent']:g}, use reported after {habits['feedback']:.0%} of the searches, seed {habits['seed']}. "
        f"Encoder {report['encoder']}.",
        "",
        f"Measured {report['at']} on {machine['processor']}, {machine['cores']} cores; Python {machine['python']}; "
        f"commit {machine['commit']}.",
        "",
        f"Policy: {_settings(report['policy']['lifecycle'])}; {_settings(report['policy']['ranking'])}.",
    ]
    for part, heading in _HEADINGS.items():
        if report[part]:
            lines += ["", f"## {heading}", "", *_table(report[part])]
    lines += ["", "## Lives", "", *_lives(report["lives"])]
    lines += ["", "## Data", "", *(f"- {name}: sha256 {digest}" for name, digest in report["files"].items())]
    return "\n".join(lines) + "\n"


_HEADINGS: Final[Mapping[str, str]] = {
    "in_motion": "In motion: forget runs under the policy",
    "order": "Order: what leaves first goes until a share is left",
    "prior": "Prior: weights in ranking, against the first pair",
}


def _table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    names = list(rows[0]["setting"])
    heading = [
        "access",
        *(name.replace("_", " ") for name in names),
        "split",
        "n",
        "hot %",
        "recall@5",
        "change",
        "±",
        "traffic",
    ]
    yield f"| {' | '.join(heading)} |"
    yield "|---" * len(heading) + "|"
    for row in rows:
        cells = [
            row["access"],
            *(f"{value:g}" if isinstance(value, float) else str(value) for value in row["setting"].values()),
            row["split"],
            f"{row['questions']:,}",
            f"{100 * row['hot_share']:.1f}",
            f"{100 * row['recall']:.1f}",
            f"{row['change']:+.1f}",
            f"{row['error']:.1f}",
            f"{row['traffic_change']:+.1f}",
        ]
        yield f"| {' | '.join(cells)} |"


def _lives(lives: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Where forget ran: how much was asked, and the largest share of the memories that one run took."""
    yield "| access | curve | searches | log entries folded | largest share of one run |"
    yield "|---|---|---|---|---|"
    keys = list(dict.fromkeys((life["access"], life["curve"]) for life in lives))
    for access, curve in keys:
        own = [life for life in lives if life["forgets"] and (life["access"], life["curve"]) == (access, curve)]
        searches, folded = (sum(life[name] for life in own) for name in ("searches", "folded"))
        yield f"| {access} | {curve} | {searches:,} | {folded:,} | {max(life['largest_share'] for life in own):.0%} |"


def _settings(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def draw(report: Mapping[str, Any], path: Path) -> None:
    """Hot index size against recall@5 for each order, a panel an access model; a cross is the policy in motion.

    Raises ConfigError without matplotlib; InvalidInput where it cannot be written.
    """
    try:
        from matplotlib.figure import Figure  # the extra `bench`
    except ImportError as exc:
        raise ConfigError("matplotlib is not installed, which --out needs: pip install 'vimbank[bench]'") from exc
    accesses = [access for access in report["plan"]["accesses"] if access != "none"]
    if not accesses:
        return
    figure = Figure(figsize=(6.5 * len(accesses), 5.0), layout="constrained")
    for axes, access in zip(figure.subplots(1, len(accesses), squeeze=False)[0], accesses, strict=True):
        lines = _lines(report, access)
        for color, (name, points) in enumerate(lines.items()):
            x, y = zip(*points, strict=True)
            axes.plot(x, y, "-o", markersize=3, color=f"C{color}", label=name)
        for row in _last_split(report["in_motion"], access):
            curve = row["setting"]["curve"]
            color = list(lines).index(curve) if curve in lines else len(lines)
            place = (100 * row["hot_share"], 100 * row["recall"])
            axes.plot(*place, "x", markersize=9, color=f"C{color}", label=f"{curve}, in motion")
        axes.set(title=f"{report['set']}, {access}", xlabel="hot index, % of the memories", ylabel="recall@5, %")
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    try:
        figure.savefig(path)
    except (OSError, ValueError) as exc:
        raise InvalidInput.of("out", f"cannot draw to {path}: {exc}") from exc


def _lines(report: Mapping[str, Any], access: str) -> dict[str, list[tuple[float, float]]]:
    """(hot %, recall %) of each order, from the whole index down."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in _last_split(report["order"], access):
        points = lines.setdefault(row["setting"]["order"], [(100.0, 100 * row["without"])])
        points.append((100 * row["hot_share"], 100 * row["recall"]))
    return lines


def _last_split(rows: Sequence[Mapping[str, Any]], access: str) -> Iterator[Mapping[str, Any]]:
    """Of all splits together where there are several, else of the one there is."""
    splits = {row["split"] for row in rows}
    wanted = ALL if ALL in splits else next(iter(splits), ALL)
    return (row for row in rows if row["access"] == access and row["split"] == wanted)
