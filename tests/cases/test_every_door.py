"""Cases that hold for every entry point, run through Python, REST and the command line."""

import contextlib
import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.cases.doors import DOORS, Door, Refused


def texts(results: list[dict]) -> list[str]:
    return [each["text"] for each in results]


def refused(call, kind: str = "invalid") -> Refused:
    with pytest.raises(Refused) as caught:
        call()
    assert caught.value.kind == kind
    return caught.value


def test_case_2_a_deleted_memory_is_nowhere(door: Door) -> None:
    ids = [door.add(text)["id"] for text in ("red kite", "blue heron", "grey owl")]
    door.delete(ids[1])
    assert door.listing(user_id="alice")["total"] == 2
    for fusion in ("dense", "sparse", "convex"):
        assert ids[1] not in [each["id"] for each in door.search("blue heron", fusion=fusion)]


def test_case_8_a_filtered_search_finds_k_wherever_they_stand(door: Door) -> None:
    for number in range(15):
        door.add(f"launch code alpha {number}", user_id="bob")
    for number in range(5):
        door.add(f"garden note {number} about a launch", user_id="alice")
    assert len(door.search("launch code alpha", top_k=5)) == 5


def test_case_14_more_asked_for_than_there_is(door: Door) -> None:
    assert door.search("kite", top_k=50) == []
    ids = [door.add(text)["id"] for text in ("red kite", "blue heron")]
    for fusion in ("dense", "convex"):
        assert {each["id"] for each in door.search("red kite", top_k=50, fusion=fusion)} <= set(ids)
    assert {each["id"] for each in door.search("red kite and blue heron", top_k=50, fusion="sparse")} == set(ids)


def test_case_19_an_update_is_searched_anew(door: Door) -> None:
    added = door.add("likes tea")["id"]
    door.update(added, text="likes coffee")
    assert [each["id"] for each in door.search("coffee")] == [added]
    assert door.search("tea", fusion="sparse") == []
    assert texts(door.search("tea", fusion="dense")) in ([], ["likes coffee"])


def test_case_22_a_keyword_alone_finds(door: Door) -> None:
    for number in range(50):
        door.add(f"memo {number} about the weekly meeting and lunch")
    wanted = door.add("error code ZX-4471 on the pump")["id"]
    assert door.search("ZX-4471", top_k=3)[0]["id"] == wanted


@pytest.mark.parametrize("k", [0, -1, 1_001])
def test_case_77_a_top_k_out_of_range_is_refused(door: Door, k: int) -> None:
    door.add("red kite")
    refused(lambda: door.search("kite", top_k=k))


def test_case_35_top_k_caps(door: Door) -> None:
    for number in range(40):
        door.add(f"kite number {number}")
    assert len(door.search("kite", top_k=3)) == 3


def test_case_28_the_threshold_acts_on_the_final_score(door: Door) -> None:
    for text in ("red kite over the hill", "a kite", "blue heron", "something else"):
        door.add(text)
    scores = [each["score"] for each in door.search("red kite over the hill")]
    assert scores == sorted(scores, reverse=True)
    cut = (scores[0] + scores[1]) / 2
    assert [each["score"] for each in door.search("red kite over the hill", threshold=cut)] == scores[:1]


def test_case_30_nothing_of_another_user_in_any_mode(door: Door) -> None:
    mine = door.add("secret launch date", user_id="alice")["id"]
    door.add("secret launch date", user_id="bob")
    for fusion in ("sparse", "dense", "convex"):
        assert [each["id"] for each in door.search("secret launch date", fusion=fusion)] == [mine]


def test_case_36_a_score_is_a_number_in_0_to_1(door: Door) -> None:
    door.add("red kite")
    (hit,) = door.search("red kite")
    assert 0 <= hit["score"] + 0.0 <= 1


@pytest.mark.parametrize("query", ["#682", "k=60", "what?", "$prev", "C:\\path\\x", "a AND (b", '"open', "foo:bar", "*",
                                   "x -x", "NEAR(", "AND OR NOT ( [ { / ~ ^ \\"])  # fmt: skip
