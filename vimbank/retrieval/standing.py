"""How the results of a search stand to each other: the current above the stale, and what each is to the question."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType

from vimbank.domain.banks import BankPolicy
from vimbank.domain.conflicts import claims_of, labels
from vimbank.domain.models import Memory, ScoredMemory
from vimbank.domain.scoring import currency_factors

__all__ = ["current_first", "labelled", "recalled"]


def current_first(
    results: Sequence[ScoredMemory],
    *,
    moment: datetime,
    newer: Mapping[str, Collection[str]] = MappingProxyType({}),
    as_they_are: Collection[str] = (),
    threshold: float = 0.0,
) -> list[ScoredMemory]:
    """A memory of which something has ended stands below the memories among the results that ended it (V-10), and any
    memory below the newer ones that rival it.

    Only then it falls: alone it is the best there is. Whatever does not fall keeps score and order. What has ended
    falls by the factor ``currency``, below the threshold too; what only is older by ``recency``, to the threshold.

    Args:    results: best first.  moment: what ends later than that has not ended yet.
             newer: id -> ids of its newer rivals (``retrieval.rivals``).
             as_they_are: ids whose scores must stay what they are.
    """
    ended = _successors(results, moment, as_they_are)
    if not ended and not newer:
        return list(results)
    scores = {result.memory.id: result.score for result in results}
    factors = currency_factors(scores, {name: {*ended.get(name, ()), *newer.get(name, ())} for name in scores})
    lowered = [
        _lowered(result, factors[result.memory.id], ended=result.memory.id in ended, threshold=threshold)
        if result.memory.id in factors
        else result
        for result in results
    ]
    return sorted(lowered, key=lambda result: (-result.score, result.memory.id)) if factors else lowered


def labelled(
    results: Sequence[ScoredMemory], policies: Mapping[str, BankPolicy], *, moment: datetime
) -> list[ScoredMemory]:
    """The results, each with its label (V-9, V-11): see ``domain.conflicts.labels``.

    Relevant is what reaches its bank's ``relevant_from`` before any factor: an old memory answers no less than a new
    one. Something that has ended at ``moment`` makes a memory conflicting, whether or not what ended it is there.

    Args:    results: explained.
    """
    above = {
        result.memory.id: result.explanation.relevance - policies[result.memory.bank].relevant_from
        for result in results
        if result.explanation is not None
    }
    claims = [claim for result in results for claim in claims_of(result.memory)]
    stale = [result.memory.id for result in results if _is_stale(result.memory, moment)]
    found = labels(above, claims, threshold=0.0, superseded=stale)
    return [replace(result, label=found[result.memory.id]) for result in results]


def recalled(results: Sequence[ScoredMemory], policies: Mapping[str, BankPolicy]) -> list[str]:
    """The ids of those that count as recalled: as good as their bank's ``recalled_from`` share of the best result.

    Ten results are returned because ten were asked for, also where one is the answer; whatever counts as recalled fades
    more slowly, so the others would crowd out what nobody has asked for yet (docs/adr/0010).
    """
    best = max((result.score for result in results), default=0.0)
    return [result.memory.id for result in results if result.score >= policies[result.memory.bank].recalled_from * best]


def _successors(results: Sequence[ScoredMemory], moment: datetime, as_they_are: Collection[str]) -> dict[str, set[str]]:
    """Of the results of which something has ended, those that ended it, where any of them is there."""
    if not any(result.memory.ended for result in results):
        return {}
    bearers: defaultdict[str, set[str]] = defaultdict(set)
    for result in results:
        for name in (result.memory.id, result.memory.source.parent_id):
            if name is not None:  # a part stands for the document or task run that ended it
                bearers[name].add(result.memory.id)
    successors = {
        result.memory.id: {bearer for name in _ended_by(result.memory, moment) for bearer in bearers[name]}
        for result in results
        if result.memory.id not in as_they_are
    }
    return {name: found for name, found in successors.items() if found}


def _ended_by(memory: Memory, moment: datetime) -> set[str]:
    return {each.new_id for each in memory.ended if each.from_instant <= moment}


def _is_stale(memory: Memory, moment: datetime) -> bool:
    return memory.superseded_by is not None or bool(_ended_by(memory, moment))


def _lowered(result: ScoredMemory, factor: float, *, ended: bool, threshold: float) -> ScoredMemory:
    name, score, explanation = "currency", result.score * factor, result.explanation
    if not ended:
        name, score = "recency", max(score, threshold)
    if explanation is not None:
        explanation = replace(explanation, factors={**explanation.factors, name: score / result.score}, score=score)
    return replace(result, score=score, explanation=explanation)
