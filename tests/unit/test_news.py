"""What a question asks for, and what a text tells of the present."""

import pytest

from vimbank.domain.news import Telling, asks_for_now, telling


@pytest.mark.parametrize(
    "question",
    [
        "Where does Ana live now?",
        "What is the current wifi password?",
        "Is she still at Nokia these days?",
        "Does he not smoke any more?",
        "我现在住在哪里？",
        "他目前在做什么工作",
        "最新的报价是多少",
    ],
)
def test_a_question_for_the_present(question: str) -> None:
    assert asks_for_now(question)


@pytest.mark.parametrize(
    "question",
    [
        "",
        "Where does Ana live?",
        "Where did Ana live?",
        "How long had she her current car?",
        "Was it known who snowed us in?",
        "door code",
        "我以前住在哪里？",
        "我喜欢什么？",
    ],
)
def test_a_question_for_whenever(question: str) -> None:
    """What names both times asks for the past: «how long did she have her current car»."""
    assert not asks_for_now(question)


@pytest.mark.parametrize(
    "text",
    [
        "I live in Rome now.",
        "Ana moved to Rome.",
        "She no longer eats meat.",
        "NEW NUMBER: 555-0199",
        "My new number is 555-0199.",
        "I'm in New York these days.",
        "The rent went up to $980.",
        "He used to smoke, but he quit.",
        "我搬到成都了。",
        "她不再吃肉",
        "我的手机号换成13800138000",
        "新的手机号是13800138000",
    ],
)
def test_news(text: str) -> None:
    """Of what was, and has changed, the change counts."""
    assert telling(text) is Telling.NEWS


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I live in Rome.",
        "I live in New York.",
        "Ana, the knower of snow, is well known.",
        "The deadline is 12 May.",
        "My number is 555-0199.",
        "我住在成都。",
        "她叫新月。",
        "我想念成都",
    ],
)
def test_a_state(text: str) -> None:
    """Words in words tell nothing: «snow», «known»; a month is no «may», a city not «new»."""
    assert telling(text) is Telling.STATE


@pytest.mark.parametrize(
    "text",
    [
        "I used to live in Rome.",
        "I lived in Rome in 2009.",
        "Ana worked there until 2011.",
        "It was nicer when we were young.",
        "Years ago she was a nurse.",
        "As a child I had a dog.",
        "I would move to Rome.",
        "I may move to Rome.",
        "Maybe the rent has changed now.",
        "She wants to become a nurse.",
        "Did Ana move to Rome? ",
        "我以前住在成都。",
        "2009年我住在成都。",
        "张伟当过会计。",
        "我想搬到成都。",
        "如果搬到成都就好了",
        "你搬到成都了吗？",
    ],
)
def test_not_now(text: str) -> None:
    """What may be is no news, whatever would change."""
    assert telling(text) is Telling.NOT_NOW


def test_the_beginning_of_a_long_text_decides() -> None:
    assert telling("a " * 500 + "I moved to Rome") is Telling.STATE
    assert telling("a " * 490 + "I moved to Rome") is Telling.NEWS