def test_case_42_and_43_no_query_text_is_an_error(door: Door, query: str) -> None:
    wanted = door.add("merged in PR #682")["id"]
    found = door.search(query)
    if query == "#682":
        assert found[0]["id"] == wanted


def test_case_45_a_user_whose_name_has_the_same_parts(door: Door) -> None:
    door.add("quarterly plan", user_id="team-b")
    assert door.search("quarterly plan", user_id="team-a") == []


def test_case_46_unicode_forms_meet(door: Door) -> None:
    wanted = [
        door.add("the café opens")["id"],
        door.add("the cafe\u0301 closes")["id"],
        door.add("\uff21\uff22\uff23")["id"],
    ]
    assert {each["id"] for each in door.search("cafe\u0301", fusion="sparse")} == set(wanted[:2])
    assert {each["id"] for each in door.search("café", fusion="sparse")} == set(wanted[:2])
    assert [each["id"] for each in door.search("ABC", fusion="sparse")] == wanted[2:]


def test_case_47_what_was_added_is_found_at_once(door: Door) -> None:
    for number in range(10):
        added = door.add(f"note number n{number}x")["id"]
        assert door.search(f"n{number}x", top_k=1)[0]["id"] == added


def test_case_50_equality_is_of_the_whole_value(door: Door) -> None:
    added = door.add("a task", metadata={"category": "Work Items"})["id"]
    assert [each["id"] for each in door.search("a task", filter={"category": "Work Items"})] == [added]
    assert door.search("a task", filter={"category": "Work"}) == []


def test_case_52_an_unknown_operator_is_refused_by_name(door: Door) -> None:
    door.add("a task", metadata={"age": 7})
    refusal = refused(lambda: door.search("a task", filter={"age": {"gtt": 5}}))
    assert any("gtt" in field for field in refusal.fields)


def test_case_53_or_is_or(door: Door) -> None:
    for metadata in ({"a": 1}, {"b": 2}, {"c": 3}):
        door.add(f"note {json.dumps(metadata)}", metadata=metadata)
    found = door.search("note", filter={"OR": [{"a": 1}, {"b": 2}]})
    assert sorted(json.dumps(each["metadata"]) for each in found) == ['{"a": 1}', '{"b": 2}']


def test_case_57_a_very_long_query_is_answered_or_refused(door: Door) -> None:
    wanted = door.add("word17 alone")["id"]
    assert door.search(" ".join(f"word{number}" for number in range(5_000)))[0]["id"] == wanted


def test_case_58_a_question_needs_not_all_of_its_words(door: Door) -> None:
    wanted = door.add("I adopted a corgi named Biscuit")["id"]
    door.add("The weather was fine")
    found = door.search("do you remember what corgi I have and its name", fusion="sparse")
    assert found[0]["id"] == wanted


def test_case_62_two_users_may_say_the_same(door: Door) -> None:
    first, second = door.add("same words", user_id="alice"), door.add("same words", user_id="bob")
    assert first["id"] != second["id"]
    door.delete(first["id"])
    assert door.get(second["id"])["text"] == "same words"


def test_case_63_fields_do_not_glue(door: Door) -> None:
    assert door.add("c", user_id="ab")["id"] != door.add("bc", user_id="a")["id"]


def test_case_65_two_users_one_session_id(door: Door) -> None:
    door.add("alice in session one", user_id="alice", session_id="1", bank="dialog")
    door.add("bob in session one", user_id="bob", session_id="1", bank="dialog")
    assert texts(door.search("in session one", user_id="alice", session_id="1")) == ["alice in session one"]
    assert door.listing(user_id="bob", session_id="1")["total"] == 1


def test_case_66_and_71_no_answer_outlives_what_it_was_made_of(door: Door) -> None:
    mine = door.add("plans for May", user_id="alice")["id"]
    other = door.add("plans for June", user_id="bob")["id"]
    assert [each["id"] for each in door.search("plans", user_id="alice")] == [mine]
    assert [each["id"] for each in door.search("plans", user_id="bob")] == [other]
    door.delete(mine)
    assert door.search("plans", user_id="alice") == []
    door.update(other, text="no more of that")
    assert door.search("plans", user_id="bob", fusion="sparse") == []


