"""Postings score like the library rank_bm25, whatever was done before."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from vimbank.indexes.sparse.postings import PostingsIndex
from vimbank.indexes.sparse.rank_bm25 import RankBM25Index

DOCUMENT = st.lists(st.sampled_from("abcdefghij"), max_size=8)
PLACE = st.floats(0, 1, exclude_max=True)


class SparseMachine(RuleBasedStateMachine):
    """Random changes on both, and on a plain list of documents that says what they should hold."""

    @initialize(k1=st.sampled_from([0.3, 1.2, 4.0]), b=st.sampled_from([0.0, 0.75, 1.0]))
    def start(self, k1: float, b: float) -> None:
        self.k1, self.b = k1, b
        self.documents: list[list[str]] = []
        self.postings = PostingsIndex(k1, b)
        self.reference = RankBM25Index(k1, b)

    @rule(documents=st.lists(DOCUMENT, max_size=4))
    def append(self, documents: list[list[str]]) -> None:
        self.documents += documents
        self.postings.append(documents)
        self.reference.append(documents)

    @precondition(lambda self: self.documents)
    @rule(place=PLACE, document=DOCUMENT)
    def replace(self, place: float, document: list[str]) -> None:
        row = int(place * len(self.documents))
        self.documents[row] = document
        self.postings.replace(row, document)
        self.reference.replace(row, document)

    @precondition(lambda self: self.documents)
    @rule(place=PLACE)
    def remove(self, place: float) -> None:
        row = int(place * len(self.documents))
        self.documents[row] = self.documents[-1]
        self.documents.pop()
        self.postings.remove(row)
        self.reference.remove(row)

    @rule()
    def save_and_restore(self) -> None:
        for name, fresh in (
            ("postings", PostingsIndex(self.k1, self.b)),
            ("reference", RankBM25Index(self.k1, self.b)),
        ):
            fresh.restore(getattr(self, name).dump())
            setattr(self, name, fresh)

    @rule(query=st.lists(st.sampled_from("abcdefghijz"), max_size=6))
    def score(self, query: list[str]) -> None:
        ours, theirs = self.postings.score(query), self.reference.score(query)
        np.testing.assert_allclose(ours.scores, theirs.scores, rtol=0, atol=1e-6)
        assert abs(ours.upper_bound - theirs.upper_bound) < 1e-9
        assert np.array_equal(ours.scores > 0, [not set(query).isdisjoint(document) for document in self.documents])
        assert not query or (ours.scores < ours.upper_bound).all()
        built_at_once = PostingsIndex(self.k1, self.b)
        built_at_once.append(self.documents)
        assert np.array_equal(built_at_once.score(query).scores, ours.scores)  # to the bit, whatever the history

    @invariant()
    def counts_agree(self) -> None:
        assert len(self.postings) == len(self.reference) == len(self.documents)


TestSparseMachine = SparseMachine.TestCase
TestSparseMachine.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)


def test_both_rank_two_thousand_documents_alike() -> None:
    """Enough rows for postings to keep columns of common terms."""
    rng = np.random.default_rng(7)
    documents = [[f"w{n}" for n in rng.zipf(1.3, 12) if n < 500] for _ in range(2_000)]
    postings, reference = PostingsIndex(), RankBM25Index()
    postings.append(documents)
    reference.append(documents)
    for _ in range(3):
        query = ["w1", "w2", "w3", "w40", "w300"]
        first = postings.score(query).scores
        np.testing.assert_allclose(first, reference.score(query).scores, rtol=0, atol=1e-6)
        for _ in range(2):  # asked again, common terms come from their columns: the same bits
            assert np.array_equal(postings.score(query).scores, first)
        for index in (postings, reference):
            index.remove(17)
            index.append([["w2", "w900"]])
