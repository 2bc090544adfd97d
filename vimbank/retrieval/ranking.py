"""One partition's answer: from the two legs' candidates to ids with final scores, best first.

Everything here works on arrays over a few hundred rows; objects are made of the rows that are returned.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

import numpy as np

from vimbank.domain.banks import BankPolicy
from vimbank.domain.curves import Curve, Traces
from vimbank.domain.filters import And, Condition, Filter, Not, Or
from vimbank.domain.fusion import (
    Fused,
    convex,
    dense_only,
    normalise_bm25,
    ranks,
    rrf,
    similarity,
    sparse_only,
    vimbank_eq4,
)
from vimbank.domain.information import UNKNOWN_INFORMATION
from vimbank.domain.models import (
    BoolArray,
    Explanation,
    FloatArray,
    FusionName,
    IntArray,
    Memory,
    Query,
    Vector,
)
from vimbank.domain.scoring import (
    age_days,
    best_first,
    derived_factor,
    lift,
    outcome_factor,
    retention_factor,
    time_factor,
)
from vimbank.domain.temporal import TimeExpression, falls_in
from vimbank.errors import BackendUnavailable
from vimbank.ports import DenseLeg, DenseSearch, LexicalQuery, PartitionIndex, Reranker, SparseLeg, SparseSearch
from vimbank.retrieval.expand import (
    Links,
    beside,
    follow_titles,
    neighbour_pairs,
    positions,
    revisions,
    support,
    union,
    window_rows,
    windows,
)
from vimbank.retrieval.legs import NO_DENSE_LEG, NO_SPARSE_LEG

__all__ = ["Ask", "Load", "Ranking", "SearchLegs", "rank_partition"]

Load = Callable[[Mapping[str, int]], Mapping[str, Memory]]
"""Gives memories by id, for id -> the revision at which the index knows it; those that are gone are left out."""

_SINGLE_LEGS: Final = ("dense", "sparse")
"""Fusions that show one leg as it is."""
_HOP_SOURCES: Final = 5
"""From how many of the best rows links are followed (D15: one hop from the top five)."""
_SMOOTHED: Final = 50
"""How many of the best rows lend support to their neighbours and get it from them."""
_THREADED_FROM_ROWS: Final = 200_000
"""From this size on the legs run side by side. At 100,000 rows (two busy cores) a second thread made it 6 -> 16 ms:
both legs are short and share the interpreter's lock."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What one search asks of every partition, prepared once.

    ``vector`` None: there is none, because the encoder failed or no partition needs it. ``depth``: how many
    results each partition gives at most. ``understood``: the share of the query that the encoder's model can read.
    """

    query: Query
    now: datetime
    lexical: LexicalQuery
    vector: Vector | None
    dates: Sequence[TimeExpression]
    depth: int
    understood: float = 1.0


def _no_line(i: int) -> Explanation:
    raise IndexError(i)


@dataclass(frozen=True, slots=True)
class Ranking:
    """One partition's best, at most ``depth``: ids, scores and windows line by line, ties by id.

    ``revisions``: those of all ids and windows, as the index knows them. ``full`` tells that more could have come
    with a larger depth. ``single_leg``: the scores are those of one leg as it is. ``explain`` explains the i-th.
    """

    ids: Sequence[str]
    scores: Sequence[float]
    windows: Sequence[Sequence[str]]
    revision: int
    revisions: Mapping[str, int] = field(default_factory=dict)
    full: bool = False
    degraded: frozenset[str] = frozenset()
    single_leg: bool = False
    explain: Callable[[int], Explanation] = _no_line


@dataclass(frozen=True, slots=True)
class SearchLegs:
    """The two ways of searching, and the threads to ask them side by side."""

    sparse: SparseSearch
    dense: DenseSearch
    threads: Executor


class _LegLost(Exception):
    """A leg that had answered can no longer score rows."""

    def __init__(self, leg: str, error: BackendUnavailable) -> None:
        super().__init__(leg)
        self.leg = leg
        self.error = error


@dataclass(frozen=True, slots=True)
class _Legs:
    sparse: SparseLeg
    dense: DenseLeg
    degraded: frozenset[str]

    def bm25(self, rows: IntArray) -> FloatArray:
        """Of these rows. Raises _LegLost."""
        try:
            return self.sparse.score(rows)
        except BackendUnavailable as exc:
            raise _LegLost("sparse", exc) from exc

    def cosine(self, rows: IntArray) -> FloatArray:
        """Of these rows. Raises _LegLost."""
        try:
            return self.dense.score(rows)
        except BackendUnavailable as exc:
            raise _LegLost("dense", exc) from exc


@dataclass(frozen=True, slots=True)
class _Candidates:
    """The rows in play, ascending, with both legs' raw figures."""

    rows: IntArray
    bm25: FloatArray
    cosine: FloatArray


