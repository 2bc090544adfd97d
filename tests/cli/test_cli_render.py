"""Aligned text: columns, cut lines, wide characters."""

import pytest

from vimbank.cli.render import first_line, render_record, table


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("short", 10, "short"),
        ("exactly ten", 11, "exactly ten"),
        ("one more than ten", 10, "one more…"),
        ("\n  first\nsecond", 20, "first …"),
        ("我喜欢喝咖啡", 12, "我喜欢喝咖啡"),
        ("我喜欢喝咖啡", 11, "我喜欢喝咖…"),
        ("a\x1b[31mred", 20, "a [31mred …"),
        ("", 10, ""),
    ],
)
def test_the_first_line_is_cut_to_columns(text: str, width: int, shown: str) -> None:
    assert first_line(text, width) == shown


def test_columns_align_also_under_wide_characters() -> None:
    assert table([("a", "b"), ("咖啡", "c")], heading=("x", "y")) == "x     y\na     b\n咖啡  c"
    assert table([]) == ""


def test_a_record_leaves_out_what_has_no_value() -> None:
    shown = render_record({"id": "m1", "title": None, "pinned": False, "source": {"parent_id": None}, "score": 0.5})
    assert shown == "id      m1\npinned  no\nscore   0.5"
