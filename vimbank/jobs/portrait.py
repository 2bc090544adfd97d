"""Portraits of users: the traits and emotions of each day, condensed into one (M-6, M-7, I-27)."""

from collections.abc import Collection, Mapping
from typing import Any

from vimbank.domain.summaries import PORTRAIT_KIND
from vimbank.jobs.context import JobContext
from vimbank.jobs.derive import Derivation, run_over_partitions

__all__ = ["portrait"]


def portrait(
    context: JobContext, params: Mapping[str, Any], *, only: Collection[str] | None = None
) -> Mapping[str, Any]:
    """Bring the portraits up to date with what was said; a second run changes nothing.

    Args:    only: bring these up to date alone, and add none.
    """

    def work(derivation: Derivation) -> None:
        derivation.daily_and_global("day_portrait", "global_portrait")

    return run_over_partitions(context, params, PORTRAIT_KIND, work, only=only)