@dataclass(frozen=True, slots=True)
class _Scored:
    """The figures of the rows in play, all (n,): what ``Explanation`` shows of each."""

    rows: IntArray
    parts: dict[str, FloatArray]
    inputs: dict[str, FloatArray | float]
    factors: dict[str, FloatArray] = field(default_factory=dict)

    @property
    def relevance(self) -> FloatArray:
        return _total(self.parts)

    @property
    def scores(self) -> FloatArray:
        score = self.relevance
        for factor in self.factors.values():
            score = score * factor
        return score


def rank_partition(
    index: PartitionIndex,
    ask: Ask,
    policy: BankPolicy,
    *,
    load: Load,
    search: SearchLegs,
    reranker: Reranker | None = None,
    curve: Curve | None = None,
) -> Ranking:
    """Rank one partition: filter, legs, completion, fusion, neighbours, hop, dates, rerank, factors, threshold, cut.

    A row that may not be returned contributes nothing, not even as a neighbour. A leg that is out of reach is left
    out and named; where it was the only one asked, its BackendUnavailable is raised. ``dense`` and ``sparse`` show
    one leg as it is: its normalised score, without anything that adds to it or takes from it (case 143).

    Args:    curve: how the bank's memories fade; without one retention does not count.
    """
    query = ask.query
    fusion = query.fusion or policy.fusion
    allowed = query_mask = index.select(query.filter, now=ask.now, session_id=query.session_id, agent_id=query.agent_id)
    possible = len(index) if query_mask is None else int(np.count_nonzero(query_mask))
    if not possible:
        return Ranking((), (), (), index.cursor)
    limit = max(policy.candidates, ask.depth)
    lost: dict[str, BackendUnavailable] = {}
    while True:
        legs = _ask_legs(index, ask, policy, search, allowed=allowed, limit=limit, lost=lost)
        try:
            scored = _score(index, ask, policy, fusion, legs, allowed=allowed, load=load, reranker=reranker)
        except _LegLost as exc:
            lost[exc.leg] = exc.error
            continue
        if fusion not in _SINGLE_LEGS:
            scored = _weighed(scored, index, ask, policy, curve, fusion)
        rows, ids, scores = _best(index, scored, ask, group=policy.group_by_parent)
        if len(ids) >= ask.depth or limit >= possible or not policy.group_by_parent:
            break
        limit *= 4  # many steps of few tasks: groups fold together, so more candidates are needed for k results
    at = positions(scored.rows, rows)
    around = window_rows(index, rows, radius=policy.window, allowed=allowed)
    return Ranking(
        ids,
        scores,
        windows(index, around),
        index.cursor,
        revisions(index, np.concatenate([rows, around.ravel()])),
        len(ids) >= ask.depth,
        legs.degraded,
        fusion in _SINGLE_LEGS,
        lambda i: _explain(scored, int(at[i]), fusion),
    )


# --- candidates ---------------------------------------------------------------------------------------------------


def _ask_legs(
    index: PartitionIndex,
    ask: Ask,
    policy: BankPolicy,
    search: SearchLegs,
    *,
    allowed: BoolArray | None,
    limit: int,
    lost: Mapping[str, BackendUnavailable],
) -> _Legs:
    fusion = ask.query.fusion or policy.fusion

    def sparse(also: IntArray | None = None) -> SparseLeg | BackendUnavailable:
        if "sparse" in lost:
            return lost["sparse"]
        try:
            return search.sparse.search(index, replace(ask.lexical, also=also), allowed=allowed, limit=limit)
        except BackendUnavailable as exc:
            return exc

    def dense() -> DenseLeg | BackendUnavailable:
        if "dense" in lost or ask.vector is None:
            return lost.get("dense", NO_DENSE_LEG)
        try:
            return search.dense.search(index, ask.vector, allowed=allowed, limit=limit)
        except BackendUnavailable as exc:
            return exc

    found: SparseLeg | BackendUnavailable
    near: DenseLeg | BackendUnavailable
    if fusion == "sparse":
        found, near = sparse(), NO_DENSE_LEG
    elif fusion == "dense":
        found, near = NO_SPARSE_LEG, dense()
    elif search.sparse.remote and not search.dense.remote:
        near = dense()  # much quicker than the round trip, which then brings these rows' scores along
        found = sparse(None if isinstance(near, BackendUnavailable) else _beside(index, near.rows, policy))
    elif search.sparse.remote or search.dense.remote or len(index) >= _THREADED_FROM_ROWS:
        later = search.threads.submit(dense)
        found, near = sparse(), later.result()
    else:
        found, near = sparse(), dense()
    return _without_failures(found, near, fusion)


