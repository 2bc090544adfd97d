"""Names in Elasticsearch: readable, short enough, and never two things under one."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vimbank.domain.models import Partition
from vimbank.domain.text import analyze
from vimbank.errors import ConfigError
from vimbank.indexes.elasticsearch.mappings import indexed_term, sparse_plans
from vimbank.indexes.elasticsearch.naming import bank_alias, encoded_bank, partition_key

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


def _decoded(name: str) -> str:
    return re.sub(rb"\.([0-9a-f]{2})", lambda match: bytes.fromhex(match[1].decode()), name.encode()).decode()


@given(NAMES)
def test_a_bank_can_be_read_back_and_is_a_name_of_an_index(bank: str) -> None:
    name = encoded_bank(bank)
    assert re.fullmatch(r"[a-z0-9_.]+", name)
    assert _decoded(name) == bank


def test_plain_banks_keep_their_names() -> None:
    assert bank_alias("vimbank", "dialog") == "vimbank-dialog"
    assert bank_alias("vimbank", "My-bank") == "vimbank-.4dy.2dbank"
    with pytest.raises(ConfigError, match="too long"):
        bank_alias("vimbank", "ü" * 40)


@given(st.tuples(NAMES, NAMES, NAMES), st.tuples(NAMES, NAMES, NAMES))
def test_partitions_have_keys_of_their_own(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    mine, theirs = partition_key(Partition(*one)), partition_key(Partition(*other))
    assert (mine == theirs) == (one == other)
    assert len(mine) <= 200
    assert "," not in mine


@pytest.mark.parametrize(
    ("one", "other"),
    [(("a/b", "c", "d"), ("a", "b/c", "d")), (("t", "ü" * 256, "d"), ("t", "ü" * 255 + "u", "d")),
     (("t", "team-a", "d"), ("t", "team-b", "d"))],
)  # fmt: skip
def test_partitions_that_look_alike(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    """Case 45."""
    assert partition_key(Partition(*one)) != partition_key(Partition(*other))


@given(st.text(max_size=600))
def test_terms_have_no_space_and_fit_lucenes_tokenizer(text: str) -> None:
    for term in map(indexed_term, analyze(text)):
        assert term.split() == [term]
        assert len(term.encode("utf-16-le")) // 2 <= 255


def test_long_terms_stay_apart() -> None:
    one, other = ("\U00010400" * 200 + end for end in "ab")
    assert indexed_term(one) != indexed_term(other)
    assert indexed_term("x" * 255) == "x" * 255


def test_a_plan_says_what_makes_two_indexes_comparable() -> None:
    plan = sparse_plans(["dialog", "other bank"], prefix="p", store_id="s", k1=1.5, b=0.6)["other bank"]
    assert (plan.alias, plan.stem) == ("p-other.20bank", "p-other.20bank-v1-a1")
    similarity = plan.body["settings"]["index"]["similarity"]["terms"]
    assert similarity == {"type": "BM25", "k1": 1.5, "b": 0.6}
    assert {key: plan.meta[key] for key in ("store", "k1", "b", "bank", "mapping")} == {
        "store": "s", "k1": 1.5, "b": 0.6, "bank": "other bank", "mapping": 1,
    }  # fmt: skip
    assert plan.meta["analyzer"].startswith("vimbank-1/snowball-")
