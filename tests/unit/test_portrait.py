"""Portraits: whose sentences count, what the extractive and the model's writer make of them (M-6, M-7, I-27)."""

from datetime import UTC, datetime

from tests.conftest import SettableClock
from tests.unit.test_summarise import Around
from vimbank.chat.scripted import ScriptedChat
from vimbank.encoders.hashing import HashingEncoder
from vimbank.ingestion.dialog import Turn
from vimbank.jobs.portrait import portrait
from vimbank.llm.extractive import ExtractiveWriter
from vimbank.llm.portrait import telling_sentences, telling_weight
from vimbank.llm.writer import Passage
from vimbank.service import MemoryService

AT = datetime(2026, 1, 2, tzinfo=UTC)


def own(*words: str) -> list[Passage]:
    return [Passage(each, AT, own_words=each) for each in words]


def test_sentences_in_which_users_speak_of_themselves() -> None:
    passages = own(
        "The pump is red. I love tea! Do I like it?", "我喜欢爬山。今天下雨。我该怎么办？", "Illness is bad."
    )
    assert [sentence for sentence, _ in telling_sentences(passages)] == ["I love tea!", "我喜欢爬山。"]
    assert [telling_weight(each) for each in ("I love tea!", "我喜欢爬山。", "I sold my car.")] == [3.0, 3.0, 1.0]


def test_what_others_say_tells_nothing_of_the_user() -> None:
    passage = Passage("Who am I?\nI am a machine and I love chess.", AT, own_words="Who am I?")
    assert ExtractiveWriter(HashingEncoder()).write("day_portrait", [passage]) is None


def test_an_extractive_portrait_holds_the_users_words_and_the_day() -> None:
    writer = ExtractiveWriter(HashingEncoder())
    text = writer.write("day_portrait", own("The pump is red.", "I love tea.", "I always worry before exams."))
    assert text == "I love tea.\nI always worry before exams."
    whole = writer.write("global_portrait", [Passage(text, AT)])
    assert whole == "2026-01-02: I love tea.\n2026-01-02: I always worry before exams."
    assert writer.write("global_portrait", [Passage(whole, datetime(2026, 2, 1, tzinfo=UTC))]) == whole


def test_the_same_said_twice_is_told_once_and_the_new_overwrites_the_old() -> None:
    writer = ExtractiveWriter(HashingEncoder())
    assert writer.write("day_summary", own("Ana bakes rye bread.", "Ana bakes rye bread.")) == "Ana bakes rye bread."
    merged = writer.merge("The blue boat lies at pier four. Ben bakes rye bread.", "The blue boat lies at pier nine.")
    assert merged == "Ben bakes rye bread.\nThe blue boat lies at pier nine."


def test_a_day_of_thousands_of_sentences_fits() -> None:
    encoder = HashingEncoder()
    text = ExtractiveWriter(encoder).write("day_summary", own(*(f"Walk {place} was fine." for place in range(3_000))))
    assert text is not None
    assert 0 < len(encoder.tokenize(text)) <= encoder.window


def test_portraits_of_days_and_the_whole(service: MemoryService, clock: SettableClock) -> None:
    around = Around(service, clock)
    around.say("I love the cello.", "The ferry is late.", day=1)
    around.say("I am afraid of storms.", day=2, session="t")
    around.say("The weather is fine.", day=3, session="u")
    around.say("I am a program and I like chess.", day=4, session="v", role="assistant")
    report = around.run(portrait)
    assert (report["method"], report["written"], report["unchanged"]) == ("extractive", 3, 2)
    days = around.derived("portrait", "day")
    assert [each.text for each in days] == ["I love the cello.", "I am afraid of storms."]
    (whole,) = around.derived("portrait", "global")
    assert whole.metadata["sources"] == [each.id for each in days]
    assert around.run(portrait)["written"] == 0


def test_what_a_model_is_asked_for_portraits(service: MemoryService, clock: SettableClock) -> None:
    """The response of a round is no word of the user's, but shows what the user answers to."""
    around = Around(service, clock)
    turns = [Turn("user", "I love the cello."), Turn("assistant", "I see.")]
    service.add_turns(tenant="default", user_id="ana", session_id="s", turns=turns)
    around.chat = ScriptedChat([{"summary": "Devoted to music."}, {"summary": "A musician."}])
    around.run(portrait)
    day, whole = (asked.messages for asked in around.chat.asked)
    assert "personality traits and emotions" in day[0].content
    assert "I love the cello.\nI see." in day[1].content
    assert "highly concise" in whole[0].content
    assert "Devoted to music." in whole[1].content
    assert [each.text for each in around.derived("portrait", "global")] == ["A musician."]
    assert around.stale("portrait") == set()
