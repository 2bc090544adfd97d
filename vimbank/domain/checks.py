"""What a check of the store and of everything made from it finds, as values."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal, TypeAlias, get_args

from vimbank.domain.models import Partition

__all__ = [
    "COMPONENTS",
    "OWN",
    "UNCOMPARED",
    "CheckReport",
    "Component",
    "IndexChecks",
    "PartitionCheck",
    "Problem",
    "after_repair",
    "index_checks",
]

Component: TypeAlias = Literal[
    "store", "embeddings", "index", "snapshots", "remote_sparse", "remote_dense", "summaries"
]
COMPONENTS: Final[tuple[Component, ...]] = get_args(Component)
"""What is checked: the store's tables, the vectors in it, the in-process index of a partition and its snapshot file,
the indexes outside the process, and the summaries and portraits."""

OWN: Final[tuple[Component, ...]] = ("index", "snapshots")
"""What each process has for itself, so that none can check it for another."""

UNCOMPARED: Final = "cannot be compared with the store"
"""The text of a problem that hides all others of its part, such as an engine that is out of reach."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is not as the store says it should be.

    ``repaired``: it was found, and is gone after a repair. ``why``: what keeps it from being repaired; None where it
    was, or where nobody asked.
    """

    component: Component
    text: str
    repaired: bool = False
    why: str | None = None

    def __str__(self) -> str:
        return f"{self.text} (repaired)" if self.repaired else self.text + (f" ({self.why})" if self.why else "")


@dataclass(frozen=True, slots=True)
class PartitionCheck:
    """One partition of a check: how many memories the store has, and how what was made from them differs."""

    partition: Partition
    memories: int
    problems: Sequence[Problem]


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Everything compared with the store. ``problems`` are those that belong to no one partition."""

    partitions: Sequence[PartitionCheck]
    problems: Sequence[Problem]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong (any more): what was repaired counts as right."""
        return all(problem.repaired for problem in self.everything)

    @property
    def everything(self) -> Sequence[Problem]:
        """All problems, those of the partitions included."""
        return [*self.problems, *(problem for each in self.partitions for problem in each.problems)]

    @property
    def found(self) -> Mapping[Component, int]:
        """How many problems there were, by component; none: left out."""
        return Counter(problem.component for problem in self.everything)

    @property
    def repaired(self) -> Mapping[Component, int]:
        """How many of them are gone."""
        return Counter(problem.component for problem in self.everything if problem.repaired)


@dataclass(frozen=True, slots=True)
class IndexChecks:
    """What the checks of one process's own indexes have come to, by component of ``OWN``.

    ``found`` and ``remaining``: by the last one, which ended at ``at``. ``repaired``: by all since the process started.
    """

    at: datetime
    found: Mapping[Component, int]
    remaining: Mapping[Component, int]
    repaired: Mapping[Component, int]


def index_checks(before: IndexChecks | None, report: CheckReport, *, at: datetime) -> IndexChecks:
    """The same after one more check, of its own indexes alone or of everything."""
    found, repaired = report.found, report.repaired
    former = {} if before is None else before.repaired
    return IndexChecks(
        at,
        {each: found.get(each, 0) for each in OWN},
        {each: found.get(each, 0) - repaired.get(each, 0) for each in OWN},
        {each: former.get(each, 0) + repaired.get(each, 0) for each in OWN},
    )


def after_repair(before: Iterable[Problem], after: Iterable[Problem], why: str | None) -> list[Problem]:
    """What two looks say, one before and one after a repair: what is gone was repaired, the rest is left.

    Where the second look saw nothing, nothing counts as repaired.

    Args:    why: what the repair itself says of what is left.
    """
    left = [replace(problem, why=problem.why or why) for problem in after]
    texts = {problem.text for problem in left}
    gone = [problem for problem in before if problem.text not in texts]
    if UNCOMPARED in texts:
        return [*(replace(problem, why=why) for problem in gone), *left]
    return [*(replace(problem, repaired=True, why=None) for problem in gone if problem.text != UNCOMPARED), *left]
