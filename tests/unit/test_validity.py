"""Positive and negative samples (V-5 to V-8)."""

import pytest

from vimbank.domain.validity import Sample, Why, assess_knowledge, assess_round

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
    "response", ["", "  ", "Sorry, I can't help with that.", "null", "An error occurred", "抱歉，我无法回答。"]
)
def test_no_answer_is_negative(response: str) -> None:
    assert assess_round("What is the capital of Norway?", response).reasons == (Why.NO_ANSWER,)


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
