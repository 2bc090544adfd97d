"""The record cache: never a stale record, never one that a caller has changed, never more than its size."""

import json
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime

import orjson
import pytest

from vimbank.domain.models import Memory
from vimbank.retrieval.records import RecordCache

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Shelf:
    """Records by tenant and id, and what was asked for."""

    def __init__(self, *memories: Memory) -> None:
        self.memories = {(memory.tenant, memory.id): memory for memory in memories}
        self.asked: list[list[str]] = []

    def get(self, tenant: str, ids: Sequence[str]) -> list[Memory]:
        self.asked.append(sorted(ids))
        return [self.memories[tenant, each] for each in ids if (tenant, each) in self.memories]


def memory(id: str, revision: int = 1, tenant: str = "t") -> Memory:
    return Memory(
        id=id, tenant=tenant, user_id="u", bank="dialog", kind="turn", text=f"{id}@{revision}", created_at=NOW,
        updated_at=NOW, content_hash="", revision=revision, metadata={"tags": ["a"]},
    )  # fmt: skip


def cache(shelf: Shelf, size: int = 10) -> RecordCache:
    return RecordCache(shelf, size)  # type: ignore[arg-type]


def test_a_record_is_loaded_once_for_its_revision() -> None:
    shelf = Shelf(memory("a"), memory("b"))
    records = cache(shelf)
    assert records.load("t", {"a": 1, "b": 1}) == records.load("t", {"b": 1, "a": 1})
    assert shelf.asked == [["a", "b"]]


def test_case_71_a_newer_revision_is_loaded_anew() -> None:
    shelf = Shelf(memory("a"))
    records = cache(shelf)
    records.load("t", {"a": 1})
    shelf.memories["t", "a"] = memory("a", revision=2)
    assert records.load("t", {"a": 2})["a"].text == "a@2"
    assert records.load("t", {"a": 2})["a"].text == "a@2"
    assert shelf.asked == [["a"], ["a"]]


def test_case_66_one_id_of_two_tenants() -> None:
    shelf = Shelf(memory("a", tenant="t"), replace(memory("a", tenant="other"), text="theirs"))
    records = cache(shelf)
    assert records.load("t", {"a": 1})["a"].text == "a@1"
    assert records.load("other", {"a": 1})["a"].text == "theirs"


def test_what_is_gone_is_left_out() -> None:
    assert cache(Shelf(memory("a"))).load("t", {"a": 1, "gone": 1}).keys() == {"a"}


def test_a_caller_cannot_change_what_is_kept() -> None:
    records = cache(Shelf(memory("a")))
    for _ in range(2):
        mine = records.load("t", {"a": 1})["a"]
        assert mine.metadata == {"tags": ["a"]}
        assert json.loads(json.dumps(mine.metadata)) == json.loads(orjson.dumps(mine.metadata)) == {"tags": ["a"]}
        for change in (
            lambda metadata: metadata["tags"].append("mine"),
            lambda metadata: metadata.update(more=1),
            lambda metadata: metadata.__setitem__("more", 1),
            lambda metadata: metadata["tags"].sort(),
        ):
            with pytest.raises(TypeError, match="cannot be changed"):
                change(mine.metadata)
        copied = deepcopy(mine.metadata)
        copied["tags"].append("mine")  # a copy is the caller's own


def test_the_least_recently_used_leave_first() -> None:
    shelf = Shelf(*(memory(each) for each in "abc"))
    records = cache(shelf, size=2)
    for each in ("a", "b", "a", "c", "a", "b"):
        records.load("t", {each: 1})
    assert shelf.asked == [["a"], ["b"], ["c"], ["b"]]


def test_size_0_keeps_nothing() -> None:
    shelf = Shelf(memory("a"))
    records = cache(shelf, size=0)
    records.load("t", {"a": 1})
    records.load("t", {"a": 1})
    assert shelf.asked == [["a"], ["a"]]