def test_case_68_delete_all_needs_a_user(door: Door) -> None:
    for text, user in (("first", "alice"), ("second", "alice"), ("third", "bob")):
        door.add(text, user_id=user)
    refused(lambda: door.delete_all())
    refused(lambda: door.delete_all(user_id=""))
    assert door.listing()["total"] == 3
    assert door.delete_all(user_id="alice") == 2
    assert [each["user_id"] for each in door.listing()["items"]] == ["bob"]


def test_case_73_an_update_keeps_what_it_does_not_name(door: Door) -> None:
    before = door.get(door.add("first text", metadata={"a": 1})["id"])
    after = door.update(before["id"], text="second text")
    assert after["metadata"] == {"a": 1}
    assert after["created_at"] == before["created_at"]
    assert after["updated_at"] > before["updated_at"]


def test_case_76_history_tells_old_and_new(door: Door) -> None:
    added = door.add("v1")["id"]
    door.update(added, text="v2")
    door.delete(added)
    assert [(each["old_text"], each["new_text"]) for each in door.history(added)] == [
        (None, "v1"),
        ("v1", "v2"),
        ("v2", None),
    ]


@pytest.mark.parametrize("blank", ["", "   ", "\n", "\u200b\u200d"])
def test_case_80_and_81_blank_text_is_refused_and_nothing_is_stored(door: Door, blank: str) -> None:
    refused(lambda: door.add(blank))
    refused(lambda: door.search(blank))
    assert door.listing()["total"] == 0


@pytest.mark.parametrize("unknown", ["nope", "../../etc", "x" * 5_000, "%00", "a b"])
def test_case_82_an_unknown_id_is_not_found(door: Door, unknown: str) -> None:
    for call in (door.get, door.delete, door.history):
        with pytest.raises(Refused) as caught:
            call(unknown)
        assert caught.value.kind in ("not_found", "invalid")


def test_case_84_an_id_of_odd_characters(door: Door) -> None:
    assert door.add("odd one", id="a/b c?#")["id"] == "a/b c?#"
    assert door.get("a/b c?#")["text"] == "odd one"
    assert door.update("a/b c?#", text="odd two")["text"] == "odd two"
    door.delete("a/b c?#")
    refused(lambda: door.get("a/b c?#"), "not_found")


