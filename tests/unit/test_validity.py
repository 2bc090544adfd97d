"""Positive and negative samples (V-5 to V-8)."""

import pytest

from vimbank.domain.validity import (
    Sample,
    Why,
    assess_knowledge,
    assess_round,
    assess_turn,
    content_terms,
    parts_of_round,
)

BREAD = ["How do I bake bread?\nUse flour, water and salt."]
NORWAY = ["What is the capital of Norway?\nOslo."]
面包 = ["怎么做面包？\n用面粉、水和盐。"]
挪威 = ["挪威的首都是哪里？\n奥斯陆。"]


@pytest.mark.parametrize(
    ("query", "history", "why"),
    [
        ("How long must the bread bake?", BREAD, Why.SHARES_WORDS),
        ("And of Sweden?", NORWAY, Why.REFERS_BACK),
        ("Is it far from the sea?", NORWAY, Why.REFERS_BACK),
        ("面包要烤多久？", 面包, Why.SHARES_WORDS),
        ("那瑞典呢？", 挪威, Why.REFERS_BACK),
        ("Linked lists", BREAD, Why.REFERS_BACK),
        ("价格怎么样", 面包, Why.REFERS_BACK),
        ("What is the capital of Norway?", [], Why.FIRST_ROUND),
        ("What is the capital of Norway?", ["", "  "], Why.FIRST_ROUND),
    ],
)
def test_linked_rounds_are_positive(query: str, history: list[str], why: Why) -> None:
    """V-7."""
    assessment = assess_round(query, "Forty minutes.", history)
    assert assessment.sample is Sample.POSITIVE
    assert assessment.reasons[0] is why


@pytest.mark.parametrize(
    ("query", "history"),
    [("What is the capital of Norway?", BREAD), ("挪威的首都是哪里？", 面包), ("Who wrote Faust?", NORWAY)],
)
def test_a_pseudo_multi_round_is_negative(query: str, history: list[str]) -> None:
    """V-8: its history has nothing to do with the query."""
    assessment = assess_round(query, "Oslo.", history)
    assert assessment.sample is Sample.NEGATIVE
    assert assessment.reasons == (Why.UNRELATED_HISTORY,)


def test_a_statement_after_a_question_answers_it() -> None:
    asked = ["Which films do you watch?\nI know many. What do you like?"]
    assert assess_round("Comedies with a sad end.", "Try this one.", asked).reasons == (Why.ANSWERS,)
    assert assess_round("Who wrote Faust?", "Goethe.", asked).reasons == (Why.UNRELATED_HISTORY,)


@pytest.mark.parametrize(
    "query", ["I moved to Lisbon on 3 March.", "I've moved to Lisbon, do you know the place?", "我三月搬到里斯本了。"]
)
def test_what_the_user_tells_of_themselves_needs_no_link(query: str) -> None:
    """Neither an unrelated history nor a refusal makes it negative."""
    assert assess_round(query, "Nice.", BREAD).reasons == (Why.TELLS_SOMETHING,)
    assert assess_round(query, "Sorry, I can't help with that.", BREAD).sample is Sample.POSITIVE


def test_the_words_of_a_text_are_asked_for_only_where_nothing_else_links() -> None:
    asked: list[str] = []

    def content(text: str) -> frozenset[str]:
        asked.append(text)
        return content_terms(text)

    assess_round("And of Sweden?", "Stockholm.", NORWAY, content=content)
    assert asked == []
    assess_round("How long must the bread bake?", "Long.", NORWAY + BREAD, content=content)
    assert asked == ["How long must the bread bake?", *BREAD]


@pytest.mark.parametrize(
    ("text", "replies", "sample", "why"),
    [
        ("The bread must bake for forty minutes.", False, Sample.POSITIVE, Why.SHARES_WORDS),
        ("Oslo lies at the end of a fjord.", False, Sample.POSITIVE, Why.TELLS_SOMETHING),
        ("Who wrote Faust?", False, Sample.NEGATIVE, Why.UNRELATED_HISTORY),
        ("Thanks a lot!", False, Sample.NEGATIVE, Why.SMALL_TALK),
        ("Sorry, I cannot open the page.", True, Sample.NEGATIVE, Why.NO_ANSWER),
        ("Sorry, I cannot come on Friday.", False, Sample.POSITIVE, Why.TELLS_SOMETHING),
        ("Sorry to hear that you are ill.", True, Sample.POSITIVE, Why.REFERS_BACK),
    ],
)
def test_a_turn_is_judged_by_what_it_says(text: str, replies: bool, sample: Sample, why: Why) -> None:
    assessment = assess_turn(text, BREAD, replies=replies)
    assert (assessment.sample, assessment.reasons[0]) == (sample, why)


