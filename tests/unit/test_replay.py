"""The replay: what is asked when, what is left of the memories, and what the report says of it."""

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vimbank.domain.models import ListQuery, MemoryState
from vimbank.encoders.hashing import HashingEncoder
from vimbank.errors import InvalidInput
from vimbank.eval.replay import Plan, main, replay
from vimbank.eval.replay_access import Popularity, halves, traffic, zipf
from vimbank.eval.replay_life import Habits, SetClock, Stage, live, score, worlds
from vimbank.eval.replay_report import Outcome, rows_of, to_markdown
from vimbank.eval.replay_vectors import KeptEncoder
from vimbank.eval.retrieval import TENANT
from vimbank.ingestion.datasets import Question

HASHING = {"encoder": {"kind": "hashing", "dimension": 64}}
FACTS = ("the cat is called Mia", "the dog eats apples", "Berlin was rainy", "the violin is broken")


def question(number: int, *, user: str = "u", category: str = "c", gold: str = "m") -> Question:
    return Question(
        id=f"q{number}", text=f"{number}?", user_id=user, gold=frozenset({gold}), category=category, split="tune"
    )


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def memorybank(tmp_path: Path) -> Path:
    """Two users who say two things on two days each; everything said has two questions."""
    folder = tmp_path / "set"
    folder.mkdir()
    turns, questions = [], []
    for user in ("u1", "u2"):
        for number, fact in enumerate(FACTS):
            day = date(2023, 4, 27) + timedelta(days=number // 2)
            turn = {"conv_id": user, "session_id": f"{user}/{day}", "date": str(day), "speaker": "Ann"}
            turns.append({**turn, "turn_id": f"{user}/{number}u", "role": "user", "text": fact})
            turns.append({**turn, "turn_id": f"{user}/{number}a", "role": "assistant", "text": "I see"})
            questions += [
                {"qid": f"{user}-{number}-{n}", "conv_id": user, "question": f"{fact}?", "category": "recall"}
                | {"evidence": [f"{user}/{number}u"]}
                for n in (1, 2)
            ]
    write(folder / "turns.jsonl", turns)
    write(folder / "questions.jsonl", questions)
    return folder


# -- the access model --


def test_popularity_follows_zipf() -> None:
    np.testing.assert_allclose(zipf(3, exponent=1.0), np.array([6, 3, 2]) / 11)  # 1, 1/2, 1/3 over 11/6
    np.testing.assert_allclose(zipf(4, exponent=0.0), [0.25] * 4)
    assert len(zipf(0, exponent=1.0)) == 0
    with pytest.raises(InvalidInput, match="exponent"):
        zipf(3, exponent=-0.1)


def test_halves_share_no_question_and_keep_each_category_in_both() -> None:
    questions = [question(n, user=f"u{n % 2}", category=f"c{n // 10}") for n in range(40)]
    parted = halves(questions, generator=np.random.default_rng(1))
    asked, evaluated = parted.both()
    assert sorted(each.id for each in (*asked, *evaluated)) == sorted(each.id for each in questions)
    for half in (asked, evaluated):  # ten of each category, five of each user in it, one of which is odd
        assert {2, 3} >= set(Counter((each.user_id, each.category) for each in half).values())
    assert parted == halves(questions, generator=np.random.default_rng(1))
    assert parted != halves(questions, generator=np.random.default_rng(2))


def test_the_held_out_model_never_asks_an_evaluated_question() -> None:
    parted = halves([question(n) for n in range(9)], generator=np.random.default_rng(1))
    assert parted.asked("re-asked") == parted.evaluated
    assert not {each.id for each in parted.asked("held-out")} & {each.id for each in parted.evaluated}
    assert list(parted.asked("none")) == []


def test_a_question_is_asked_only_when_its_evidence_has_been_said() -> None:
    questions = [question(0, gold="early"), question(1, gold="late")]
    popularity = Popularity(questions, exponent=1.0, generator=np.random.default_rng(1))
    assert popularity.draw(5, said=lambda _id: False) == []
    assert {each.id for each in popularity.draw(20, said={"early"}.__contains__)} == {"q0"}
    assert {each.id for each in popularity.draw(100, said={"early", "late"}.__contains__)} == {"q0", "q1"}


def test_questions_are_drawn_as_often_as_their_rank_says() -> None:
    popularity = Popularity([question(n) for n in range(3)], exponent=1.0, generator=np.random.default_rng(7))
    counts = sorted(Counter(each.id for each in popularity.draw(11_000, said=lambda _id: True)).values())
    assert counts == pytest.approx([2_000, 3_000, 6_000], rel=0.05)  # 2, 3 and 6 of 11


def test_in_the_traffic_a_question_counts_as_often_as_it_is_asked() -> None:
    questions = [question(n) for n in range(3)]
    popularity = Popularity(questions, exponent=1.0, generator=np.random.default_rng(7))
    shares = popularity.shares()
    assert sorted(shares.values()) == pytest.approx([2 / 11, 3 / 11, 6 / 11])
    assert traffic(questions, [popularity]) == [shares[each.id] for each in questions]
    assert traffic([question(8), question(9)], [popularity]) == [1.0, 1.0]  # nobody asks them


# -- vectors --


class CountingEncoder(HashingEncoder):
    """Counts the texts that it encodes."""

    texts = 0

    def encode_documents(self, texts: Sequence[str]) -> Any:
        self.texts += len(texts)
        return super().encode_documents(texts)


def test_a_text_is_encoded_once_and_kept_on_disk(tmp_path: Path) -> None:
    inner = CountingEncoder(64)
    first = KeptEncoder(inner, tmp_path)
    again = first.encode_documents(["a cat", "a dog", "a cat"])
    np.testing.assert_array_equal(again, HashingEncoder(64).encode_documents(["a cat", "a dog", "a cat"]))
    assert inner.texts == 2
    first.save()
    second = KeptEncoder(inner, tmp_path)
    np.testing.assert_array_equal(second.encode_documents(["a dog"]), again[1:2])
    assert inner.texts == 2
    second.encode_documents(["a bird"])
    assert inner.texts == 3
    other = KeptEncoder(HashingEncoder(32), tmp_path)  # another identity has a file of its own
    assert other.encode_documents(["a dog"]).shape == (1, 32)


# -- a life --


def test_conversations_of_the_same_days_share_a_world(memorybank: Path) -> None:
    (world,) = worlds("memorybank", memorybank, splits=("report",), seed=1)
    assert (world.users, world.memories, world.split) == (["u1", "u2"], 8, "report")
    assert [len(drafts) for drafts in world.drafts.values()] == [4, 4]
    assert all(draft.created_at == draft.event_at for drafts in world.drafts.values() for draft in drafts)
    with pytest.raises(InvalidInput, match="split"):
        worlds("memorybank", memorybank, splits=("tune",), seed=1)
    with pytest.raises(InvalidInput, match="name"):
        worlds("hotpotqa", memorybank, splits=("report",), seed=1)


@pytest.mark.parametrize("forgets", [False, True])
def test_what_nobody_asks_for_leaves_the_hot_index_and_what_is_asked_for_stays(
    memorybank: Path, tmp_path: Path, forgets: bool
) -> None:
    """Without a recall the default lasts 30 days: at day 35 a run takes all but what was asked for since."""
    stage = Stage(HASHING, None)
    (world,) = worlds("memorybank", memorybank, splits=("report",), seed=1)
    habits = Habits(days_after=40, questions_a_day=1, forget_every_days=7, seed=3)
    bank = {"lifecycle": {"tau_days": 10.0, "minimum_age_days": 30.0, "floor": 0.05}}
    idle = live(stage, world, tmp_path / "idle", habits, access="none", bank=bank, forgets=forgets)
    assert stage.clock.now == datetime(2023, 4, 28, tzinfo=UTC) + timedelta(days=41)
    assert (idle.searches, idle.folded) == (0, 0)
    assert idle.hot == (((7, 8), (14, 8), (21, 8), (28, 8), (35, 0), (42, 0)) if forgets else ())
    assert idle.largest_share == (1.0 if forgets else 0.0)
    life = live(stage, world, tmp_path / "asked", habits, access="re-asked", bank=bank, forgets=forgets)
    assert life.searches == 2 * 42  # a question a day of each user; the first day has evidence of its own
    assert life.folded > life.searches
    with stage.service(tmp_path / "asked", bank) as service:
        memories = service.list(ListQuery(tenant=TENANT, state=None, limit=100)).items
        recall = score(service, world.questions.evaluated)
    assert sum(memory.recall_count for memory in memories) == life.folded
    assert all(memory.state is MemoryState.ACTIVE for memory in memories if memory.recall_count)
    assert recall == [1.0] * len(recall)  # four memories of a user, and five are looked at


def test_the_same_seed_asks_the_same_questions_whatever_the_policy(memorybank: Path, tmp_path: Path) -> None:
    stage = Stage(HASHING, None)
    (world,) = worlds("memorybank", memorybank, splits=("report",), seed=1)
    habits = Habits(days_after=5, questions_a_day=2)
    lives = [
        live(
            stage,
            world,
            tmp_path / curve,
            habits,
            access="held-out",
            bank={"lifecycle": {"curve": curve}},
            forgets=True,
        )
        for curve in ("exponential", "fsrs")
    ]
    assert lives[0] == lives[1]


def test_use_is_reported_after_the_share_of_searches_that_is_asked_for(memorybank: Path, tmp_path: Path) -> None:
    stage = Stage(HASHING, None)
    (world,) = worlds("memorybank", memorybank, splits=("report",), seed=1)
    folded = {}
    for feedback in (0.0, 0.5, 1.0):
        habits = Habits(days_after=10, questions_a_day=2, feedback=feedback)
        life = live(stage, world, tmp_path / str(feedback), habits, access="re-asked", bank={}, forgets=False)
        folded[feedback] = life.folded
    searches = 2 * 2 * 12  # two users, two a day, all of whose four memories are returned; one is the evidence
    assert folded[1.0] - folded[0.0] == searches
    assert folded[0.0] < folded[0.5] < folded[1.0]


def test_a_clock_is_set_from_outside() -> None:
    clock = SetClock(datetime(2023, 1, 1, tzinfo=UTC))
    clock.now += timedelta(days=1)
    assert clock() == datetime(2023, 1, 2, tzinfo=UTC)


# -- the report --


def test_rows_are_means_over_questions_with_a_paired_error() -> None:
    first = Outcome("tune", 3, 4, [1.0, 0.5], [1.0, 1.0], [0.9, 0.1])
    second = Outcome("report", 2, 6, [0.0], [0.25], [1.0])
    rows = {row.split: row for row in rows_of("held-out", {"curve": "fsrs"}, [first, second])}
    assert list(rows) == ["report", "tune", "all"]
    assert (rows["all"].questions, rows["all"].hot_share) == (3, 0.5)  # 5 of 10
    assert (rows["all"].recall, rows["all"].without) == (0.5, 0.75)
    assert rows["all"].change == -25.0  # 0, -50 and -25 points
    assert rows["all"].error == pytest.approx(25.0 / 3**0.5, abs=0.01)
    assert rows["all"].traffic_change == -15.0  # 0 at 0.9, -50 at 0.1, -25 at 1, of 2
    assert (rows["report"].change, rows["report"].error) == (-25.0, 0.0)
    (alone,) = rows_of("held-out", {}, [first])
    assert alone.split == "tune"


def test_a_replay_measures_motion_order_and_prior(memorybank: Path, tmp_path: Path) -> None:
    plan = Plan(
        habits=Habits(days_after=40, questions_a_day=1),
        curves=("exponential",),
        keeps=(0.5,),
        retention_weights=(0.0, 0.2),
        time_weights=(0.0,),
    )
    report = replay("memorybank", memorybank, plan, settings=HASHING, scratch=tmp_path)
    assert json.dumps(report)
    assert report["questions"] == {"held-out": 8, "evaluated": 8}
    motion = {row["access"]: row for row in report["in_motion"]}
    assert (motion["none"]["hot_share"], motion["none"]["recall"], motion["none"]["change"]) == (0.0, 0.0, -100.0)
    assert motion["re-asked"]["recall"] == motion["re-asked"]["without"] == 1.0
    orders = {(row["access"], row["setting"]["order"]): row for row in report["order"]}
    assert {name for _, name in orders} == {"exponential", "oldest first", "random"}
    assert all(row["hot_share"] == 0.5 for row in orders.values())
    (world,) = worlds("memorybank", memorybank, splits=("report",), seed=plan.habits.seed)
    second_day = {draft.id for draft in list(world.drafts.values())[1]}  # and so, of each user, the half that stays
    found = [bool(each.gold & second_day) for each in world.questions.evaluated]
    assert orders["held-out", "oldest first"]["recall"] == sum(found) / len(found)
    halved = [row for row in report["prior"] if row["setting"]["index"] == "half"]
    assert [row["setting"]["retention_weight"] for row in halved] == [0.0, 0.2] * 2
    assert halved[0]["change"] == 0.0
    page = to_markdown(report)
    assert "| none | exponential | report | 8 | 0.0 | 0.0 | -100.0 | 0.0 | -100.0 |" in page
    assert "turns.jsonl: sha256" in page


def test_the_command_writes_result_page_and_plot(
    memorybank: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("VIMBANK_ENCODER__KIND", "hashing")
    monkeypatch.setenv("VIMBANK_BANKS__DIALOG__LIFECYCLE__TAU_DAYS", "2")
    out, cache = tmp_path / "out", tmp_path / "cache"
    arguments = ["memorybank", str(memorybank), "--curve", "exponential", "--access", "held-out", "--days-after", "3"]
    arguments += ["--keep", "0.5", "--retention-weight", "0", "--time-weight", "0", "--out", str(out)]
    assert main([*arguments, "--cache", str(cache), "--json"]) == 0
    report = json.loads((out / "replay-memorybank.json").read_text())
    assert json.loads(capsys.readouterr().out) == report
    assert report["policy"]["lifecycle"]["tau_days"] == 2.0
    assert (out / "replay-memorybank.md").read_text() == to_markdown(report)
    assert "<svg" in (out / "replay-memorybank.svg").read_text()
    assert len(list(cache.iterdir())) == 1
    assert main(["memorybank", str(tmp_path / "nowhere"), "--only-in-motion"]) == 2
    assert "scripts/eval-replay: " in capsys.readouterr().err


@pytest.mark.data
@pytest.mark.parametrize(("name", "folder", "count"), [("locomo", "locomo", 10), ("memorybank", "memorybank/en", 1)])
def test_the_real_sets_become_worlds(name: str, folder: str, count: int) -> None:
    if "VIMBANK_TEST_DATA" not in os.environ:
        pytest.skip("VIMBANK_TEST_DATA does not name the folder of the evaluation data")
    path = Path(os.environ["VIMBANK_TEST_DATA"]) / folder
    found = worlds(name, path, splits=("tune", "report"), seed=1)
    assert len(found) == count
    for world in found:
        said = {draft.id for drafts in world.drafts.values() for draft in drafts}
        assert {gold for half in world.questions.both() for each in half for gold in each.gold} <= said
        asked, evaluated = map(len, world.questions.both())
        assert abs(asked - evaluated) <= 5 * len(world.users)  # an odd one a category and user
