"""How much a text tells (``domain.information``): weights worked by hand."""

import pytest

from vimbank.domain.information import HALF_INFORMED, information


def weight(text: str) -> float:
    """The weight of a text's terms, from what the function makes of it: w / (w + 14)."""
    told = information(text)
    return told * HALF_INFORMED / (1.0 - told)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0.0),
        ("Wow, that sounds really great! Good luck!", 0.0),
        ("Trains leave at noon.", 3.0),  # train, leave, noon
        ("I sold my bike.", 6.0),  # sold, bike, of the speaker
        ("You sold your bike.", 1.0),  # of the listener
        ("Did I sell my bike?", 1.8),  # sell, bike: 3 * 0.3
        ("Trains leave at noon. Trains leave at noon!", 3.0),  # each term once
        ("I leave. Trains leave.", 4.0),  # leave where it weighs most
        ("Room 12 is closed.", 4.0),  # room, 12 twice, closed
        ("They met Anna there.", 3.0),  # met, Anna twice
        ("Anna left.", 2.0),  # at the beginning of a sentence any word is capital
    ],
)
def test_the_weight_of_a_text(text: str, expected: float) -> None:
    assert weight(text) == pytest.approx(expected)


def test_a_typographic_apostrophe_is_one() -> None:
    assert information("I\u2019m a plumber.") == information("I'm a plumber.")


@pytest.mark.parametrize(
    ("told", "talk"),
    [
        ("I moved to Berlin in May and work at a bakery.", "That sounds amazing, good for you!"),
        ("我五月搬到了柏林，在面包店工作。", "太棒了，真的很高兴！"),
        ("昨天我买了一辆红色的自行车。", "你好！今天怎么样？"),
    ],
)
def test_what_tells_something_tells_more_than_talk(told: str, talk: str) -> None:
    assert information(told) > 0.45 > 0.1 >= information(talk)


def test_the_same_statement_tells_as_much_in_either_language() -> None:
    """A Chinese word has two characters; each pair counts half."""
    english, chinese = weight("My sister lives in Shanghai with two cats."), weight("我妹妹和两只猫住在上海。")
    assert 0.6 < chinese / english < 1.6


def test_more_is_more_and_never_all() -> None:
    some = information("I bake bread.")
    more = information("I bake bread and cakes for a hotel near the harbour.")
    long = information(" ".join(f"I bought item{number} on street{number}." for number in range(500)))
    assert 0.0 < some < more < long < 1.0


def test_a_long_text_is_read_as_far_as_it_can_tell_anything_new() -> None:
    """A book costs no more than a page: what stands after 4,000 characters is not looked at."""
    page = "word " * 800
    assert information(page + "I own a castle in Scotland.") == information(page)
