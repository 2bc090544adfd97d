"""Instants: every accepted form, and what is refused."""

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vimbank.domain.times import format_time, from_micros, parse_time, parse_time_text, to_micros, to_seconds
from vimbank.errors import InvalidInput

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)  # 1767225600 seconds after 1970


@pytest.mark.parametrize(
    ("value", "instant"),
    [
        ("2026-01-01T00:00:00", NEW_YEAR),
        ("2026-01-01T00:00:00Z", NEW_YEAR),
        ("2026-01-01T00:00:00+09:00", NEW_YEAR - timedelta(hours=9)),
        (1767225600, NEW_YEAR),
        (1767225600000, NEW_YEAR),
        (1767225600.0, NEW_YEAR),
        ("2026-01-01", NEW_YEAR),
        (" 2026-01-01 00:00 ", NEW_YEAR),
        ("2026-01-01t00:00:00z", NEW_YEAR),
        ("2026-01-01T00:00:00.25Z", NEW_YEAR + timedelta(microseconds=250_000)),
        ("2026-01-01T00:00:00,250+0000", NEW_YEAR + timedelta(microseconds=250_000)),
        ("2026-01-01T00:00:00.123456789", NEW_YEAR + timedelta(microseconds=123_456)),
        ("2025-12-31T19:00-05", NEW_YEAR),
        (datetime(2026, 1, 1), NEW_YEAR),
        (datetime(2026, 1, 1, 9, tzinfo=timezone(timedelta(hours=9))), NEW_YEAR),
        (-1, datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)),
        (0.5, datetime(1970, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC)),
        (99_999_999_999, datetime(5138, 11, 16, 9, 46, 39, tzinfo=UTC)),  # the last that is seconds
        (100_000_000_000, datetime(1973, 3, 3, 9, 46, 40, tzinfo=UTC)),  # the first that is milliseconds
    ],
)
def test_every_form_of_an_instant_is_read_as_utc_case_103(value: object, instant: datetime) -> None:
    read = parse_time(value, "created_at")
    assert read == instant
    assert read.utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    "value",
    [
        True,
        None,
        [],
        "",
        "yesterday",
        "20260101",
        "2026-W01-1",
        "2026-13-01",
        "2026-02-30",
        "2026-01-01T25:00",
        "1767225600",
        "2026-01-01T00:00:00 UTC",
        "٢٠٢٦-01-01",
        float("nan"),
        float("inf"),
        1e300,
        10**30,
        -(10**14),
        "0001-01-01T00:00:00+09:00",
        "9999-12-31T23:59:59-09:00",
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=9))),
    ],
)
def test_what_is_no_instant_is_refused_by_name_case_103(value: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_time(value, "filter.created_at.gte")
    assert [error.field for error in caught.value.errors] == ["filter.created_at.gte"]


def test_an_instant_does_not_depend_on_the_machines_zone_case_105(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")  # 14 hours before UTC
    time.tzset()
    try:
        assert parse_time("2026-03-01T00:00:00", "expires_at") == datetime(2026, 3, 1, tzinfo=UTC)
        assert parse_time(datetime(2026, 3, 1), "expires_at") == datetime(2026, 3, 1, tzinfo=UTC)
        assert format_time(datetime(2026, 3, 1, tzinfo=UTC)) == "2026-03-01T00:00:00Z"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_times_are_written_in_utc() -> None:
    assert format_time(NEW_YEAR.astimezone(timezone(timedelta(hours=-5)))) == "2026-01-01T00:00:00Z"
    assert format_time(NEW_YEAR + timedelta(microseconds=1)) == "2026-01-01T00:00:00.000001Z"


def test_micros_and_seconds_of_a_known_instant() -> None:
    moment = NEW_YEAR + timedelta(microseconds=250_000)
    assert to_micros(moment) == 1_767_225_600_250_000
    assert to_seconds(moment) == 1_767_225_600.25


@given(st.datetimes(timezones=st.just(UTC)))
def test_micros_and_text_lose_nothing(moment: datetime) -> None:
    assert from_micros(to_micros(moment)) == moment
    assert parse_time(format_time(moment), "at") == moment


@given(st.integers(-(2**32) * 10**6, 2**32 * 10**6 - 1), st.integers(-(2**32) * 10**6, 2**32 * 10**6 - 1))
def test_seconds_keep_the_order_to_the_microsecond_until_2106(one: int, other: int) -> None:
    assert (to_seconds(from_micros(one)) < to_seconds(from_micros(other))) == (one < other)


@pytest.mark.parametrize(
    "text", ["1767225600", "1767225600000", "1767225600.0", "2026-01-01", "2026-01-01T09:00+09:00"]
)
def test_where_all_is_text_a_number_is_an_epoch(text: str) -> None:
    assert parse_time_text(text, "created_at") == NEW_YEAR


@pytest.mark.parametrize("text", ["", "nan", "inf", "1e300", "soon"])
def test_text_that_is_no_time_names_its_field(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_time_text(text, "created_at")
    assert [error.field for error in caught.value.errors] == ["created_at"]