def _beside(index: PartitionIndex, rows: IntArray, policy: BankPolicy) -> IntArray:
    """These rows and, where neighbours count, those around them."""
    if not policy.neighbour_weight or not len(rows):
        return rows
    around = beside(index, rows)
    return np.union1d(rows, around[around >= 0])


def _without_failures(
    found: SparseLeg | BackendUnavailable, near: DenseLeg | BackendUnavailable, fusion: FusionName
) -> _Legs:
    degraded = set()
    if isinstance(found, BackendUnavailable):
        # Without a vector the dense leg has no answer either.
        if fusion == "sparse" or isinstance(near, BackendUnavailable) or not near.asked:
            raise found
        degraded.add("sparse")
        found = NO_SPARSE_LEG
    elif found.degraded:
        degraded.add("sparse")
    if isinstance(near, BackendUnavailable):
        if fusion == "dense":
            raise near
        degraded.add("dense")
        near = NO_DENSE_LEG
    return _Legs(found, near, frozenset(degraded))


def _complete(legs: _Legs, rows: IntArray, known: _Candidates | None = None) -> _Candidates:
    """Both legs' figures of all rows; those already known are not asked for again."""
    if known is None:
        return _Candidates(rows, legs.bm25(rows), legs.cosine(rows))
    bm25, cosine = np.empty(len(rows)), np.empty(len(rows))
    old = positions(rows, known.rows)
    new = np.ones(len(rows), dtype=np.bool_)
    new[old] = False
    bm25[old], cosine[old] = known.bm25, known.cosine
    bm25[new], cosine[new] = legs.bm25(rows[new]), legs.cosine(rows[new])
    return _Candidates(rows, bm25, cosine)


# --- scores -------------------------------------------------------------------------------------------------------


def _score(
    index: PartitionIndex,
    ask: Ask,
    policy: BankPolicy,
    fusion: FusionName,
    legs: _Legs,
    *,
    allowed: BoolArray | None,
    load: Load,
    reranker: Reranker | None,
) -> _Scored:
    candidates = _complete(legs, union(index, legs.sparse.rows, legs.dense.rows))
    if fusion in _SINGLE_LEGS:
        fused, inputs = _fuse(index, candidates, legs, policy, fusion, ask)
        kept = {"sparse": fused.sparse} if fusion == "sparse" else {"dense": fused.dense}
        return _Scored(candidates.rows, kept, inputs)
    fused, inputs = _fuse(index, candidates, legs, policy, fusion, ask)
    best = _leading(index, candidates.rows, fused.relevance, _SMOOTHED)
    links = _links(index, policy, best, allowed=allowed, load=load)
    rows = union(index, candidates.rows, *(link.targets for link in links.values()))
    if len(rows) > len(candidates.rows):
        candidates = _complete(legs, rows, candidates)
        fused, inputs = _fuse(index, candidates, legs, policy, fusion, ask)
    parts = {"sparse": fused.sparse, "dense": fused.dense}
    _add_context(parts, index, ask, policy, candidates.rows, links)
    if reranker is not None and policy.rerank:
        parts = _rerank(parts, index, ask, policy, candidates.rows, load=load, reranker=reranker)
    if policy.information_weight and fusion != "vimbank_eq4":  # which is shown as it was published
        information = inputs["information"] = _information(index, candidates.rows)
        fits = _total(parts)
        parts["information"] = lift(fits, information * fits, weight=policy.information_weight)
    return _Scored(candidates.rows, parts, inputs)


def _information(index: PartitionIndex, rows: IntArray) -> FloatArray:
    told = index.column("information")[rows]
    return np.where(np.isnan(told), UNKNOWN_INFORMATION, told)