def test_a_first_turn_needs_no_link() -> None:
    assert assess_turn("Who wrote Faust?").reasons == (Why.FIRST_ROUND,)
    assert assess_turn("hello").reasons == (Why.SMALL_TALK,)


def test_the_query_of_a_stored_round_is_its_first_line() -> None:
    assert parts_of_round("What?\nThis.\nAnd that.") == ("What?", "This.\nAnd that.")
    assert parts_of_round("What?") == ("What?", "")


def test_similarity_is_a_link_where_words_are_none() -> None:
    query = "Which oven temperature suits a loaf?"
    assert assess_round(query, "230 degrees.", BREAD, similarity=0.49).sample is Sample.NEGATIVE
    linked = assess_round(query, "230 degrees.", BREAD, similarity=0.5)
    assert linked.sample is Sample.POSITIVE
    assert linked.reasons == (Why.SIMILAR,)


def test_only_the_last_seven_rounds_count() -> None:
    query = "How long must the bread bake?"
    assert assess_round(query, "Forty minutes.", BREAD + NORWAY * 6).sample is Sample.POSITIVE
    assert assess_round(query, "Forty minutes.", BREAD + NORWAY * 7).sample is Sample.NEGATIVE


@pytest.mark.parametrize(
    "response",
    ["", "  ", "Sorry, I can't help with that.", "I'm sorry.", "null", "An error occurred", "抱歉，我无法回答。"],
)
def test_no_answer_is_negative(response: str) -> None:
    assert assess_round("What is the capital of Norway?", response).reasons == (Why.NO_ANSWER,)


@pytest.mark.parametrize(
    "response",
    [
        "I'm sorry to hear that you had to wait.",
        "Sorry, my mistake: the capital is Oslo.",
        "抱歉，我刚才说错了，首都是奥斯陆。",
        "I'm sorry, I cannot name the mayor. " + "What I know of the town is its harbour and its mills. " * 5,
    ],
)
def test_an_apology_is_no_refusal(response: str) -> None:
    assert assess_round("What is the capital of Norway?", response).sample is Sample.POSITIVE


def test_small_talk_is_negative_only_on_both_sides() -> None:
    assert assess_round("hi", "Hello there!").reasons == (Why.SMALL_TALK,)
    assert assess_round("你好", "你好！").reasons == (Why.SMALL_TALK,)
    assert assess_round("yes", "Your table for four is booked.").sample is Sample.POSITIVE


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", Why.NOT_TEXT),
        ("<<<>>>///{}{}", Why.NOT_TEXT),
        ("\ufffd\ufffdab\ufffdcd\ufffd text of a page", Why.NOT_TEXT),
        ("ok", Why.TOO_SHORT),
        ("that is it", Why.TOO_SHORT),
        ("404 Not Found: the page you asked for", Why.BOILERPLATE),
        ("Please accept all cookies to continue reading", Why.BOILERPLATE),
        ("Buy our shoes now. " * 6, Why.REPEATS_ITSELF),
        ("What is the capital of Norway? Who is its king?", Why.ONLY_QUESTIONS),
        ("挪威的首都是哪里？", Why.ONLY_QUESTIONS),
    ],
)
def test_knowledge_that_tells_nothing_is_negative(text: str, why: Why) -> None:
    assessment = assess_knowledge(text)
    assert assessment.sample is Sample.NEGATIVE
    assert why in assessment.reasons


@pytest.mark.parametrize(
    "text",
    [
        "Halvik is a harbour town of eleven thousand people.",
        "I like tea",
        "Is vegan",
        "奥斯陆是挪威的首都，人口七十万。",
        "Is Halvik large? It has eleven thousand people.",
        "The cookie policy of a site says which files it keeps. "
        + "It differs from site to site, as laws differ. " * 2
        + "Browsers keep such files in a folder of their own, and most let their users read them. " * 4,
        "def add(a, b):\n    return a + b  # adds two numbers",
    ],
)
def test_knowledge_that_tells_something_is_positive(text: str) -> None:
    assert assess_knowledge(text).sample is Sample.POSITIVE