def test_case_105_an_expiry_is_an_instant_in_every_time_zone(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime.now(UTC)
    for zone in ("Pacific/Kiritimati", "America/Los_Angeles", "UTC"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        over, ahead = now - timedelta(minutes=30), now + timedelta(minutes=30)
        gone = door.add(f"the offer ended in {zone}", expires_at=over.isoformat())["id"]
        alive = door.add(f"the offer stands in {zone}", expires_at=ahead.isoformat())["id"]
        found = [each["id"] for each in door.search("offer", top_k=50)]
        assert alive in found
        assert gone not in found
        naive = door.add(f"naive is UTC in {zone}", expires_at=ahead.replace(tzinfo=None).isoformat())["id"]
        assert door.get(naive)["expires_at"] == door.get(alive)["expires_at"]
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("given", "instant"),
    [
        ("2026-01-01T00:00:00", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00+09:00", "2025-12-31T15:00:00Z"),
        (1767225600, "2026-01-01T00:00:00Z"),
        (1767225600000, "2026-01-01T00:00:00Z"),
        ("2026-01-01", "2026-01-01T00:00:00Z"),
    ],
)
def test_case_103_times_are_instants(door: Door, given: str | int, instant: str) -> None:
    added = door.add("a new year", created_at=given)["id"]
    assert door.get(added)["created_at"] == instant


def test_case_106_as_of_shows_what_stood_then(door: Door) -> None:
    added = door.add("the door code is 1111", created_at="2026-01-01")["id"]
    door.update(added, text="the door code is 2222")
    assert texts(door.search("door code", as_of="2026-01-15")) == ["the door code is 1111"]
    assert door.search("door code", as_of="2025-12-15") == []
    assert texts(door.search("door code")) == ["the door code is 2222"]
    door.delete(added)
    assert texts(door.search("door code", as_of="2026-02-15")) == ["the door code is 1111"]


def test_case_112_over_long_text_is_stored_or_refused(door: Door) -> None:
    for number, text in enumerate(("word " * 60_000, "x" * 20_000)):
        door.add(text, id=f"long-{number}")
        assert door.get(f"long-{number}")["text"] == text


@pytest.mark.parametrize("broken", ["a\ud83d", "a\u0000b"])
def test_case_114_broken_characters_are_cleaned_or_refused(door: Door, broken: str) -> None:
    for call in (
        lambda: door.add(broken),
        lambda: door.add("fine", metadata={"key": broken}),
        lambda: door.add("fine too", id=broken),
        lambda: door.search(broken),
        lambda: door.get(broken),
    ):
        # A command line cannot carry a surrogate at all.
        with contextlib.suppress(Refused, UnicodeEncodeError):
            call()
    assert json.dumps(door.search("a fine b")).encode("utf-8")
    assert door.add("later adds work")["id"]


def test_case_137_a_deleted_memory_can_be_added_again(door: Door) -> None:
    first = door.add("once more")["id"]
    door.delete(first)
    again = door.add("once more")
    assert again["id"] != first
    assert not again["duplicate"]
    assert [each["id"] for each in door.search("once more")] == [again["id"]]


def test_case_143_each_mode_on_one_scale(door: Door) -> None:
    for text in ("red kite", "red kite over a red hill", "blue heron", "kite"):
        door.add(text)
    for fusion in ("dense", "sparse", "rrf", "vimbank_eq4", "convex"):
        scores = [each["score"] for each in door.search("red kite", fusion=fusion)]
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)


def test_case_146_delete_says_what_it_did(door: Door) -> None:
    added = door.add("short-lived")["id"]
    door.delete(added)
    refused(lambda: door.delete(added), "not_found")
    refused(lambda: door.delete("never there"), "not_found")


def test_case_133_explanations_add_up(door: Door) -> None:
    for number in range(8):
        door.add(f"turn {number} about the red kite", bank="dialog", session_id="s", created_at="2026-01-01")
    for hit in door.search("red kite", explain=True):
        explanation = hit["explain"]
        relevance = sum(explanation["parts"].values())
        score = relevance
        for factor in explanation["factors"].values():
            score *= factor
        assert score == pytest.approx(hit["score"], abs=1e-6)
        assert relevance == pytest.approx(explanation["relevance"], abs=1e-6)


def test_case_70_a_deleted_memory_stays_away_after_a_restart(tmp_path: Path) -> None:
    for name, open_ in DOORS.items():
        door = open_(tmp_path / name)
        gone = door.add("the red kite")["id"]
        kept = door.add("the red kite over the hill")["id"]
        assert {each["id"] for each in door.search("the red kite")} == {gone, kept}
        door.delete(gone)
        door.close()
        door = open_(tmp_path / name)
        for fusion in ("dense", "sparse", "convex", "rrf"):
            assert [each["id"] for each in door.search("the red kite", fusion=fusion)] == [kept]
        door.close()


def test_case_29_every_door_ranks_alike(tmp_path: Path) -> None:
    writer = DOORS["python"](tmp_path)
    words = ("red", "blue", "kite", "heron", "hill", "river", "old", "new")
    for number in range(60):
        chosen = [words[(number * step) % len(words)] for step in (1, 3, 5)]
        writer.add(f"{' '.join(chosen)} {number}", created_at="2026-01-01")
    queries = [f"{a} {b}" for a in words[:5] for b in words[4:]]
    answers = {}
    for name in DOORS:
        door = writer if name == "python" else DOORS[name](tmp_path)
        answers[name] = [
            [(each["id"], round(each["score"], 9)) for each in door.search(query, reinforce=False)] for query in queries
        ]
    assert answers["python"] == answers["rest"] == answers["cli"]
    assert len(queries) == 20
    writer.close()
