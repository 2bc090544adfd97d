"""Dates that a query names, found by rules, and the memories that fall on them (D6). Pure, well under 1 ms.

A date with its year becomes a ``Span``; one without a year (``7 May``, ``5月3日``, ``in July``) a ``Recurring``,
which any year matches. Words such as «yesterday» count from ``now``. Everything is UTC, a week starts on Monday.
A match is a soft boost, never a filter: a date that is read wrongly then costs little.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final, TypeAlias

import numpy as np

from vimbank.domain.models import BoolArray, FloatArray

__all__ = ["Recurring", "Span", "TimeExpression", "falls_in", "time_expressions"]


@dataclass(frozen=True, slots=True)
class Span:
    """Whole days, both included."""

    first: date
    last: date


@dataclass(frozen=True, slots=True)
class Recurring:
    """A month of any year, or one day of it; months and days count from 1."""

    month: int
    day: int | None = None


TimeExpression: TypeAlias = Span | Recurring


def time_expressions(text: str, *, now: datetime) -> tuple[TimeExpression, ...]:
    """The dates that a text names, in the order of the rules below, without repeats.

    What a more precise rule has read, a later one does not read again: «7 May 2023» is a day, not also the year
    2023. What does not exist is not read («31 June» is no day). Only the first 2,000 characters are looked at.

    Args:    now: aware UTC; what «yesterday» counts from.
    """
    text = text[:_MAX_CHARS]
    if not _MAY_NAME_A_DATE.search(text):
        return ()
    found: dict[TimeExpression, None] = {}
    today = now.date()
    for pattern, read in _RULES:

        def take(match: re.Match[str], read: _Reader = read) -> str:
            try:
                found[read(match, today)] = None
            except (ValueError, OverflowError):
                return match.group()
            return "\0"  # not a letter, digit or blank: nothing is read across it

        text = pattern.sub(take, text)
    return tuple(found)


def falls_in(moments: FloatArray, expressions: Sequence[TimeExpression]) -> BoolArray:
    """Whether each moment falls on one of the dates.

    Args:    moments: epoch seconds, (n,), NaN where unknown: no match.
    Returns: bool, (n,).
    """
    result = np.zeros(len(moments), dtype=np.bool_)
    for expression in expressions:
        if isinstance(expression, Span):
            start, end = _seconds(expression.first), _seconds(expression.last) + _DAY_S
            result |= (moments >= start) & (moments < end)
        else:
            result |= _recurs(moments, expression)
    return result


# --- reading ------------------------------------------------------------------------------------------------------

_Reader: TypeAlias = Callable[[re.Match[str], date], TimeExpression]

_DAY_S: Final = 86_400.0
_MAX_CHARS: Final = 2_000

_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            ("january", "jan"),
            ("february", "feb"),
            ("march", "mar"),
            ("april", "apr"),
            ("may",),
            ("june", "jun"),
            ("july", "jul"),
            ("august", "aug"),
            ("september", "sept", "sep"),
            ("october", "oct"),
            ("november", "nov"),
            ("december", "dec"),
        ),
        start=1,
    )
    for name in names
}
_WEEKDAYS: Final = {
    name: number
    for number, name in enumerate(("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"))
}
_COUNTS: Final = {
    word: number
    for number, words in enumerate(
        (
            ("a", "an", "one", "一"),
            ("two", "a couple of", "两", "二"),
            ("three", "三"),
            ("four", "四"),
            ("five", "五"),
            ("six", "六"),
            ("seven", "七"),
            ("eight", "八"),
            ("nine", "九"),
            ("ten", "十"),
        ),
        start=1,
    )
    for word in words
}
_DAYS_BACK: Final = {
    "today": 0,
    "tonight": 0,
    "this morning": 0,
    "yesterday": 1,
    "last night": 1,
    "the day before yesterday": 2,
    "今天": 0,
    "昨天": 1,
    "昨日": 1,
    "前天": 2,
}
_UNITS: Final = {"day": "day", "week": "week", "month": "month", "year": "year"}
_CJK_UNITS: Final = {
    "天": "day",
    "日": "day",
    "周": "week",
    "星期": "week",
    "个月": "month",
    "月": "month",
    "年": "year",
}
_CJK_PERIODS: Final = {
    "这周": ("week", 0),
    "本周": ("week", 0),
    "上周": ("week", 1),
    "上星期": ("week", 1),
    "上个星期": ("week", 1),
    "这个月": ("month", 0),
    "本月": ("month", 0),
    "上月": ("month", 1),
    "上个月": ("month", 1),
    "今年": ("year", 0),
    "去年": ("year", 1),
    "前年": ("year", 2),
}


def _any(words: Sequence[str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


_MONTH: Final = rf"(?P<month>{_any(list(_MONTHS))})\b\.?"
_FULL_MONTH: Final = (
    rf"(?P<month>{_any([name for name in _MONTHS if len(name) > 4 or name in ('may', 'june', 'july')])})"
)
_DAY: Final = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_YEAR: Final = r"(?P<year>(?:19|20)\d\d)"
_COUNT: Final = rf"(?P<count>\d{{1,3}}|{_any(list(_COUNTS))})"

# The one cheap look that spares most queries the rules.
_MAY_NAME_A_DATE: Final = re.compile(
    rf"\d|\b(?:{_any([*_MONTHS, *_WEEKDAYS])})\b|\b(?:to|yester)day\b|\b(?:to|last )night\b|\bago\b"
    rf"|\b(?:this|last|past|previous)\b|[今昨前]天|昨日|[年月周前]|星期",
    re.IGNORECASE,
)


def _read_day(match: re.Match[str], _today: date) -> TimeExpression:
    day = date(int(match["year"]), _month(match), int(match["day"]))
    return Span(day, day)


def _read_day_of_any_year(match: re.Match[str], _today: date) -> TimeExpression:
    month, day = _month(match), int(match["day"])
    date(2000, month, day)  # a leap year: refuses 31 June, takes 29 February
    return Recurring(month, day)


def _read_month(match: re.Match[str], _today: date) -> TimeExpression:
    return _month_of(int(match["year"]), _month(match))


def _read_month_of_any_year(match: re.Match[str], _today: date) -> TimeExpression:
    return Recurring(_month(match))


def _read_year(match: re.Match[str], _today: date) -> TimeExpression:
    return _year_of(int(match["year"]))


def _read_days_back(match: re.Match[str], today: date) -> TimeExpression:
    day = today - timedelta(days=_DAYS_BACK[_words(match.group())])
    return Span(day, day)


def _read_period(match: re.Match[str], today: date) -> TimeExpression:
    return _period(match["unit"].lower(), 0 if match["which"].lower() == "this" else 1, today)


def _read_cjk_period(match: re.Match[str], today: date) -> TimeExpression:
    unit, back = _CJK_PERIODS[match.group()]
    return _period(unit, back, today)


def _read_ago(match: re.Match[str], today: date) -> TimeExpression:
    return _ago(_UNITS[match["unit"].lower()], _count(match), today)


def _read_cjk_ago(match: re.Match[str], today: date) -> TimeExpression:
    return _ago(_CJK_UNITS[match["unit"]], _count(match), today)


def _read_last_days(match: re.Match[str], today: date) -> TimeExpression:
    days = {"day": 1, "week": 7, "month": 30, "year": 365}[_UNITS[match["unit"].lower()]] * _count(match)
    return Span(today - timedelta(days=days), today)


def _read_weekday(match: re.Match[str], today: date) -> TimeExpression:
    back = (today.weekday() - _WEEKDAYS[match["weekday"].lower()]) % 7
    day = today - timedelta(days=back or 7)  # «on Monday», said on a Monday, is a week ago
    return Span(day, day)


def _rule(pattern: str, read: _Reader) -> tuple[re.Pattern[str], _Reader]:
    return re.compile(pattern, re.IGNORECASE), read


# Most precise first.
_RULES: Final = (
    _rule(rf"(?<!\d){_YEAR}[-/.](?P<month>[01]?\d)[-/.](?P<day>[0-3]?\d)(?!\d)", _read_day),
    _rule(rf"{_YEAR}\s*年\s*(?P<month>[01]?\d)\s*月\s*(?P<day>[0-3]?\d)\s*[日号]", _read_day),
    _rule(rf"\b{_DAY}\s+(?:of\s+)?{_MONTH},?\s+{_YEAR}\b", _read_day),
    _rule(rf"\b{_MONTH}\s*{_DAY},?\s+{_YEAR}\b", _read_day),
    _rule(rf"{_YEAR}\s*年\s*(?P<month>[01]?\d)\s*月", _read_month),
    _rule(rf"\b{_MONTH},?\s+(?:of\s+)?{_YEAR}\b", _read_month),
    _rule(rf"(?<!\d){_YEAR}-(?P<month>[01]\d)(?![\d-])", _read_month),
    _rule(r"(?<!\d)(?P<month>[01]?\d)\s*月\s*(?P<day>[0-3]?\d)\s*[日号]", _read_day_of_any_year),
    _rule(rf"\b{_DAY}\s+(?:of\s+)?{_MONTH}(?!\w)", _read_day_of_any_year),
    _rule(rf"\b{_MONTH}\s*{_DAY}\b", _read_day_of_any_year),
    _rule(rf"\b(?:{_any([word for word in _DAYS_BACK if word.isascii()])})\b", _read_days_back),
    _rule(_any([word for word in _DAYS_BACK if not word.isascii()]), _read_days_back),
    _rule(rf"\b{_COUNT}\s+(?P<unit>day|week|month|year)s?\s+ago\b", _read_ago),
    _rule(
        rf"(?P<count>\d{{1,3}}|[一两二三四五六七八九十])\s*(?P<unit>{_any(list(_CJK_UNITS))})[之以]?前", _read_cjk_ago
    ),
    _rule(rf"\b(?:last|past|previous)\s+{_COUNT}\s+(?P<unit>day|week|month|year)s?\b", _read_last_days),
    _rule(r"\b(?P<which>this|last|past|previous)\s+(?P<unit>week|month|year)\b", _read_period),
    _rule(_any(list(_CJK_PERIODS)), _read_cjk_period),
    _rule(rf"\b(?:on|last|this|past)\s+(?P<weekday>{_any(list(_WEEKDAYS))})\b", _read_weekday),
    _rule(rf"\b(?:in|during|last|this|since|of|early|late|mid)[\s-]+{_FULL_MONTH}\b", _read_month_of_any_year),
    _rule(r"(?<!\d)(?P<month>1[0-2]|0?[1-9])\s*月(?!\s*\d)", _read_month_of_any_year),
    _rule(rf"\b(?:in|during|of|since|early|late|mid|year)[\s-]+{_YEAR}\b", _read_year),
    _rule(rf"(?<!\d){_YEAR}\s*年", _read_year),
)


def _words(text: str) -> str:
    return " ".join(text.lower().split())


def _month(match: re.Match[str]) -> int:
    text = match["month"].lower()
    return _MONTHS[text] if text in _MONTHS else int(text)


def _count(match: re.Match[str]) -> int:
    text = _words(match["count"])
    return _COUNTS[text] if text in _COUNTS else int(text)


def _month_of(year: int, month: int) -> Span:
    after = date(year + month // 12, month % 12 + 1, 1)
    return Span(date(year, month, 1), after - timedelta(days=1))


def _year_of(year: int) -> Span:
    return Span(date(year, 1, 1), date(year, 12, 31))


def _period(unit: str, back: int, today: date) -> Span:
    if unit == "week":
        monday = today - timedelta(days=today.weekday() + 7 * back)
        return Span(monday, monday + timedelta(days=6))
    if unit == "month":
        return _month_of(*_months_back(today, back))
    return _year_of(today.year - back)


def _ago(unit: str, count: int, today: date) -> Span:
    """«three days ago» is a day; with weeks, months and years the slack grows as the words grow vaguer."""
    if unit == "day":
        day = today - timedelta(days=count)
        return Span(day, day)
    if unit == "week":
        day = today - timedelta(weeks=count)
        return Span(day - timedelta(days=3), day + timedelta(days=3))
    return _period(unit, count, today)


def _months_back(today: date, back: int) -> tuple[int, int]:
    months = today.year * 12 + today.month - 1 - back
    return months // 12, months % 12 + 1


# --- matching -----------------------------------------------------------------------------------------------------


def _seconds(day: date) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()


def _recurs(moments: FloatArray, expression: Recurring) -> BoolArray:
    known = np.isfinite(moments)
    days = np.floor(np.where(known, moments, 0.0) / _DAY_S).astype("datetime64[D]")
    months = days.astype("datetime64[M]")
    result: BoolArray = known & (months.astype(np.int64) % 12 + 1 == expression.month)
    if expression.day is not None:
        result &= (days - months.astype("datetime64[D]")).astype(np.int64) + 1 == expression.day
    return result
