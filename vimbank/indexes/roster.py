"""The roster of a partition: which memory stands in which row, and columns over rows for filters and scoring."""

import hashlib
import json
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from threading import Lock
from typing import Any, Final

import numpy as np
import orjson
from numpy.typing import NDArray

from vimbank.domain.filters import (
    ATTRIBUTES,
    METADATA_PREFIX,
    And,
    Condition,
    Filter,
    Not,
    Or,
    metadata_value,
    predicate,
)
from vimbank.domain.models import RUN_KIND, BoolArray, FloatArray, IntArray, Memory
from vimbank.domain.summaries import derived_of
from vimbank.domain.times import parse_time, to_seconds
from vimbank.domain.titles import normalise_title
from vimbank.errors import IndexCorrupt, InvalidInput
from vimbank.indexes.columns import CodedColumn, grown
from vimbank.ports import Arrays

__all__ = ["MAX_METADATA_COLUMNS", "Roster", "content_number"]

MAX_METADATA_COLUMNS: Final = 64
"""Metadata keys with a column of their own, the least used goes first: callers choose keys (case 56)."""

_FORMAT: Final = 3
_NUMBERS: Final = (
    "number",
    "revision",
    "created_at",
    "updated_at",
    "event_at",  # or the creation, where the memory has none
    "own_event_at",
    "last_recalled_at",
    "valid_from",
    "valid_to",
    "expires_at",
    "strength",
    "stability_days",  # FSRS's
    "importance",
    "information",
    "recall_count",
    "position",
    "pinned",
    "derived",  # 1: a summary or portrait made of other memories
    "group",
    "content",  # of the content hash: equal where text and all else that is indexed are equal
)
_TEXTS: Final = (
    "kind",
    "session_id",
    "agent_id",
    "speaker",
    "title",
    "parent_id",
    "state",
    "event_id",
    "sample",
    "superseded_by",  # of what is indexed none has one, but a filter may ask
)
_AT: Final = {name: index for index, name in enumerate(_NUMBERS)}
_DECODED_AT_ONCE: Final = 512
_PLACES_A_GROUP: Final = 2**32  # a place is group * this + position
_SUFFIX: Final = re.compile(r"\s*\([^()]*\)\s*$")


