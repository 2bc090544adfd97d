"""The values of the domain as aligned plain text."""

import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from vimbank.domain.models import Explanation, HistoryEntry, Memory, Page, Recall
from vimbank.domain.records import memory_record, plain

__all__ = ["first_line", "render_history", "render_memory", "render_page", "render_recall", "render_record", "table"]

SCORE_DIGITS: Final = 4
_NOTHING: Final[Sequence[Any]] = (None, {}, [])


def table(rows: Iterable[Sequence[str]], *, heading: Sequence[str] = ()) -> str:
    """Rows as columns two blanks apart; the last column runs free. Wide (CJK) characters count as two."""
    lines = [list(row) for row in rows]
    if heading:
        lines.insert(0, list(heading))
    if not lines:
        return ""
    widths = [max(_width(line[column]) for line in lines) for column in range(len(lines[0]) - 1)]
    return "\n".join(
        "  ".join([*(_pad(cell, width) for cell, width in zip(line[:-1], widths, strict=True)), line[-1]]).rstrip()
        for line in lines
    )


def first_line(text: str, width: int) -> str:
    """The first line that is not blank, cut to ``width`` columns with an ellipsis; control characters as blanks."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    shown = "".join(" " if unicodedata.category(character) == "Cc" else character for character in line)
    if shown.strip() != text.strip():
        shown += " …"
    if _width(shown) <= width:
        return shown
    while shown and _width(shown) > width - 1:
        shown = shown[:-1]
    return f"{shown.rstrip()}…"


def render_recall(recall: Recall, *, width: int) -> str:
    """A search's results, best first; with explanations, the parts and factors of each score below it."""
    if not recall.results:
        return "\n".join(["No memory found.", *_degraded(recall)])
    labelled = any(scored.label is not None for scored in recall.results)
    rows = [
        (
            str(rank),
            f"{scored.score:.{SCORE_DIGITS}f}",
            *([scored.label or ""] if labelled else []),
            scored.memory.bank,
            scored.memory.id,
            scored.memory.text,
        )
        for rank, scored in enumerate(recall.results, 1)
    ]
    text_width = max(
        20, width - sum(max(_width(cell) for cell in column) + 2 for column in list(zip(*rows, strict=True))[:-1])
    )
    lines = table(
        [(*row[:-1], first_line(row[-1], text_width)) for row in rows],
        heading=("rank", "score", *(["label"] if labelled else []), "bank", "id", "text"),
    ).splitlines()
    shown = [lines[0]]
    for line, scored in zip(lines[1:], recall.results, strict=True):
        shown.append(line)
        if scored.explanation is not None:
            shown.extend(f"      {detail}" for detail in _explanation(scored.explanation))
    return "\n".join([*shown, *_degraded(recall)])


def _explanation(explanation: Explanation) -> Iterator[str]:
    """Parts, their sum, factors, their product: a sum that can be followed with a finger."""
    rows = [(f"  {name}", f"{value:.6f}") for name, value in explanation.parts.items()]
    rows.append(("= relevance", f"{explanation.relevance:.6f}"))
    rows.extend((f"x {name}", f"{value:.6f}") for name, value in explanation.factors.items())
    rows.append(("= score", f"{explanation.score:.6f}"))
    yield from table(rows).splitlines()
    inputs = ", ".join(f"{name} {value:.6g}" for name, value in explanation.inputs.items())
    yield f"from {explanation.fusion}: {inputs}" if inputs else f"from {explanation.fusion}"


def _degraded(recall: Recall) -> list[str]:
    return [f"Degraded: {', '.join(recall.degraded)}"] if recall.degraded else []


def render_page(page: Page, *, width: int) -> str:
    """A listing, one memory a line, and how to go on where there is more."""
    if not page.items:
        return f"0 of {page.total}"
    rows = [(memory.bank, memory.kind, memory.id, memory.user_id, memory.text) for memory in page.items]
    text_width = max(20, width - sum(max(_width(row[column]) for row in rows) + 2 for column in range(4)))
    shown = table(
        [(*row[:-1], first_line(row[-1], text_width)) for row in rows], heading=("bank", "kind", "id", "user", "text")
    )
    more = f"; more with --cursor {page.next_cursor}" if page.next_cursor else ""
    return f"{shown}\n{len(page.items)} of {page.total}{more}"


def render_memory(memory: Memory) -> str:
    """One memory: its fields, then the whole text."""
    record = plain(memory_record(memory))
    text = record.pop("text")
    return f"{render_record(record)}\n\n{text}"


def render_record(record: Mapping[str, Any]) -> str:
    """A flat table of a record's fields, those without a value left out; what is nested as compact JSON."""
    given = {name: _without_nothing(value) for name, value in record.items()}
    return table((name, _cell(value)) for name, value in given.items() if value not in _NOTHING)


def render_history(entries: Sequence[HistoryEntry], *, width: int) -> str:
    """All changes of one memory, oldest first."""
    rows = []
    for entry in entries:
        record = plain(entry)
        text = " -> ".join(
            "-" if each is None else first_line(each, width // 3) for each in (entry.old_text, entry.new_text)
        )
        rows.append((record["at"], record["event"], str(entry.revision), entry.actor, text))
    return table(rows, heading=("at", "event", "revision", "actor", "text"))


def _without_nothing(value: Any) -> Any:
    """A mapping without the entries that have no value; anything else as it is."""
    return {key: item for key, item in value.items() if item is not None} if isinstance(value, Mapping) else value


def _cell(value: Any) -> str:
    if isinstance(value, Mapping | list):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _pad(text: str, width: int) -> str:
    return text + " " * (width - _width(text))
