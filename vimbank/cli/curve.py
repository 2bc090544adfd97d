"""curve: the forgetting curves as a table, as JSON and as a plot."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

from vimbank.cli.command import Call, command
from vimbank.cli.render import table
from vimbank.curves.catalogue import open_curve
from vimbank.domain.curves import CURVE_NAMES, DEFAULT_FLOORS, Curve, CurveName, Traces
from vimbank.domain.lifecycle import LifecyclePolicy
from vimbank.domain.models import FloatArray
from vimbank.errors import ConfigError, InvalidInput

__all__ = ["curve"]

PLOT_POINTS = 400


@dataclass(frozen=True, slots=True)
class _Row:
    """One curve at one strength: its retention at each of the days, and how long it lasts (None: for ever)."""

    kind: CurveName
    strength: float
    floor: float
    lasting_days: float | None
    retention: Sequence[float]


@command(
    "curve", example="vimbank curve --kind exponential --tau 5 --strength 1 --strength 3 --days 1,7,30", tenant=False
)
@click.option("--kind", "kinds", multiple=True, type=click.Choice(CURVE_NAMES), help="Repeatable.  [default: all]")
@click.option(
    "--tau",
    "tau_days",
    type=float,
    default=LifecyclePolicy().tau_days,
    show_default=True,
    help="Unit scale of the exponential, days.",
)
@click.option(
    "--strength",
    "strengths",
    multiple=True,
    type=float,
    default=(1.0, 2.0, 5.0),
    show_default=True,
    help="1 and one more a recall; repeatable.",
)
@click.option(
    "--days", default="0,1,7,30,90,365", show_default=True, help="Ages since the last recall, with commas between."
)
@click.option("--floor", type=float, help="Retention at which a memory is archived.  [default: the curve's own]")
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Draw them to a .png, .svg or .pdf, from day 0 to the last of --days.",
)
def curve(
    call: Call,
    kinds: Sequence[CurveName],
    tau_days: float,
    strengths: Sequence[float],
    days: str,
    floor: float | None,
    plot: Path | None,
) -> None:
    """Show how much is retained of a memory by each forgetting curve, and after how many days it is let go.

    exponential is MemoryBank's and VIMBank's exp(-t / (tau * strength)), ilstma is ILSTMA's saturating strength,
    fsrs is FSRS-6, where strength stands for that many times the first stability.
    """
    ages = _ages(days)
    if floor is not None and not 0.0 <= floor <= 1.0:
        raise InvalidInput.of("floor", "must be in [0, 1]")
    rows = []
    drawn = []
    for kind in kinds or CURVE_NAMES:
        opened = open_curve(kind, tau_days=tau_days)
        rows += [_row(opened, strength, ages, floor) for strength in strengths]
        drawn.append(opened)
    if plot is not None:
        _plot(plot, drawn, strengths, float(ages.max()))
    document = {
        "tau_days": tau_days,
        "days": ages.tolist(),
        "curves": rows,
        "plot": None if plot is None else str(plot),
    }
    call.answer(document, "\n".join([_table(rows, ages), *([] if plot is None else [f"drawn to {plot}"])]))


def _ages(days: str) -> FloatArray:
    try:
        ages = np.array([float(each) for each in days.split(",")])
    except ValueError as exc:
        raise InvalidInput.of("days", "must be numbers with commas between, for example 1,7,30") from exc
    if not (np.isfinite(ages) & (ages >= 0.0)).all():
        raise InvalidInput.of("days", "must be finite and not negative")
    return ages


def _row(opened: Curve, strength: float, ages: FloatArray, floor: float | None) -> _Row:
    if not 1.0 <= strength < math.inf:
        raise InvalidInput.of("strength", "must be at least 1 and finite")
    lowest = DEFAULT_FLOORS[opened.name] if floor is None else floor
    lasting = float(opened.lasting_days(_traces(strength, 1), lowest)[0])
    left = opened.retention(_traces(strength, len(ages)), ages)
    return _Row(opened.name, strength, lowest, lasting if math.isfinite(lasting) else None, left.tolist())


def _traces(strength: float, n: int) -> Traces:
    return Traces.of_strength(np.full(n, strength))


def _table(rows: Sequence[_Row], ages: FloatArray) -> str:
    heading = ("curve", "strength", *(f"{age:g} d" for age in ages), "floor", "lasts")
    return table(
        [
            (
                row.kind,
                f"{row.strength:g}",
                *(f"{left:.3f}" for left in row.retention),
                f"{row.floor:g}",
                "for ever" if row.lasting_days is None else f"{row.lasting_days:.1f} d",
            )
            for row in rows
        ],
        heading=heading,
    )


def _plot(path: Path, curves: Sequence[Curve], strengths: Sequence[float], last_day: float) -> None:
    try:
        from matplotlib.figure import Figure  # the extra `bench`
    except ImportError as exc:
        raise ConfigError("matplotlib is not installed, which --plot needs: pip install 'vimbank[bench]'") from exc
    if last_day <= 0.0:
        raise InvalidInput.of("days", "must reach beyond day 0 to be drawn")
    ages = np.linspace(0.0, last_day, PLOT_POINTS)
    figure = Figure(figsize=(8.0, 5.0), layout="constrained")
    axes = figure.subplots()
    for style, opened in zip(("-", "--", ":"), curves, strict=False):
        for color, strength in enumerate(strengths):
            left = opened.retention(_traces(strength, len(ages)), ages)
            axes.plot(ages, left, style, color=f"C{color % 10}", label=f"{opened.name}, strength {strength:g}")
    axes.set(xlabel="days since the last recall", ylabel="retention", xlim=(0.0, last_day), ylim=(0.0, 1.02))
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    try:
        figure.savefig(path)
    except (OSError, ValueError) as exc:
        raise InvalidInput.of("plot", f"cannot draw to {path}: {exc}") from exc