class Roster:
    """Rows, their ids and their columns. Readers may run side by side; the owner keeps writers alone."""

    def __init__(self) -> None:
        self._clear()
        self._building = Lock()  # lazy parts are built by readers

    def _clear(self) -> None:
        self._ids: list[str] = []
        self._rows: dict[str, int] = {}
        self._numbers: FloatArray = np.empty((len(_NUMBERS), 0))
        self._texts = {name: CodedColumn() for name in _TEXTS}
        self._metadata: list[bytes] = []  # JSON: a fifth of the memory of dicts
        self._groups: dict[str, int] = {}
        self._forget_lazy()

    def _forget_lazy(self) -> None:
        self._metadata_columns: OrderedDict[str, CodedColumn] = OrderedDict()
        self._places: dict[int, int] | None = None
        self._places_shared = False
        self._beside: IntArray | None = None
        self._titles: dict[str, list[int]] | None = None

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def nbytes(self) -> int:
        """About the memory held, bytes."""
        columns = [*self._texts.values(), *self._metadata_columns.values()]
        return (
            self._numbers.nbytes
            + sum(column.nbytes for column in columns)
            + sum(map(len, self._metadata))
            + 300 * len(self._ids)
        )

    # -- rows and ids --

    def ids(self, rows: IntArray) -> list[str]:
        """The ids of these rows, in order."""
        ids = self._ids
        return [ids[row] for row in rows.tolist()]

    def rows(self, ids: Sequence[str]) -> IntArray:
        """Rows of these ids, -1 where unknown."""
        return np.fromiter((self._rows.get(one, -1) for one in ids), dtype=np.int64, count=len(ids))

    def row(self, id: str) -> int | None:
        return self._rows.get(id)

    def all_ids(self) -> Sequence[str]:
        """The ids by row; not copied."""
        return self._ids

    # -- changes --

    def append(self, memories: Sequence[Memory]) -> None:
        """Add rows at the end. Their ids must be new."""
        start = len(self._ids)
        self._numbers = grown(self._numbers, start + len(memories))
        for row, memory in enumerate(memories, start):
            self._numbers[:, row] = self._figures(memory)
            self._rows[memory.id] = row
        self._ids.extend(memory.id for memory in memories)
        for name, column in self._texts.items():
            column.extend(_text(memory, name) for memory in memories)
        self._metadata.extend(_encode(memory.metadata) for memory in memories)
        for key, column in self._metadata_columns.items():
            column.extend(_metadata_cells(self._metadata[start:], key))
        for row in range(start, len(self._ids)):
            self._enter(row)

    def replace(self, row: int, memory: Memory) -> None:
        """Give a row another state of its memory (the id stays)."""
        self._leave(row)
        self._numbers[:, row] = self._figures(memory)
        for name, column in self._texts.items():
            column.replace(row, _text(memory, name))
        self._metadata[row] = _encode(memory.metadata)
        for key, column in self._metadata_columns.items():
            column.replace(row, next(_metadata_cells([self._metadata[row]], key)))
        self._enter(row)

    def remove(self, row: int) -> None:
        """Move the last row into ``row`` and drop the last (swap-with-last)."""
        last = len(self._ids) - 1
        self._leave(row)
        if row != last:
            self._leave(last)
        del self._rows[self._ids[row]]
        self._ids[row], self._metadata[row] = self._ids[last], self._metadata[last]
        self._ids.pop()
        self._metadata.pop()
        self._numbers[:, row] = self._numbers[:, last]
        for column in (*self._texts.values(), *self._metadata_columns.values()):
            column.remove(row)
        if row != last:
            self._rows[self._ids[row]] = row
            self._enter(row)

    def _figures(self, memory: Memory) -> list[float]:
        source = memory.source
        return [
            memory.number,
            memory.revision,
            to_seconds(memory.created_at),
            to_seconds(memory.updated_at),
            to_seconds(memory.event_at or memory.created_at),
            _seconds(memory.event_at),
            _seconds(memory.last_recalled_at),
            _seconds(memory.valid_from),
            _seconds(memory.valid_to),
            _seconds(memory.expires_at),
            memory.strength,
            np.nan if memory.stability_days is None else memory.stability_days,
            np.nan if memory.importance is None else memory.importance,
            np.nan if memory.information is None else memory.information,
            memory.recall_count,
            np.nan if source.position is None else source.position,
            memory.pinned,
            derived_of(memory) is not None,
            self._group(memory),
            content_number(memory),
        ]

    def _group(self, memory: Memory) -> int:
        """The group that ``position`` counts in: a parent's parts, else a session's turns; -1: none.

        A task run stands in one group with its steps, without a position among them.
        """
        parent = memory.id if memory.kind == RUN_KIND else memory.source.parent_id
        if parent is not None:
            return self._groups.setdefault(f"parent {parent}", len(self._groups))
        if memory.session_id is not None:
            return self._groups.setdefault(f"session {memory.session_id}", len(self._groups))
        return -1

    # -- columns and filters --

    def column(self, name: str) -> FloatArray:
        """(n,) float64 read-only view; NaN (``group``: -1) where unknown. Raises KeyError for an unknown name."""
        view = self._numbers[_AT[name], : len(self._ids)]
        view.flags.writeable = False
        return view

    def select(self, filter: Filter) -> BoolArray:
        """(n,) mask of the rows whose memory matches, exactly as ``domain.filters.matches`` says.

        Raises:  InvalidInput: a condition names neither an attribute nor ``metadata.<key>``.
        """
        if isinstance(filter, And):
            mask = np.ones(len(self), dtype=np.bool_)
            for part in filter.parts:
                mask &= self.select(part)
            return mask
        if isinstance(filter, Or):
            mask = np.zeros(len(self), dtype=np.bool_)
            for part in filter.parts:
                mask |= self.select(part)
            return mask
        if isinstance(filter, Not):
            return ~self.select(filter.part)
        return self._select(filter)

    def _select(self, condition: Condition) -> BoolArray:
        field = condition.field
        if field.startswith(METADATA_PREFIX):
            return self._metadata_column(field.removeprefix(METADATA_PREFIX)).select(condition)
        if field in self._texts:
            return self._texts[field].select(condition)
        if field == "id":
            return self._select_id(condition)
        if field == "pinned":
            test = predicate(condition)
            return np.where(self.column("pinned") > 0, test(True), test(False))
        if field not in ATTRIBUTES:
            raise InvalidInput.of(field, "is neither an attribute of a memory nor metadata.<key>")
        return _select_number(self.column("own_event_at" if field == "event_at" else field), condition)

    def _select_id(self, condition: Condition) -> BoolArray:
        if condition.op in ("eq", "in"):
            wanted = condition.value if condition.op == "in" else (condition.value,)
            mask = np.zeros(len(self), dtype=np.bool_)
            mask[[row for one in wanted if isinstance(one, str) and (row := self._rows.get(one)) is not None]] = True
            return mask
        return np.fromiter(map(predicate(condition), self._ids), dtype=np.bool_, count=len(self))

    def _metadata_column(self, key: str) -> CodedColumn:
        with self._building:
            column = self._metadata_columns.get(key)
            if column is None:
                column = self._metadata_columns[key] = CodedColumn(_metadata_cells(self._metadata, key))
                if len(self._metadata_columns) > MAX_METADATA_COLUMNS:
                    self._metadata_columns.popitem(last=False)
            self._metadata_columns.move_to_end(key)
            return column

    # -- neighbours and titles: built when first asked for, then kept up --

    def neighbours(self, rows: IntArray, radius: int) -> IntArray:
        """(len(rows), 2*radius+1): rows at position-radius … position+radius in the same group; -1 where none.

        Of rows that share a place the one with the smallest number stands there, but each is its own middle.
        """
        if radius == 1:  # every search of a dialog asks this of a few hundred rows
            beside = self._beside_rows()[:, rows]
            placed = _has_place(self.column("group")[rows], self.column("position")[rows])
            return np.stack([beside[0], np.where(placed, rows, -1), beside[1]], axis=1)
        places = self._places_by_row()
        group, position = self.column("group")[rows], self.column("position")[rows]
        placed = _has_place(group, position)
        start = np.where(placed, position, 0).astype(np.int64)
        wanted = start[:, None] + np.arange(-radius, radius + 1)
        keys = np.where(placed, group, 0).astype(np.int64)[:, None] * _PLACES_A_GROUP + wanted
        keys[~placed[:, None] | (wanted < 0) | (wanted >= _PLACES_A_GROUP)] = -1
        found = np.fromiter((places.get(key, -1) for key in keys.ravel().tolist()), np.int64, keys.size)
        around = found.reshape(keys.shape)
        around[:, radius] = np.where(placed, rows, -1)
        return around

    def titles(self) -> Mapping[str, Sequence[int]]:
        """Normalised title (``domain.titles``) -> rows that bear it, in no order.

        A title with a suffix in parentheses, ``Heat (film)``, is also there without it. Valid until the next change.
        """
        with self._building:
            if self._titles is None:
                titles: dict[str, list[int]] = {}
                values = self._texts["title"].values
                for row, code in enumerate(self._texts["title"].codes.tolist()):
                    for key in _normal_titles(str(values[code])) if code >= 0 else ():
                        titles.setdefault(key, []).append(row)
                self._titles = titles
            return self._titles

    def _places_by_row(self) -> dict[int, int]:
        with self._building:
            if self._places is None:
                group, position = self.column("group"), self.column("position")
                rows = np.flatnonzero(_has_place(group, position))
                rows = rows[np.argsort(-self.column("number")[rows], kind="stable")]  # the lowest last: it stays
                keys = group[rows].astype(np.int64) * _PLACES_A_GROUP + position[rows].astype(np.int64)
                self._places = dict(zip(keys.tolist(), rows.tolist(), strict=True))
                self._places_shared = len(self._places) < len(rows)
            return self._places

    def _beside_rows(self) -> IntArray:
        """(2, capacity): the row just before and just after each row in its group; -1 where none."""
        self._places_by_row()
        with self._building:
            if self._beside is None:
                self._beside = self._all_beside()
            return self._beside

    def _all_beside(self) -> IntArray:
        beside = np.full((2, self._numbers.shape[1]), -1, dtype=np.int64)
        group, position = self.column("group"), self.column("position")
        rows = np.flatnonzero(_has_place(group, position))
        if self._places_shared:
            for row in rows.tolist():
                beside[:, row] = self._look_beside(row)
            return beside
        keys = group[rows].astype(np.int64) * _PLACES_A_GROUP + position[rows].astype(np.int64)
        order = np.argsort(keys, kind="stable")
        rows, keys = rows[order], keys[order]
        next_to = (np.diff(keys) == 1) & (position[rows[1:]] > 0)
        beside[0, rows[1:][next_to]] = rows[:-1][next_to]
        beside[1, rows[:-1][next_to]] = rows[1:][next_to]
        return beside

    def _look_beside(self, row: int) -> tuple[int, int]:
        place, places = self._place(row), self._places
        if place is None or places is None:
            return -1, -1
        first = place % _PLACES_A_GROUP == 0
        last = place % _PLACES_A_GROUP == _PLACES_A_GROUP - 1
        return (-1 if first else places.get(place - 1, -1)), (-1 if last else places.get(place + 1, -1))

    def _enter(self, row: int) -> None:
        """Note the row in those lazy parts that are built."""
        self._enter_place(row)
        self._enter_title(row)

    def _leave(self, row: int) -> None:
        self._leave_place(row)
        self._leave_title(row)

    def _place(self, row: int) -> int | None:
        group, position = self._numbers[_AT["group"], row], self._numbers[_AT["position"], row]
        return int(group) * _PLACES_A_GROUP + int(position) if _has_place(group, position) else None

    def _enter_place(self, row: int) -> None:
        if self._places is None:
            return
        place = self._place(row)
        if place is not None:
            other = self._places.get(place)
            if other is not None and other != row:
                self._places_shared, self._beside = True, None  # whose neighbour is whose is found anew
                if self._numbers[_AT["number"], other] < self._numbers[_AT["number"], row]:
                    return
            self._places[place] = row
        self._join(row)

    def _join(self, row: int) -> None:
        """Tell a row its neighbours, and them the row."""
        if self._beside is None:
            return
        if self._places_shared:
            self._beside = None
            return
        if row >= self._beside.shape[1]:
            self._beside = grown(self._beside, row + 1)
        before, after = self._beside[:, row] = self._look_beside(row)
        if before >= 0:
            self._beside[1, before] = row
        if after >= 0:
            self._beside[0, after] = row

    def _leave_place(self, row: int) -> None:
        if self._places is None or (place := self._place(row)) is None:
            return
        if self._places_shared:
            self._places = self._beside = None  # who moves up is not known here
        elif self._places.get(place) == row:
            del self._places[place]
            self._part(row)

    def _part(self, row: int) -> None:
        if self._beside is None:
            return
        before, after = self._beside[:, row].tolist()
        if before >= 0:
            self._beside[1, before] = -1
        if after >= 0:
            self._beside[0, after] = -1

    def _enter_title(self, row: int) -> None:
        if self._titles is None:
            return
        for key in self._title_keys(row):
            self._titles.setdefault(key, []).append(row)

    def _leave_title(self, row: int) -> None:
        if self._titles is None:
            return
        for key in self._title_keys(row):
            self._titles[key].remove(row)
            if not self._titles[key]:
                del self._titles[key]

    def _title_keys(self, row: int) -> Iterable[str]:
        title = self._texts["title"].value(row)
        return () if title is None else _normal_titles(str(title))

    # -- saved form --

    def dump(self) -> Arrays:
        """Arrays, and lists as JSON bytes; what is built lazily is left out."""
        return {
            "format": _FORMAT,
            "columns": [*_NUMBERS, *_TEXTS],
            "ids": _bytes(_encode(self._ids)),
            "numbers": self._numbers[:, : len(self)],
            "codes": np.stack([column.codes for column in self._texts.values()]),
            "values": _bytes(_encode([list(column.values) for column in self._texts.values()])),
            "groups": _bytes(_encode(list(self._groups))),
            "metadata": _bytes(b"\n".join(self._metadata)),
        }

    def restore(self, arrays: Arrays) -> None:
        """Take the state of a ``dump``, in place of what is held. Raises IndexCorrupt where it does not fit."""
        if arrays.get("format") != _FORMAT or arrays.get("columns") != [*_NUMBERS, *_TEXTS]:
            raise IndexCorrupt("roster", "saved with other columns")
        ids = _decode(arrays["ids"].tobytes())
        metadata = arrays["metadata"].tobytes().split(b"\n") if ids else []
        values = _decode(arrays["values"].tobytes())
        counts = {len(ids), len(metadata), arrays["numbers"].shape[1], arrays["codes"].shape[1]}
        if len(counts) > 1 or len(values) != len(_TEXTS):
            raise IndexCorrupt("roster", "saved arrays do not fit together")
        self._clear()
        self._ids, self._metadata = ids, metadata
        self._rows = {one: row for row, one in enumerate(ids)}
        self._numbers = np.array(arrays["numbers"], dtype=np.float64)
        for column, codes, known in zip(self._texts.values(), arrays["codes"], values, strict=True):
            column.restore(codes, known)
        self._groups = {name: group for group, name in enumerate(_decode(arrays["groups"].tobytes()))}

    def copy(self) -> "Roster":
        """The same, apart; what is built lazily is left out."""
        copied = Roster()
        copied.restore(self.dump() | {"numbers": self._numbers[:, : len(self)].copy()})
        copied._rows = dict(self._rows)
        return copied