def _fuse(
    index: PartitionIndex, candidates: _Candidates, legs: _Legs, policy: BankPolicy, fusion: FusionName, ask: Ask
) -> tuple[Fused, dict[str, FloatArray | float]]:
    """The fusion, and the raw figures it was made from."""
    rows = candidates.rows
    sparse = normalise_bm25(candidates.bm25, best=legs.sparse.best, upper_bound=legs.sparse.upper_bound)
    dense = similarity(candidates.cosine)
    inputs: dict[str, FloatArray | float] = {}
    if fusion != "dense":
        inputs |= {"bm25": candidates.bm25, "bm25_best": legs.sparse.best, "bm25_upper_bound": legs.sparse.upper_bound}
    if legs.dense.asked:
        inputs["cosine"] = candidates.cosine
    if fusion == "convex":
        weight = inputs["sparse_weight"] = _sparse_weight(policy, legs, ask.understood)
        return convex(sparse, dense, sparse_weight=weight), inputs
    if fusion == "rrf":
        number = index.column("number")[rows]
        by_sparse = ranks(candidates.bm25, number, among=positions(rows, legs.sparse.rows))
        by_dense = ranks(candidates.cosine, number, among=positions(rows, legs.dense.rows))
        inputs |= {"sparse_rank": by_sparse.astype(np.float64), "dense_rank": by_dense.astype(np.float64)}
        return rrf(by_sparse, by_dense), inputs
    if fusion == "vimbank_eq4":
        age = age_days(ask.now.timestamp(), index.column("event_at")[rows])
        inputs["age_days"] = age
        return vimbank_eq4(sparse, dense, age_days=age, half_life_days=policy.half_life_days), inputs
    return (sparse_only(sparse) if fusion == "sparse" else dense_only(dense)), inputs


def _sparse_weight(policy: BankPolicy, legs: _Legs, understood: float) -> float:
    """The policy's w, moved to 1 as far as the encoder's model cannot read the query, if any word of it was found.

    A leg that does not understand the language must not drag the fusion down.
    """
    return 1.0 - (1.0 - policy.sparse_weight) * understood if legs.sparse.best else policy.sparse_weight


def _leading(index: PartitionIndex, rows: IntArray, relevance: FloatArray, count: int) -> IntArray:
    """The rows with the largest relevance, best first, ties by ``number``: the same wherever a row stands."""
    return rows[np.lexsort((index.column("number")[rows], -relevance))[:count]]


def _links(
    index: PartitionIndex, policy: BankPolicy, best: IntArray, *, allowed: BoolArray | None, load: Load
) -> dict[str, Links]:
    """The links along which the best rows lend support, by the name of the part they make."""
    links = {}
    if policy.neighbour_weight and len(best):
        links["neighbour"] = neighbour_pairs(index, best, allowed=allowed)
    if policy.hop_weight and len(best) and index.titles():
        names = index.ids(best[:_HOP_SOURCES])
        memories = load(revisions(index, best[:_HOP_SOURCES]))
        texts = [memories[name].text if name in memories else "" for name in names]
        links["hop"] = follow_titles(index, best[:_HOP_SOURCES], texts, allowed=allowed)
    return links


def _add_context(
    parts: dict[str, FloatArray],
    index: PartitionIndex,
    ask: Ask,
    policy: BankPolicy,
    rows: IntArray,
    links: Mapping[str, Links],
) -> None:
    """Add what neighbours, links and dates lend; each a share of what is missing to 1 after the one before."""
    own = _total(parts)
    weights = {"neighbour": policy.neighbour_weight, "hop": policy.hop_weight}
    for name, link in links.items():
        parts[name] = lift(_total(parts), support(link, rows, own), weight=weights[name])
    if policy.temporal_weight and ask.dates:
        fits = falls_in(index.column("event_at")[rows], ask.dates)
        parts["temporal"] = lift(_total(parts), fits, weight=policy.temporal_weight)


def _rerank(
    parts: dict[str, FloatArray],
    index: PartitionIndex,
    ask: Ask,
    policy: BankPolicy,
    rows: IntArray,
    *,
    load: Load,
    reranker: Reranker,
) -> dict[str, FloatArray]:
    """Half the relevance so far and half the reranker's, for the best rows it can score; the others as they are."""
    best = _leading(index, rows, _total(parts), policy.rerank)
    memories = load(revisions(index, best))
    ids = [name for name in index.ids(best) if name in memories]
    again = np.full(len(rows), np.nan)
    if ids:
        again[positions(rows, index.rows(ids))] = reranker.rerank(ask.query.text, [memories[name] for name in ids])
    known = np.isfinite(again)
    halved = {name: np.where(known, 0.5 * part, part) for name, part in parts.items()}
    return halved | {"rerank": np.where(known, 0.5 * np.clip(again, 0.0, 1.0), 0.0)}


