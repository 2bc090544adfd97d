"""What every bench shares: how much to do, one measured figure, and percentiles."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

__all__ = ["Plan", "Row", "percentiles"]


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: ``within`` tells whether it keeps the bar (None: there is no bar)."""

    operation: str
    figure: float
    unit: str
    bar: str
    within: bool | None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to do; ``folder`` holds the data folders that the benches share, ``say`` shows progress.

    The URLs name running services, for the benches of the scaled-out form.
    """

    folder: Path
    say: Callable[[str], None] = print
    size: int = 100_000
    searches: int = 500
    adds: int = 500
    passages: int = 512
    rounds: int = 200
    elasticsearch: str | None = None
    postgres: str | None = None
    redis: str | None = None


def percentiles(times: Sequence[float]) -> tuple[float, float]:
    """The median and the 95th percentile."""
    return float(np.percentile(times, 50)), float(np.percentile(times, 95))