def content_number(memory: Memory) -> float:
    """48 bits of the content hash; NaN, which equals nothing, where there is none."""
    if not memory.content_hash:
        return np.nan
    return float(int.from_bytes(hashlib.blake2b(memory.content_hash.encode(), digest_size=6).digest()))


def _select_number(column: FloatArray, condition: Condition) -> BoolArray:
    """The condition on a column of numbers or epoch seconds, where NaN is no value."""
    op = condition.op
    if op == "exists":
        missing = np.isnan(column)
        return ~missing if condition.value else missing
    if op == "contains":
        return np.zeros(len(column), dtype=np.bool_)
    several = isinstance(condition.value, list | tuple)
    operands = _figures_of(condition.field, condition.value if several else (condition.value,))
    if op in ("eq", "in", "ne", "nin"):
        if several and op in ("eq", "ne"):  # no number equals a whole list
            operands = []
        equal = np.isin(column, operands) if len(operands) > 1 else _equal(column, operands)
        return ~equal if op in ("ne", "nin") else equal
    if several or not operands:
        return np.zeros(len(column), dtype=np.bool_)
    compare = {"gt": np.greater, "gte": np.greater_equal, "lt": np.less, "lte": np.less_equal}[op]
    mask: BoolArray = compare(column, operands[0])
    return mask