def _weighed(
    scored: _Scored, index: PartitionIndex, ask: Ask, policy: BankPolicy, curve: Curve | None, fusion: FusionName
) -> _Scored:
    """With the factors that apply, and the figures they were made from."""
    rows, factors, inputs = scored.rows, dict[str, FloatArray](), dict(scored.inputs)
    timed = bool(policy.half_life_days is not None and policy.time_weight)
    fades = curve is not None and bool(policy.retention_weight)
    # In eq. 4 time is already inside the fusion.
    if (timed or fades) and fusion != "vimbank_eq4":
        recalled_at, traces = _recalls(index, rows, ask)
        age = inputs["age_days"] = age_days(ask.now.timestamp(), index.column("event_at")[rows], recalled_at)
        if timed:
            factors["time"] = time_factor(age, half_life_days=policy.half_life_days, weight=policy.time_weight)
        if curve is not None and fades:
            retention = inputs["retention"] = curve.retention(traces, age)
            inputs["strength"] = traces.strength
            factors["retention"] = retention_factor(retention, weight=policy.retention_weight)
    if policy.failure_weight:
        failed = index.select(Condition("metadata.outcome", "eq", "failure"), now=ask.now)
        of_rows = np.ones(len(rows), dtype=np.bool_) if failed is None else failed[rows]
        factors["outcome"] = outcome_factor(of_rows, weight=policy.failure_weight)
    if policy.derived_weight < 1.0 and not _names(ask.query.filter, "kind"):
        derived = index.column("derived")[rows] > 0
        if derived.any():
            factors["derived"] = derived_factor(derived, weight=policy.derived_weight)
    return replace(scored, factors=factors, inputs=inputs)


def _names(filter: Filter | None, field: str) -> bool:
    """Whether any condition of the filter is about this field."""
    match filter:
        case And(parts) | Or(parts):
            return any(_names(part, field) for part in parts)
        case Not(part):
            return _names(part, field)
        case Condition(named):
            return named == field
    return False


def _recalls(index: PartitionIndex, rows: IntArray, ask: Ask) -> tuple[FloatArray, Traces]:
    """When these rows were last recalled, epoch seconds, NaN for never, and what recalls made of them.

    What earlier recalls had made of a memory is not kept: to a search of the past, one that was recalled after that
    instant is one that never was.
    """
    recalled_at = index.column("last_recalled_at")[rows]
    strength, stability_days = index.column("strength")[rows], index.column("stability_days")[rows]
    if ask.query.as_of is not None:
        later = recalled_at > ask.now.timestamp()
        recalled_at, stability_days = (np.where(later, np.nan, each) for each in (recalled_at, stability_days))
        strength = np.where(later, 1.0, strength)
    return recalled_at, Traces(strength, stability_days)


# --- the cut ------------------------------------------------------------------------------------------------------


def _best(index: PartitionIndex, scored: _Scored, ask: Ask, *, group: bool) -> tuple[IntArray, list[str], list[float]]:
    """Rows, ids and scores of the best, at most ``depth``: by score, ties by id, over the threshold."""
    scores, rows = scored.scores, scored.rows
    if ask.query.threshold is not None:
        kept = scores >= ask.query.threshold
        scores, rows = scores[kept], rows[kept]
    width = ask.depth
    while True:
        near_top = best_first(scores, top_k=width)
        ids = index.ids(rows[near_top])
        values = scores[near_top].tolist()
        order = sorted(range(len(ids)), key=lambda i: (-values[i], ids[i]))
        if group:
            order = _first_of_each(order, index.column("group")[rows[near_top]].tolist())
        if len(order) >= ask.depth or len(near_top) == len(rows):
            break
        width *= 4  # several of one group among the best: look further down
    order = order[: ask.depth]
    return rows[near_top[order]], [ids[i] for i in order], [values[i] for i in order]


def _first_of_each(order: Sequence[int], groups: Sequence[float]) -> list[int]:
    seen: set[float] = set()
    first = []
    for i in order:
        if groups[i] < 0 or groups[i] not in seen:
            seen.add(groups[i])
            first.append(i)
    return first


def _explain(scored: _Scored, at: int, fusion: FusionName) -> Explanation:
    inputs = {
        name: float(value[at] if isinstance(value, np.ndarray) else value) for name, value in scored.inputs.items()
    }
    return Explanation(
        fusion=fusion,
        parts={name: float(part[at]) for name, part in scored.parts.items()},
        factors={name: float(factor[at]) for name, factor in scored.factors.items()},
        inputs=inputs,
        relevance=float(scored.relevance[at]),
        score=float(scored.scores[at]),
    )


def _total(parts: Mapping[str, FloatArray]) -> FloatArray:
    """The sum of all parts; rounding may carry it past 1 by a last bit, which is cut."""
    total: FloatArray = np.add.reduce(list(parts.values()))
    return np.minimum(total, 1.0)
