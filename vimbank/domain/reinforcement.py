"""What recalls make of a memory: its lines of the access log, one by one, through the curve of its bank. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from vimbank.domain.curves import Curve, Trace
from vimbank.domain.models import Signal
from vimbank.domain.scoring import SECONDS_A_DAY

__all__ = ["COUNTED", "Standing", "reinforce"]

COUNTED: Final = frozenset({Signal.RETURNED, Signal.USED})
"""The signals that are recalls: ``recall_count`` counts them under every curve (case 141)."""

_ORDER: Final = {signal: place for place, signal in enumerate(Signal)}
"""Of signals of one instant: a memory is returned before it is judged."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a memory stands with its recalls.

    Attributes:
        trace: what the curves know of it.
        recall_count: how often it was returned or used, >= 0.
        last_recalled_at: when its age last began anew: the last signal that restarts its curve's clock, or the last
            restore from the archive, whichever is later; None: neither.
    """

    trace: Trace
    recall_count: int
    last_recalled_at: datetime | None


def reinforce(
    standing: Standing,
    signals: Iterable[tuple[datetime, Signal]],
    curve: Curve,
    *,
    created_at: datetime,
    now: datetime,
) -> Standing:
    """The standing after these signals, taken in order of their time, however they arrive.

    Each is reviewed at the age that the memory has by then, counted as forgetting counts it: from the later of its
    creation and ``last_recalled_at``. A signal from before that is one at age 0 and moves nothing back. A time after
    ``now`` (another machine's clock runs ahead) counts as now, so that no age is negative later on. Signals in several
    calls, the earlier ones first, leave what they leave in one.

    Source:  V-31, M-16 (a recall strengthens, and age starts again at 0); D10; case 141.
    """
    trace, last = standing.trace, standing.last_recalled_at
    start = created_at if last is None else max(created_at, last)
    count = standing.recall_count
    for noted, signal in sorted(signals, key=lambda each: (each[0], _ORDER[each[1]])):
        at = min(noted, now)
        trace = curve.review(trace, signal, max(0.0, (at - start).total_seconds() / SECONDS_A_DAY))
        count += signal in COUNTED
        if curve.restarts(signal):
            start = max(start, at)
            last = at if last is None else max(last, at)
    return Standing(trace, count, last)