def _equal(column: FloatArray, operands: Sequence[float]) -> BoolArray:
    return column == operands[0] if operands else np.zeros(len(column), dtype=np.bool_)


def _figures_of(field: str, operands: Iterable[object]) -> list[float]:
    """The operands that a number can equal; times in epoch seconds."""
    if ATTRIBUTES[field] == "time":
        return [to_seconds(parse_time(operand, field)) for operand in operands]
    return [
        float(operand) for operand in operands if isinstance(operand, int | float) and not isinstance(operand, bool)
    ]


def _seconds(moment: datetime | None) -> float:
    return np.nan if moment is None else to_seconds(moment)


def _text(memory: Memory, name: str) -> str | None:
    value = getattr(memory.source if name in ("parent_id", "event_id") else memory, name)
    return None if value is None else str(value)


@lru_cache(maxsize=4_096)
def _normal_titles(title: str) -> tuple[str, ...]:
    """The title and, where it ends in parentheses, the title without them; cached as a document's parts share it."""
    keys = [normalise_title(title)]
    if title.rstrip().endswith(")"):
        keys.append(normalise_title(_SUFFIX.sub("", title)))
    return tuple(dict.fromkeys(key for key in keys if key))


def _has_place(group: Any, position: Any) -> Any:
    """Whether a row has neighbours; numbers or arrays. NaN compares false."""
    return (group >= 0) & (position >= 0) & (position < _PLACES_A_GROUP)


