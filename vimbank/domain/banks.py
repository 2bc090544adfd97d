"""The banks as data: what each is for, and how a search of it weighs its candidates (V-1, V-19 to V-24)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from vimbank.domain.models import FusionName

__all__ = ["DEFAULT_POLICIES", "BankPolicy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BankPolicy:
    """How a search of one bank ranks.

    Attributes:
        fusion: how the legs are joined; a query may ask for another.
        sparse_weight: w in w * sparse + (1 - w) * dense, in [0, 1].
        candidates: how many each leg brings, >= 1 (case 148).
        half_life_days: of the time factor; None: time does not count.
        time_weight: rho in g = (1 - rho) + rho * 2^(-age / half-life), in [0, 1] (B12).
        retention_weight: rho in 1 - rho + rho * R, R by the forgetting curve of the bank's life, in [0, 1] (D11); below
            1 no score that is above 0 becomes 0. Time and retention are two answers to one question, how much age
            may take: by the age alone, or by age and recalls. One of them is enough; both multiply.
        information_weight: w in r + w * i * r * (1 - r), r the relevance so far, i how much a memory tells
            (``domain.information``), in [0, 1].
        window: turns returned on each side of a hit.
        neighbour_weight: how much of the best neighbour's relevance is added, in [0, 1] (D7).
        hop_weight: how much of a source's relevance its linked memories get, in [0, 1]; 0: no hop (D15).
        temporal_weight: how much a match with a date named in the query adds, in [0, 1] (D6).
        failure_weight: how much a failed task loses, in [0, 1] (V-24).
        derived_weight: what a summary or portrait keeps of its score beside the memories it was made of, in [0, 1];
            1: all. A query that filters by kind knows what it wants: there nothing is taken.
        recency_cosine: from which cosine on two results rival, so that the newer may stand first, in [0, 1]; 0.3 less
            where the question asks for what is so now (docs/adr/0013).
        recency_gap: how much lower the newer may have scored, as a share of the older one's score, in [0, 1]; four
            times as much where it tells news; 0: the newer never stands first for being newer.
        group_by_parent: only the best hit of each parent (a task run) is returned.
        relevant_from: the relevance, before the factors, from which a result is labelled relevant, in [0, 1] (V-9).
        recalled_from: the share of the best result's score from which a result counts as recalled, in [0, 1]; 0: each.
        rerank: how many of the best are reranked by MaxSim where token vectors exist (D4); 0: none.
    """

    fusion: FusionName = "convex"
    sparse_weight: float = 0.5
    candidates: int = 200
    half_life_days: float | None = None
    time_weight: float = 0.0
    retention_weight: float = 0.0
    information_weight: float = 0.0
    window: int = 0
    neighbour_weight: float = 0.0
    hop_weight: float = 0.0
    temporal_weight: float = 0.0
    failure_weight: float = 0.0
    derived_weight: float = 1.0
    recency_cosine: float = 0.8
    recency_gap: float = 0.0
    group_by_parent: bool = False
    relevant_from: float = 0.55
    recalled_from: float = 0.0
    rerank: int = 50


DEFAULT_POLICIES: Final[Mapping[str, BankPolicy]] = {
    "knowledge": BankPolicy(hop_weight=0.5, recency_gap=0.2),
    "dialog": BankPolicy(
        half_life_days=7.0,
        time_weight=0.001,
        information_weight=0.8,
        window=1,
        neighbour_weight=0.7,
        temporal_weight=0.2,
        derived_weight=0.5,
        recency_gap=0.2,
        relevant_from=0.65,
        recalled_from=0.75,
    ),
    "task": BankPolicy(half_life_days=2.0, time_weight=0.3, failure_weight=0.1, group_by_parent=True, window=1),
}
