"""Near-duplicates: what may be folded, what never, and which one stays."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from vimbank.domain.duplicates import (
    Fold,
    flags,
    fold_key,
    foldable,
    folds,
    marks_of,
    same_marks,
    was_brought_back,
)
from vimbank.domain.models import Event, HistoryEntry, Memory, MemoryState, Source, Vectors
from vimbank.errors import InvalidInput

DAY_0 = datetime(2025, 1, 1, tzinfo=UTC)


def memory(id: str, text: str = "I like tea.", at: float = 0, **fields: object) -> Memory:
    moment = DAY_0 + timedelta(days=at)
    base = Memory(
        id=id,
        tenant="t",
        user_id="u",
        bank="dialog",
        kind="note",
        text=text,
        created_at=moment,
        updated_at=moment,
        content_hash="",
        revision=1,
    )
    return replace(base, **fields)  # type: ignore[arg-type]


def alike(count: int) -> Vectors:
    return np.tile(np.array([[1.0, 0.0]], dtype=np.float32), (count, 1))


def at_angles(*cosines: float) -> Vectors:
    """Unit rows whose cosine with (1, 0) is as given."""
    return np.array([[each, (1 - each * each) ** 0.5] for each in cosines], dtype=np.float32)


def kept(*memories: Memory, vectors: Vectors | None = None) -> set[str]:
    found = folds(memories, alike(len(memories)) if vectors is None else vectors)
    return {each.id for each in memories} - {one for fold in found for one in fold.folded}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I like tea", "I really like tea"),
        ("I like tea", "tea is something I like"),
        ("Tea is something I like", "I like tea"),
        ("My rent is $1,200.", "My rent is 1200 $"),
        ("Ana has three cats.", "Ana has 3 cats!"),
        ("我喜欢喝茶。", "我很喜欢喝茶！"),
    ],
)
def test_case_92_paraphrases_agree(one: str, other: str) -> None:
    assert same_marks(marks_of(one), marks_of(other))
    assert same_marks(marks_of(other), marks_of(one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I like tea", "I don't like tea"),  # case 92
        ("I like tea", "I never like tea"),
        ("I like tea", "I no longer like tea"),
        ("I like tea", "I hate tea"),
        ("I like tea", "You like tea"),
        ("I like tea", "Do I like tea?"),
        ("I live in Rome", "I lived in Rome"),
        ("I will pay", "I pay"),
        ("My brother cooks tea at home", "My brother cooks coffee at home"),
        ("Bring the report", "Bring the blue report"),
        ("Ana is 34", "Ana is 35"),
        ("Ana is 34", "Anna is 34"),
        ("Ana pays Bo", "Bo pays Ana"),
        ("The mayor of Halvik is Marit", "The mayor of Bergen is Marit"),
        ("The meeting is on 5 May", "The meeting is on 6 May"),
        ("The meeting is at 10 am", "The meeting is at 10 pm"),
        ("The bag weighs 5 kg", "The bag weighs 5 lb"),
        ("I pay $5", "I pay €5"),
        ("He turned left", "He turned right"),
        ("Call before lunch", "Call after lunch"),
        ("我喜欢喝茶。", "我不喜欢喝茶。"),
        ("李明住在北京。", "李敏住在北京。"),
        ("我住在北京。", "我住在南京。"),
        ("我今年三十岁。", "我今年四十岁。"),
        ("他在左边。", "他在右边。"),
        ("李明借钱给王芳。", "王芳借钱给李明。"),
        ("我用iPhone手机。", "我用Nokia手机。"),
    ],
)
def test_what_changes_the_meaning_is_told_apart(one: str, other: str) -> None:
    assert not same_marks(marks_of(one), marks_of(other))
    assert not same_marks(marks_of(other), marks_of(one))
    assert kept(memory("a", one), memory("b", other)) == {"a", "b"}


def test_case_86_unrelated_facts_all_stay() -> None:
    """Thirty short facts, even where an encoder takes them all for one."""
    things = (
        "tea jazz chess rain soup maps cats snow bread salt figs wool ink sand moss rope silk corn mint lime oats peas"
    )
    more = "rice beer wine jam dogs owls bees ants"
    facts = [memory(f"m-{thing}", f"My brother thinks of {thing} at home") for thing in f"{things} {more}".split()]
    assert len(facts) == 30
    assert folds(facts, alike(30)) == []


def test_below_the_cosine_nothing_folds() -> None:
    pair = [memory("a"), memory("b", "I really like tea.")]
    assert folds(pair, at_angles(1.0, 0.969)) == []
    assert len(folds(pair, at_angles(1.0, 0.971))) == 1


def test_a_chain_does_not_fold_its_ends() -> None:
    """Each is 11.5 degrees (cosine 0.98) from the next, so the ends are 23 degrees (cosine 0.92) apart."""
    angles = np.deg2rad([0.0, 11.5, 23.0])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    chain = [memory("a", importance=0.9), memory("b"), memory("c")]
    (fold,) = folds(chain, vectors)
    assert (fold.keep_id, fold.folded) == ("a", ("b",))


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"pinned": True}, {"importance": 1.0}),
        ({"importance": 0.9}, {"importance": 0.1}),
        ({"importance": None}, {"importance": 0.4}),  # case 135: unknown is not lowest
        ({"at": 1}, {"at": 0}),
    ],
)
def test_which_one_stays(better: dict[str, object], worse: dict[str, object]) -> None:
    assert kept(memory("a", **better), memory("z", **worse)) == {"a"}  # type: ignore[arg-type]
    assert kept(memory("z", **better), memory("a", **worse)) == {"z"}  # type: ignore[arg-type]


def test_more_sources_count_before_age_and_are_kept() -> None:
    pair = [memory("a", at=0), memory("b", at=1)]
    (fold,) = folds(pair, alike(2), sources={"a": ["x", "y"], "b": ["w"]})
    assert fold == Fold("a", ("b",), (1.0,), ("a", "x", "y", "b", "w"))


def test_two_pinned_ones_both_stay() -> None:
    """Case 100: pinned is never taken away."""
    assert kept(memory("a", pinned=True), memory("b", pinned=True)) == {"a", "b"}


@pytest.mark.parametrize(
    "fields",
    [
        {"user_id": "v"},
        {"tenant": "s"},
        {"bank": "task"},
        {"agent_id": "x"},
        {"speaker": "Ana"},
        {"title": "Tea"},
        {"kind": "round"},
        {"state": MemoryState.ARCHIVED},
        {"source": Source(parent_id="p")},
        {"expires_at": DAY_0 + timedelta(days=900)},
        {"metadata": {"topic": "drinks"}, "importance": 0.1},
    ],
)
def test_what_belongs_elsewhere_stays(fields: dict[str, object]) -> None:
    """Case 62, and what a filter would no longer find."""
    assert kept(memory("a"), memory("b", **fields)) == {"a", "b"}  # type: ignore[arg-type]


def test_what_happened_on_two_days_happened_twice() -> None:
    text = "I ran today."
    assert kept(memory("a", text, 0), memory("b", text, 3)) == {"a", "b"}
    assert kept(memory("a", text, 0), memory("b", text, 0.1)) == {"b"}


def test_the_order_of_the_memories_does_not_matter() -> None:
    rng = np.random.default_rng(3)
    texts = ["I like tea.", "I really like tea.", "I don't like tea.", "Ana is 34.", "Ana is 34!"]
    made = [memory(f"m{number:02d}", texts[number % 5], number / 10) for number in range(40)]
    vectors = alike(40)
    expected = folds(made, vectors)
    assert [set(fold.sources) for fold in expected]
    for _ in range(5):
        order = rng.permutation(40)
        assert folds([made[row] for row in order], vectors[order]) == expected


def test_folding_again_folds_nothing() -> None:
    made = [memory("a"), memory("b", "I really like tea."), memory("c", "I don't like tea.")]
    gone = {one for fold in folds(made, alike(3)) for one in fold.folded}
    rest = [each for each in made if each.id not in gone]
    assert folds(rest, alike(len(rest))) == []


def test_zero_vectors_are_like_nothing() -> None:
    assert folds([memory("a"), memory("b")], np.zeros((2, 2), dtype=np.float32)) == []
    assert folds([], np.zeros((0, 2), dtype=np.float32)) == []


@pytest.mark.parametrize("threshold", [0.0, -1.0, 1.1])
def test_bad_thresholds(threshold: float) -> None:
    with pytest.raises(InvalidInput, match="threshold"):
        folds([memory("a")], alike(1), threshold=threshold)


def test_rows_must_match() -> None:
    with pytest.raises(InvalidInput, match="vectors"):
        folds([memory("a")], alike(2))


TEXTS = (
    "I like tea",
    "I really like tea",
    "tea is something I like",
    "I don't like tea",
    "Ana is 34",
    "Ana is thirty-four",
    "Ana is 35",
    "Ana pays Bo",
    "Bo pays Ana",
    "我喜欢喝茶。",
    "我很喜欢喝茶！",
    "我不喜欢喝茶。",
    "Is tea what I like?",
)


def test_what_may_be_folded_shares_its_key() -> None:
    """Looking among equal keys alone misses no fold."""
    memories = [memory(f"m{place}", text) for place, text in enumerate(TEXTS)]
    memories += [replace(each, id=f"{each.id}b", speaker="Bo") for each in memories]
    for one in memories:
        for other in memories:
            if foldable(one, other) and same_marks(marks_of(one.text), marks_of(other.text)):
                assert fold_key(one) == fold_key(other), (one.text, other.text)
    assert len({fold_key(each) for each in memories}) > len(memories) // 2


def test_folding_group_by_group_gives_what_folding_all_at_once_gives() -> None:
    memories = [memory(f"m{place}", text, at=place) for place, text in enumerate(TEXTS * 2)]
    groups: dict[int, list[Memory]] = {}
    for each in memories:
        groups.setdefault(fold_key(each), []).append(each)
    found = [fold for group in groups.values() for fold in folds(group, alike(len(group)))]
    whole = folds(memories, alike(len(memories)))
    assert sorted(found, key=lambda fold: fold.keep_id) == sorted(whole, key=lambda fold: fold.keep_id)
    assert len(whole) > 5


def test_a_key_is_the_same_in_every_process() -> None:
    assert fold_key(memory("a")) == fold_key(memory("b")) == fold_key(memory("c", "Tea is something I like."))
    assert fold_key(memory("a", "\ud800 lone")) != fold_key(memory("a"))


def test_a_spared_one_is_kept_and_others_fold_into_it() -> None:
    pair = [memory("a", at=0), memory("b", "I really like tea.", at=1)]
    [fold] = folds(pair, alike(2))
    assert (fold.keep_id, fold.folded) == ("b", ("a",))
    assert folds(pair, alike(2), spared={"a"}) == []
    [fold] = folds([*pair, memory("c", "I like tea!", at=-1)], alike(3), spared={"a"})
    assert (fold.keep_id, fold.folded) == ("b", ("c",))


def test_near_ones_are_flagged_with_their_nearest() -> None:
    """Case 92: cosines 0.95 with a, of b and c with each other 0.95 * 0.92 + 0.312 * 0.392 = 0.996."""
    three = [memory("a"), memory("b", "I really like tea."), memory("c", "Tea is something I like.")]
    found = flags(three, at_angles(1.0, 0.95, 0.92))
    assert [(each.near_id, each.id) for each in found] == [("b", "c"), ("a", "b")]
    assert [each.cosine for each in found] == pytest.approx([0.9963, 0.95], abs=1e-4)
    assert flags(three, at_angles(1.0, 0.84, 0.1)) == []
    assert flags([memory("a"), memory("b", "I don't like tea.")], at_angles(1.0, 0.95)) == []
    assert flags([memory("a"), memory("b", speaker="Bo")], at_angles(1.0, 0.95)) == []


def entry(event: Event, *states: str, old: str | None = None, new: str | None = None) -> HistoryEntry:
    return HistoryEntry("a", 1, DAY_0, event, "test", old, new, {"state": states} if states else {})


def test_what_somebody_brought_back_is_known_until_it_says_something_else() -> None:
    added = entry(Event.ADD, new="I like tea")
    away, back = entry(Event.STATE, "active", "superseded"), entry(Event.STATE, "superseded", "active")
    touched = entry(Event.UPDATE, old="I like tea", new="I like tea")
    rewritten = entry(Event.UPDATE, old="I like tea", new="I love tea")
    assert not was_brought_back([])
    assert not was_brought_back([added, away])
    assert was_brought_back([added, away, back])
    assert was_brought_back([added, away, back, touched])
    assert not was_brought_back([added, away, back, rewritten])
    assert not was_brought_back([added, entry(Event.STATE, "archived", "active")])
