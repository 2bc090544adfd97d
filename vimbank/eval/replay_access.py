"""The access model of the replay: which questions are asked on which day, and which only measure. Pure, seeded.

Nobody has logs of people who ask a memory server, so the model is simple and says so: a fixed number of questions a
day, drawn independently, with a popularity that follows Zipf's law. A question is asked only once all of its evidence
has been said.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

import numpy as np

from vimbank.domain.models import FloatArray
from vimbank.errors import InvalidInput
from vimbank.ingestion.datasets import Question

__all__ = ["ACCESS_MODELS", "AccessModel", "Halves", "Popularity", "halves", "traffic", "zipf"]

AccessModel = Literal["re-asked", "held-out", "none"]
ACCESS_MODELS: Final[tuple[AccessModel, ...]] = ("re-asked", "held-out", "none")
"""Which questions are asked during the replay, while the evaluated half of them is always the same.

``re-asked``: the evaluated ones themselves; ``held-out``: the other half, so that no evaluated question was ever asked
(their evidence may overlap); ``none``: nobody asks anything.
"""

_Group = TypeVar("_Group", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Halves:
    """The questions of a set in two halves without a common one, in the set's order."""

    held_out: Sequence[Question]
    evaluated: Sequence[Question]

    def both(self) -> tuple[Sequence[Question], Sequence[Question]]:
        """``held_out``, ``evaluated``."""
        return self.held_out, self.evaluated

    def asked(self, model: AccessModel) -> Sequence[Question]:
        """What may be asked during the replay."""
        by_model = {"re-asked": self.evaluated, "held-out": self.held_out, "none": ()}
        return by_model[model]


def halves(questions: Sequence[Question], *, generator: np.random.Generator) -> Halves:
    """Each conversation's questions of each category, at random into two halves; an odd one by the toss of a coin."""
    held_out: set[int] = set()
    for places in _grouped(range(len(questions)), lambda i: (questions[i].user_id, questions[i].category)):
        mixed = generator.permutation(places).tolist()
        size = (len(mixed) + int(generator.integers(2))) // 2
        held_out.update(mixed[:size])
    return Halves(
        [each for i, each in enumerate(questions) if i in held_out],
        [each for i, each in enumerate(questions) if i not in held_out],
    )


def zipf(n: int, *, exponent: float) -> FloatArray:
    """Popularity by rank: p(r) = r^-exponent / sum over all ranks, r = 1..n.

    Args:    exponent: >= 0; 0: all alike.
    Returns: (n,) float64, falling, sums to 1.
    Raises:  InvalidInput: a negative exponent.
    """
    if exponent < 0.0:
        raise InvalidInput.of("exponent", "must not be negative")
    weights = np.arange(1, n + 1, dtype=np.float64) ** -exponent
    return weights / weights.sum() if n else weights


class Popularity:
    """Draws the questions of one conversation, each as often as its rank says; the ranks are a random permutation.

    Args:    questions: all that may ever be asked.  exponent: of ``zipf``.  generator: for the ranks and the draws.
    """

    def __init__(self, questions: Sequence[Question], *, exponent: float, generator: np.random.Generator) -> None:
        self._questions = questions
        self._weights = zipf(len(questions), exponent=exponent)[generator.permutation(len(questions))]
        self._generator = generator

    def shares(self) -> Mapping[str, float]:
        """Of each question, by its id, its share of all draws once everything has been said; they sum to 1."""
        return {each.id: share for each, share in zip(self._questions, self._weights.tolist(), strict=True)}

    def draw(self, n: int, *, said: Callable[[str], bool]) -> Sequence[Question]:
        """``n`` questions, independent of each other, among those whose evidence has all been said; none: none."""
        possible = [i for i, each in enumerate(self._questions) if all(map(said, each.gold))]
        if not possible:
            return []
        weights = self._weights[possible]
        drawn = self._generator.choice(possible, size=n, p=weights / weights.sum())
        return [self._questions[i] for i in drawn.tolist()]


def traffic(evaluated: Sequence[Question], popularities: Iterable[Popularity]) -> list[float]:
    """How much each evaluated question counts where it counts as often as people ask it, >= 0; all alike if none is.

    Conversations have as many questions a day each, so one counts as much as the other.
    """
    shares = {name: share for popularity in popularities for name, share in popularity.shares().items()}
    weights = [shares.get(each.id, 0.0) for each in evaluated]
    return weights if any(weights) else [1.0] * len(evaluated)


def _grouped(places: range, group: Callable[[int], _Group]) -> Iterator[list[int]]:
    """The places of each group, groups in order of their first place."""
    groups: dict[_Group, list[int]] = {}
    for place in places:
        groups.setdefault(group(place), []).append(place)
    yield from groups.values()