def _metadata_cells(rows: Sequence[bytes], key: str) -> Iterator[object]:
    """The value of a metadata key in each row, None where it has none."""
    # Most rows lack most keys: a row is decoded only where the key, or the object a dotted key starts in, may be.
    whole, first = _encode(key), _encode(key.partition(".")[0])
    for start in range(0, len(rows), _DECODED_AT_ONCE):
        batch = rows[start : start + _DECODED_AT_ONCE]
        bearers = [at for at, raw in enumerate(batch) if whole in raw or first in raw]
        cells: list[object] = [None] * len(batch)
        for at, metadata in zip(bearers, _decode_all([batch[at] for at in bearers]), strict=True):
            cells[at] = metadata_value(metadata, key)
        yield from cells


def _encode(value: object) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # integers beyond 64 bits, lone surrogates: what JSON allows and orjson does not write
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict)
        return text.encode("utf-8", "surrogatepass")


def _decode(raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return json.loads(raw.decode("utf-8", "surrogatepass"))


def _decode_all(rows: Sequence[bytes]) -> list[Any]:
    """As ``_decode`` row by row, twice as fast."""
    try:
        return list(orjson.loads(b"[" + b",".join(rows) + b"]"))
    except orjson.JSONDecodeError:
        return [_decode(raw) for raw in rows]


def _bytes(raw: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(raw, dtype=np.uint8)
