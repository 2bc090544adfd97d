"""Cases of the life of a memory that hold for every entry point: duplicates, recalls, forgetting, deletion, erasure."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.cases.doors import DOORS, Door, Refused, settings
from vimbank.domain.models import MemoryDraft, Signal
from vimbank.wiring import open_service

MODES = ("dense", "sparse", "convex", "rrf")


def ids(results: list[dict[str, Any]]) -> list[str]:
    return [each["id"] for each in results]


def ago(**by: float) -> str:
    return (datetime.now(UTC) - timedelta(**by)).isoformat()


@pytest.fixture(params=DOORS)
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Door]:
    """Opens the same folder by the same entry point, as after a restart; the caller closes it."""
    return lambda: DOORS[request.param](tmp_path)


def fill(
    folder: Path, *texts: str, user_id: str = "alice", created_at: datetime | None = None, **given: Any
) -> list[str]:
    """Add many at once, as a case begins where they stand already; their ids."""
    values = {"bank": "knowledge", "created_at": created_at, **given}
    drafts = [MemoryDraft(tenant="default", user_id=user_id, text=text, **values) for text in texts]
    with open_service(settings(folder)) as service:
        return [each.id for each in service.add_many(drafts)]  # type: ignore[union-attr]


def holding(folder: Path, word: str) -> list[str]:
    """The files of the folder that hold the word, in any byte."""
    return [path.name for path in folder.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]


# --- F. duplicates, merging, summaries ---


def test_case_85_written_directly_and_promoted_from_its_session_it_is_one(door: Door) -> None:
    """Promotion is a write like any other: what says the same in the same session folds, and an id names one memory."""
    said = {"bank": "dialog", "session_id": "s1"}
    first = door.add("Ana is allergic to peanuts", **said)
    promoted = door.add("Ana is allergic to peanuts", **said)
    assert (promoted["id"], promoted["duplicate"]) == (first["id"], True)
    named = door.add("her cat is called Mochi", id="turn-7", **said)
    assert door.add("her cat is called Mochi", id="turn-7", **said)["duplicate"]
    assert door.listing(user_id="alice")["total"] == 2
    assert set(ids(door.search("peanuts cat", top_k=50))) == {first["id"], named["id"]}
    assert len(door.history(first["id"])) == 1


def test_case_86_thirty_facts_on_different_topics_stay_thirty(reopen: Callable[[], Door], tmp_path: Path) -> None:
    """Whatever is run: summaries, portraits, compaction of tombstones."""
    facts = [f"fact {n}: the {noun} is {n * 7}" for n, noun in enumerate(["pump", "cat", "pier", "rent", "choir"] * 6)]
    added = fill(tmp_path, *facts, bank="dialog", session_id="s")
    door = reopen()
    for job in ("summarise", "portrait", "compact", "reinforce", "forget", "expire", "prune"):
        door.run(job)
    kept = door.listing(user_id="alice", kind="note")
    assert ids(kept["items"]) == added
    assert [each["text"] for each in kept["items"]] == facts
    door.close()


def test_case_93_before_the_refresh_a_summary_is_marked_and_after_it_tells_of_nothing_deleted(door: Door) -> None:
    """And case 74 for an update: stale at once, at every read, and fresh after the next run."""
    told = [door.add(f"the quagmire{n} lies behind the house", bank="dialog", session_id="s")["id"] for n in range(3)]
    door.run("summarise")
    summaries = door.listing(user_id="alice", kind="summary")["items"]
    assert {each["metadata"]["stale"] for each in summaries} == {False}
    assert any("quagmire0" in each["text"] for each in summaries)
    door.update(told[0], text="the meadow lies behind the house")
    shown = [
        *door.listing(user_id="alice", kind="summary")["items"],
        *(door.get(each["id"]) for each in summaries),
        *(each for each in door.search("house", top_k=50) if each["kind"] == "summary"),
    ]
    assert {each["metadata"]["stale"] for each in shown} == {True}
    door.run("summarise")
    door.delete(told[1])
    assert {door.get(each["id"])["metadata"]["stale"] for each in summaries} == {True}
    door.run("summarise")
    fresh = door.listing(user_id="alice", kind="summary")["items"]
    assert {each["metadata"]["stale"] for each in fresh} == {False}
    assert not any("quagmire0" in each["text"] or "quagmire1" in each["text"] for each in fresh)


# --- E. create, update, delete, history ---


@pytest.mark.parametrize("change", ["delete", "archive", "suppress", "prune"])
def test_case_70_what_is_gone_is_in_no_mode_also_after_a_restart(reopen: Callable[[], Door], change: str) -> None:
    """``prune`` deletes what expired, was archived and had its grace."""
    door = reopen()
    text = "the red kite over the hill"
    gone = door.add(text, bank="dialog", created_at=ago(days=300))["id"]
    kept = door.add(f"{text} again", bank="dialog")["id"]
    assert set(ids(door.search(text, reinforce=False))) == {gone, kept}
    if change == "delete":
        door.delete(gone)
    elif change == "prune":
        door.run("forget", max_share=1)
        assert door.get(gone)["state"] == "archived"
    else:
        door.move(gone, change)
    for _ in range(2):
        for fusion in MODES:
            assert ids(door.search(text, fusion=fusion, reinforce=False)) == [kept]
        door.close()
        door = reopen()
    door.close()


@pytest.mark.parametrize("writer", DOORS)
@pytest.mark.parametrize("reader", ["python", "rest"])
def test_case_71_a_cached_answer_does_not_survive_a_change_by_another(tmp_path: Path, writer: str, reader: str) -> None:
    """The one that searches has its own caches and indexes; delete, update, add and archiving come from elsewhere."""
    searching, writing = DOORS[reader](tmp_path), DOORS[writer](tmp_path)
    first, second = (writing.add(f"plans for {month}")["id"] for month in ("May", "June"))

    def found() -> set[str]:
        return set(ids(searching.search("plans", fusion="sparse", reinforce=False)))

    assert found() == {first, second}
    assert found() == {first, second}
    writing.delete(first)
    assert found() == {second}
    writing.update(second, text="nothing of the kind")
    assert found() == set()
    third = writing.add("plans for July")["id"]
    assert found() == {third}
    writing.move(third, "archive")
    assert found() == set()
    writing.move(third, "restore")
    assert found() == {third}
    for each in (searching, writing):
        each.close()


def test_case_72_an_erased_user_is_in_no_byte_of_the_folder(reopen: Callable[[], Door], tmp_path: Path) -> None:
    """Texts, history, summaries, portraits, recalls, job records, snapshots; and an unlike user keeps all of it."""
    likes = [f"I like the quagmire{n}" for n in range(6)]
    told = {user: fill(tmp_path, *likes, user_id=user, bank="dialog", session_id="s") for user in ("markuser", "alice")}
    door = reopen()
    for user, names in told.items():
        door.add(f"I like the quagmire6 of {user}", user_id=user, bank="dialog", id=f"{user}-6", session_id="s")
        door.update(names[0], text=f"I like another quagmire of {user}")
        door.delete(names[1])
        door.move(names[2], "suppress")
        door.move(names[3], "archive")
        door.search("quagmire", user_id=user)
        door.feedback(names[4], "used")
        for job in ("summarise", "portrait"):
            door.run(job, user=user)
    door.run("reinforce")
    door.run("snapshot")
    door.run("erase", user_id="nobody")  # a job's record
    assert holding(tmp_path, "markuser")
    receipt = door.erase("markuser")
    assert receipt["counts"]["memories"] > 5
    assert receipt["counts"]["summaries"] >= 4
    assert holding(tmp_path, "markuser") == []
    assert door.search("quagmire", user_id="markuser") == []
    assert len(door.search("quagmire5", user_id="alice", top_k=50)) >= 3
    assert [each for each in told["markuser"] if holding(tmp_path, each)] == []
    door.close()
    assert holding(tmp_path, "markuser") == []


def test_case_72_an_erased_session_is_in_no_byte_of_the_folder(reopen: Callable[[], Door], tmp_path: Path) -> None:
    for session in ("marksession", "other"):
        fill(tmp_path, *(f"I like the {session}pier{n}" for n in range(6)), bank="dialog", session_id=session)
    door = reopen()
    for job in ("summarise", "portrait"):
        door.run(job)
    door.search("pier", top_k=50)
    receipt = door.erase("alice", session_id="marksession")
    assert receipt["counts"]["summaries"] >= 4
    assert holding(tmp_path, "marksession") == []
    door.run("summarise")
    assert all("otherpier" in each["text"] for each in door.listing(user_id="alice")["items"])
    door.close()
    assert holding(tmp_path, "marksession") == []


def test_case_79_a_listing_tells_the_total_and_goes_on_by_cursor(reopen: Callable[[], Door], tmp_path: Path) -> None:
    added = fill(tmp_path, *(f"note {n}" for n in range(250)))
    door = reopen()
    seen: list[str] = []
    page = door.listing(user_id="alice")
    assert (page["total"], len(page["items"])) == (250, 100)
    while True:
        seen += ids(page["items"])
        if page["next_cursor"] is None:
            break
        page = door.listing(user_id="alice", cursor=page["next_cursor"])
        assert page["total"] == 250
    door.close()
    assert seen == added


@pytest.mark.parametrize("unknown", ["nope", "../../etc", "x" * 5_000, "%00", "a b"])
def test_case_82_an_unknown_id_is_not_found_by_what_changes_it(door: Door, unknown: str) -> None:
    for call in (
        lambda: door.update(unknown, text="x"),
        lambda: door.move(unknown, "archive"),
        lambda: door.move(unknown, "restore"),
        lambda: door.feedback(unknown, "used"),
    ):
        with pytest.raises(Refused) as caught:
            call()
        assert caught.value.kind in ("not_found", "invalid")
    assert door.listing()["total"] == 0


def test_case_84_an_id_of_odd_characters_lives_a_whole_life(door: Door) -> None:
    odd = "a/b c?#"
    door.add("odd one", id=odd)
    assert door.move(odd, "archive")["state"] == "archived"
    assert door.move(odd, "restore")["state"] == "active"
    assert door.move(odd, "suppress")["state"] == "suppressed"
    assert door.move(odd, "unsuppress")["state"] == "active"
    door.feedback(odd, "used")
    assert [each["event"] for each in door.history(odd)] == ["add", "state", "state", "state", "state"]


# --- G. time, decay, pruning ---


def test_case_95_what_was_recalled_scores_higher_and_the_parts_say_so(door: Door) -> None:
    """Twins of 30 days ago; one was recalled five times since."""
    quiet = door.add("the pier of Halvik", bank="dialog", created_at=ago(days=30), session_id="a")["id"]
    used = door.add("the pier of Halvik", bank="dialog", created_at=ago(days=30), session_id="b")["id"]
    for _ in range(5):
        door.feedback(used, "used")
    door.run("reinforce")
    assert (door.get(used)["recall_count"], door.get(quiet)["recall_count"]) == (5, 0)
    assert door.get(used)["strength"] > door.get(quiet)["strength"]
    first, second = door.search("pier of Halvik", explain=True, reinforce=False)
    assert (first["id"], second["id"]) == (used, quiet)
    assert first["score"] > second["score"]
    assert first["explain"]["factors"]["time"] > second["explain"]["factors"]["time"]


def test_case_98_a_time_ahead_gives_a_score_in_0_to_1(reopen: Callable[[], Door], tmp_path: Path) -> None:
    for ahead in (timedelta(hours=1), timedelta(days=1), timedelta(days=4_000)):
        future = datetime.now(UTC) + ahead
        for bank in ("knowledge", "dialog", "task"):
            fill(tmp_path, f"an apple in {ahead.days} days", bank=bank, created_at=future, event_at=future)
    door = reopen()
    found = door.search("an apple", explain=True, top_k=50)
    assert len(found) == 9
    for hit in found:
        assert 0 <= hit["score"] <= 1
        assert all(0 <= factor <= 1 for factor in hit["explain"]["factors"].values())
        assert hit["explain"]["inputs"].get("age_days", 0) >= 0
    for job in ("forget", "expire", "prune"):
        assert door.run(job, max_share=1)["due"] == 0
    door.close()


def test_case_100_pinned_and_ten_years_old_it_stays_and_the_dry_run_says_so(door: Door) -> None:
    pinned = door.add("the door code", bank="dialog", created_at=ago(days=3_650), pinned=True, importance=0.0)["id"]
    plain = door.add("the lunch", bank="dialog", created_at=ago(days=3_650), importance=0.0)["id"]
    dry = door.run("forget", dry_run=True, max_share=1)
    assert ids(dry["sample"]) == [plain]
    assert ids(door.run("forget", max_share=1)["sample"]) == [plain]
    assert (door.get(pinned)["state"], door.get(plain)["state"]) == ("active", "archived")


def test_case_101_a_dry_run_is_the_run_and_changes_nothing(door: Door) -> None:
    for n in range(4):
        door.add(f"an old lunch {n}", bank="dialog", created_at=ago(days=200 + n))
    door.add("a new lunch", bank="dialog")
    everything = door.listing(user_id="alice", state="any")
    dry = door.run("forget", dry_run=True, max_share=1)
    assert door.listing(user_id="alice", state="any") == everything
    wet = door.run("forget", max_share=1)
    assert (dry["due"], dry["sample"], dry["reasons"]) == (wet["due"], wet["sample"], wet["reasons"])
    archived = door.listing(user_id="alice", state="archived")["items"]
    assert sorted(ids(archived)) == sorted(ids(dry["sample"]))
    assert len(archived) == 4


def test_case_102_old_unrecalled_and_unimportant_it_may_go(door: Door) -> None:
    old = door.add("a lunch", bank="dialog", created_at=ago(days=400), importance=0.1)["id"]
    assert ids(door.run("forget", dry_run=True, max_share=1)["sample"]) == [old]


def test_case_103_times_of_every_form_are_ordered_by_instant(door: Door) -> None:
    given = {
        "e": "2026-01-01T00:00:05Z",
        "a": "2026-01-01T08:59:59+09:00",
        "c": "2026-01-01T00:00:02",
        "b": 1767225601,
        "d": 1767225603000,
    }
    for name, value in given.items():
        door.add(f"a new year {name}", id=name, created_at=value)
    listed = door.listing(user_id="alice")["items"]
    assert sorted(listed, key=lambda each: each["created_at"]) == [door.get(name) for name in "abcde"]
    early = door.search("a new year", filter={"created_at": {"lt": "2025-12-31T16:00:03-08:00"}}, top_k=50)
    assert set(ids(early)) == {"a", "b", "c"}


def test_case_135_a_run_under_default_settings_takes_no_set_of_forty_days(
    reopen: Callable[[], Door], tmp_path: Path
) -> None:
    """Unknown importance is not the lowest, and more than a fifth stops the run."""
    then = datetime.now(UTC) - timedelta(days=40)
    fill(tmp_path, *(f"memo {n}" for n in range(30)), bank="dialog", created_at=then)
    door = reopen()
    report = door.run("forget")
    assert report["moved"] == 0
    assert "at most 20.0% in one run" in report["stopped"]
    assert door.listing(user_id="alice")["total"] == 30
    door.close()


@pytest.mark.parametrize("mode", ["default", "reinforce=false", "used", "ignored"])
def test_case_141_what_counts_as_a_recall(reopen: Callable[[], Door], mode: str) -> None:
    """Returned counts once; not with ``reinforce=false``; used counts more; ignored counts nothing."""
    door = reopen()
    added = door.add("the red kite")["id"]
    if mode in ("used", "ignored"):
        door.feedback(added, mode)
    else:
        assert ids(door.search("red kite", reinforce=mode == "default")) == [added]
    door.close()
    door = reopen()
    door.run("reinforce")
    memory = door.get(added)
    door.close()
    grown = memory["strength"] - 1.0
    assert (memory["recall_count"], grown) == {
        "default": (1, 1.0),
        "reinforce=false": (0, 0.0),
        "used": (1, 2.0),
        "ignored": (0, 0.0),
    }[mode]
    assert (memory["last_recalled_at"] is None) == (memory["recall_count"] == 0)


def test_case_144_strength_is_bounded(reopen: Callable[[], Door], tmp_path: Path) -> None:
    (trivial,) = fill(tmp_path, "okay, sure, lunch", bank="dialog")
    with open_service(settings(tmp_path)) as service:
        for _ in range(15):
            service.feedback("default", trivial, Signal.USED)
    door = reopen()
    door.run("reinforce")
    assert door.get(trivial)["strength"] == 20.0
    fresh = door.add("the code of the garage is 7291", bank="dialog")["id"]
    assert ids(door.search("the code of the garage"))[0] == fresh
    door.close()


def test_case_146_a_scope_is_deleted_with_its_count(door: Door) -> None:
    for n in range(3):
        door.add(f"memo {n}", session_id="s1")
    door.add("memo of another session", session_id="s2")
    assert door.delete_all(user_id="alice", session_id="s1") == 3
    assert door.delete_all(user_id="alice", session_id="s1") == 0
    assert door.listing()["total"] == 1


def test_no_log_line_holds_a_word_of_a_memory_or_query(
    door: Door, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Case 72 for logs, debug messages included: they name ids, sizes and times."""
    caplog.set_level("DEBUG")
    added = door.add("quagmire in the meadow", metadata={"quagmire": "quagmire"}, bank="dialog")["id"]
    door.update(added, text="another quagmire in the meadow")
    door.search("where is the quagmire")
    for job in ("summarise", "portrait", "forget", "reinforce", "check"):
        door.run(job)
    with pytest.raises(Refused):
        door.search("quagmire", filter={"age": {"quagmire": 1}})
    door.delete(added)
    door.erase("alice")
    # Of the libraries whatever they say at DEBUG, the HTTP client of the test itself aside.
    said = [record.getMessage() for record in caplog.records if not record.name.startswith(("httpx", "asyncio"))]
    assert not [line for line in [*said, capfd.readouterr().err] if "quagmire" in line]


def test_json_of_an_answer_has_no_second_meaning(door: Door) -> None:
    """Case 144's strength, case 36's score: numbers are numbers in what every door gives."""
    added = door.add("the red kite", importance=0.25)["id"]
    memory = json.loads(json.dumps(door.get(added)))
    assert (memory["importance"], memory["strength"], memory["recall_count"], memory["pinned"]) == (0.25, 1.0, 0, False)
