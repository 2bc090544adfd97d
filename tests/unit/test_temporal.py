"""Dates in queries: a table of what is read, and what is not."""

from datetime import UTC, date, datetime

import numpy as np
import pytest

from vimbank.domain.temporal import Recurring, Span, TimeExpression, falls_in, time_expressions

NOW = datetime(2023, 5, 10, 12, 30, tzinfo=UTC)  # a Wednesday


def day(*ymd: int) -> Span:
    return Span(date(*ymd), date(*ymd))


MAY_2023 = Span(date(2023, 5, 1), date(2023, 5, 31))

TABLE: list[tuple[str, list[TimeExpression]]] = [
    ("what happened on 2023-05-07?", [day(2023, 5, 7)]),
    ("2023/5/7", [day(2023, 5, 7)]),
    ("on 7 May 2023", [day(2023, 5, 7)]),
    ("the 7th of May, 2023", [day(2023, 5, 7)]),
    ("May 7, 2023", [day(2023, 5, 7)]),
    ("MAY 7th 2023", [day(2023, 5, 7)]),
    ("3 Sept. 2022", [day(2022, 9, 3)]),
    ("29 February 2024", [day(2024, 2, 29)]),
    ("in May 2023", [MAY_2023]),
    ("2023-05", [MAY_2023]),
    ("December 2023", [Span(date(2023, 12, 1), date(2023, 12, 31))]),
    ("in 2022", [Span(date(2022, 1, 1), date(2022, 12, 31))]),
    ("on July 4", [Recurring(7, 4)]),
    ("the 4th of July", [Recurring(7, 4)]),
    ("during July", [Recurring(7)]),
    ("2023年5月3日我去了哪里", [day(2023, 5, 3)]),
    ("5月3日", [Recurring(5, 3)]),
    ("5月3号", [Recurring(5, 3)]),
    ("2023年5月", [MAY_2023]),
    ("2022年", [Span(date(2022, 1, 1), date(2022, 12, 31))]),
    ("我在5月做了什么", [Recurring(5)]),
    ("today", [day(2023, 5, 10)]),
    ("Yesterday I said", [day(2023, 5, 9)]),
    ("the day before yesterday", [day(2023, 5, 8)]),
    ("3 days ago", [day(2023, 5, 7)]),
    ("a week ago", [Span(date(2023, 4, 30), date(2023, 5, 6))]),
    ("two months ago", [Span(date(2023, 3, 1), date(2023, 3, 31))]),
    ("five months ago", [Span(date(2022, 12, 1), date(2022, 12, 31))]),
    ("a year ago", [Span(date(2022, 1, 1), date(2022, 12, 31))]),
    ("last week", [Span(date(2023, 5, 1), date(2023, 5, 7))]),
    ("this week", [Span(date(2023, 5, 8), date(2023, 5, 14))]),
    ("last month", [Span(date(2023, 4, 1), date(2023, 4, 30))]),
    ("last year", [Span(date(2022, 1, 1), date(2022, 12, 31))]),
    ("the last 3 days", [Span(date(2023, 5, 7), date(2023, 5, 10))]),
    ("last Monday", [day(2023, 5, 8)]),
    ("on Wednesday", [day(2023, 5, 3)]),
    ("昨天", [day(2023, 5, 9)]),
    ("前天", [day(2023, 5, 8)]),
    ("三天前", [day(2023, 5, 7)]),
    ("两个月前", [Span(date(2023, 3, 1), date(2023, 3, 31))]),
    ("上周", [Span(date(2023, 5, 1), date(2023, 5, 7))]),
    ("上个月", [Span(date(2023, 4, 1), date(2023, 4, 30))]),
    ("去年", [Span(date(2022, 1, 1), date(2022, 12, 31))]),
    ("between 7 May 2023 and 9 May 2023", [day(2023, 5, 7), day(2023, 5, 9)]),
    ("yesterday, I mean yesterday", [day(2023, 5, 9)]),
    # What looks like a date and is none.
    ("may I march in", []),
    ("31 June", []),
    ("2023-13-45", []),
    ("version 2.0.23 of part 4471", []),
    ("1999 bottles", []),
    ("who is Friday's child", []),
    ("0 AD", []),
    ("999999 days ago", []),
    ("", []),
]


@pytest.mark.parametrize(("text", "expected"), TABLE, ids=[text for text, _ in TABLE])
def test_what_a_query_names(text: str, expected: list[TimeExpression]) -> None:
    assert list(time_expressions(text, now=NOW)) == expected


def test_a_range_that_leaves_the_calendar_is_no_date() -> None:
    assert time_expressions("999 years ago", now=datetime(500, 1, 1, tzinfo=UTC)) == ()


def moments(*iso: str) -> np.ndarray:
    return np.array([datetime.fromisoformat(text).timestamp() for text in iso])


def test_a_span_holds_its_first_and_last_instant() -> None:
    at = moments("2023-05-06T23:59:59Z", "2023-05-07T00:00:00Z", "2023-05-07T23:59:59Z", "2023-05-08T00:00:00Z")
    assert falls_in(at, [day(2023, 5, 7)]).tolist() == [False, True, True, False]


def test_a_recurring_day_matches_any_year_also_before_1970() -> None:
    at = moments("2021-02-28T10:00:00Z", "1968-02-29T10:00:00Z", "2024-02-29T23:59:59Z", "2024-03-01T00:00:00Z")
    assert falls_in(at, [Recurring(2, 29)]).tolist() == [False, True, True, False]
    assert falls_in(at, [Recurring(2)]).tolist() == [True, True, True, False]


def test_an_unknown_moment_falls_on_no_date() -> None:
    assert falls_in(np.array([np.nan]), [Recurring(1), Recurring(1, 1), day(1970, 1, 1)]).tolist() == [False]


def test_any_of_the_dates_will_do() -> None:
    at = moments("2023-05-07T12:00:00Z", "2023-07-04T12:00:00Z", "2023-08-01T12:00:00Z")
    assert falls_in(at, [day(2023, 5, 7), Recurring(7, 4)]).tolist() == [True, True, False]
    assert falls_in(at, []).tolist() == [False, False, False]
