"""What callers send is cleaned or refused by name (cases 80, 81, 114)."""

import json
from typing import Any

import pytest

from vimbank.domain.sanitize import clean_id, clean_metadata, clean_text
from vimbank.errors import InvalidInput


def text_of(value: object, **limits: Any) -> str:
    return clean_text(value, "text", **{"max_chars": 100, **limits})


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("a\ud83d", "a\ufffd"),
        ("a\u0000b", "ab"),
        ("\ud83d\ude00", "😀"),  # the halves of one character
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ta\r\nb ", "\ta\r\nb "),
        ("a\x1b[0mb\x7f", "a[0mb"),
        ("cafe\u0301", "cafe\u0301"),  # the normal form is the caller's
        ("👩‍👧", "👩‍👧"),
    ],
)
def test_case_114_text_is_cleaned(given: str, kept: str) -> None:
    assert text_of(given) == kept


@pytest.mark.parametrize("blank", ["", "   ", "\n", "\u200b\ufeff", "\u2060 \u00ad", "\x00", "\u3000", "\u3164"])
def test_cases_80_81_blank_text_is_refused(blank: str) -> None:
    with pytest.raises(InvalidInput, match=r"^text: must not be blank$"):
        text_of(blank)


def test_blank_text_may_be_allowed() -> None:
    assert text_of(" \x00", allow_blank=True) == " "


def test_length_counts_after_cleaning() -> None:
    assert text_of("\x00" + "a" * 100) == "a" * 100
    with pytest.raises(InvalidInput, match="text: has 101 characters, at most 100"):
        text_of("a" * 101)


@pytest.mark.parametrize("value", [None, 1, b"a", ["a"]])
def test_only_text_is_text(value: object) -> None:
    with pytest.raises(InvalidInput, match=r"^text: must be text, not "):
        text_of(value)
    with pytest.raises(InvalidInput, match=r"^user_id: must be text, not "):
        clean_id(value, "user_id")


@pytest.mark.parametrize("name", ["a", "用户", "team/ann", "a b", "ann@mail.org", "history", "a..b", "%2e", "x" * 256])
def test_ids_are_kept(name: str) -> None:
    assert clean_id(name, "id") == name


@pytest.mark.parametrize(
    "name",
    ["", " ", "\u200b", "x" * 257, "a\nb", "a\x00", "\x85", "a\ud83d", ".", "..", "a/../b", "./a", "a/history"],
)
def test_ids_that_no_path_can_hold_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"^id: "):
        clean_id(name, "id")


def metadata_of(value: object, max_bytes: int = 1_000) -> dict[str, Any]:
    return clean_metadata(value, "metadata", max_bytes)


def test_metadata_is_copied_as_json() -> None:
    given = {"a": [1, 2.5, None, True, {"b": ("x\x00", "")}], "k\ud83d": -(2**63)}
    kept = metadata_of(given)
    assert kept == {"a": [1, 2.5, None, True, {"b": ["x", ""]}], "k\ufffd": -(2**63)}
    assert json.loads(json.dumps(kept)) == kept
    given["a"] = 0
    assert kept["a"] != 0


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "metadata: must be an object, not list"),
        ({1: 2}, "metadata: has a key that is no text: 1"),
        ({" ": 2}, r"metadata \(a key\): must not be blank"),
        ({"a": {"b": float("nan")}}, r"metadata\.a\.b: must be a finite number"),
        ({"a": float("inf")}, r"metadata\.a: must be a finite number"),
        ({"a": [1, object()]}, r"metadata\.a\.1: must be a JSON value, not object"),
        ({"a": b"x"}, r"metadata\.a: must be a JSON value, not bytes"),
        ({"a": 2**63}, r"metadata\.a: must fit in 64 bits"),
        ({"a": -(2**63) - 1}, r"metadata\.a: must fit in 64 bits"),
        ({"a": 1, "a\x00": 2}, r"metadata\.a: is given twice"),
    ],
)
def test_bad_metadata_is_refused_by_field(value: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{message}$"):
        metadata_of(value)


def nested(levels: int) -> dict[str, Any]:
    return {"a": nested(levels - 1)} if levels > 1 else {"a": 1}


def test_metadata_may_be_eight_levels_deep() -> None:
    assert metadata_of(nested(8)) == nested(8)
    with pytest.raises(InvalidInput, match=r"^metadata(\.a){8}: is nested more than 8 levels deep$"):
        metadata_of(nested(9))


def test_metadata_is_measured_as_utf8_json() -> None:
    assert metadata_of({"a": "é"}, max_bytes=10) == {"a": "é"}  # {"a":"é"}: 8 ASCII characters and 2 bytes
    with pytest.raises(InvalidInput, match=r"^metadata: has 10 bytes as JSON, at most 9 are allowed$"):
        metadata_of({"a": "é"}, max_bytes=9)
