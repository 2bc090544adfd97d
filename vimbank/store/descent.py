"""What tells of erased memories without being one of them: summaries that were made of them, names in what stays.

A summary is told by its metadata (``domain.summaries``), its earlier versions by the history: one that was refreshed
after a source had been deleted tells of it no longer, but its history does.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from sqlalchemy import or_, select, update

from vimbank.domain.models import Scope
from vimbank.domain.summaries import DERIVED_KINDS
from vimbank.store.rows import dump_json
from vimbank.store.sql_rows import SqlRows
from vimbank.store.tables import history, memories

__all__ = ["Told", "forget_names", "made_of", "named_sources", "told"]

_NAMING: Final = ("superseded_by", "ended")


@dataclass(slots=True)
class Told:
    """What rows and history of a user say: ``ids`` of memories that were once in a scope; ``sources``: for each
    summary or portrait, deleted ones too, the ids of all that any version of it was made of."""

    ids: set[str] = field(default_factory=set)
    sources: dict[str, set[str]] = field(default_factory=dict)


def told(rows: SqlRows, scope: Scope) -> Told:
    """Read all versions of a user's memories."""
    found = Told()
    for memory_id, columns in _versions(rows, scope):
        if _was_in(scope, columns):
            found.ids.add(memory_id)
        named = named_sources(columns.get("kind"), columns.get("metadata"))
        if named:
            found.sources.setdefault(memory_id, set()).update(named)
    return found


def made_of(ids: Iterable[str], sources: Mapping[str, Iterable[str]]) -> set[str]:
    """The summaries that were made of any of ``ids``, those made of such summaries, and so on; without ``ids``.

    Args:    sources: of each summary, by its id.
    """
    made_from: dict[str, set[str]] = {}
    for summary, named in sources.items():
        for source in named:
            made_from.setdefault(source, set()).add(summary)
    known = set(ids)
    waiting = list(known)
    found: set[str] = set()
    while waiting:
        for summary in made_from.get(waiting.pop(), set()) - known - found:
            found.add(summary)
            waiting.append(summary)
    return found


def named_sources(kind: object, metadata: object) -> list[str]:
    """The ids that the metadata of a summary or portrait names; [] for any other. ``metadata``: its JSON text."""
    if kind not in DERIVED_KINDS or not isinstance(metadata, str):
        return []
    named = orjson.loads(metadata).get("sources")
    return [each for each in named if isinstance(each, str)] if isinstance(named, list) else []


def forget_names(rows: SqlRows, scope: Scope, ids: Iterable[str]) -> None:
    """Nothing of the user that stays names one of ``ids`` any more, neither now nor in its history.

    What was superseded or ended by one of them stays so, but no longer says by which.
    """
    gone = frozenset(ids)
    m, h = memories.c, history.c
    mine = (
        m.tenant == scope.tenant,
        m.user_id == scope.user_id,
        or_(m.superseded_by.is_not(None), m.ended.is_not(None)),
    )
    for number, successor, ended in rows.all(select(m.number, m.superseded_by, m.ended).where(*mine)):
        now = {"superseded_by": _unnamed(successor, gone), "ended": _json_without(ended, gone)}
        if now != {"superseded_by": successor, "ended": ended}:
            rows.all(update(memories).values(**now).where(m.number == number), fetch=False)
    # Of a change: both values; of columns before it: null where there was none.
    naming = or_(
        *(h.changes.contains(f'"{name}":') for name in _NAMING), *(h.before.contains(f'"{name}":"') for name in _NAMING)
    )
    past = select(h.revision, h.changes, h.before).where(h.tenant == scope.tenant, h.user_id == scope.user_id, naming)
    for revision, changes, before in rows.all(past):
        then = {"changes": _json_without(changes, gone), "before": _json_without(before, gone)}
        if then != {"changes": changes, "before": before}:
            rows.all(update(history).values(**then).where(h.revision == revision), fetch=False)


def _versions(rows: SqlRows, scope: Scope) -> Iterator[tuple[str, Mapping[str, Any]]]:
    m, h = memories.c, history.c
    summaries = select(m.id, m.kind, m.metadata).where(
        m.tenant == scope.tenant, m.user_id == scope.user_id, m.kind.in_(sorted(DERIVED_KINDS))
    )
    for memory_id, kind, metadata in rows.all(summaries):
        yield memory_id, {"kind": kind, "metadata": metadata}
    past = select(h.memory_id, h.before).where(
        h.tenant == scope.tenant, h.user_id == scope.user_id, h.before.is_not(None)
    )
    for memory_id, before in rows.all(past):
        yield memory_id, orjson.loads(before)


def _was_in(scope: Scope, columns: Mapping[str, Any]) -> bool:
    named = ((scope.session_id, columns.get("session_id")), (scope.agent_id, columns.get("agent_id")))
    wanted = [(asked, has) for asked, has in named if asked is not None]
    return bool(wanted) and all(asked == has for asked, has in wanted)


def _json_without(text: str | None, gone: frozenset[str]) -> str | None:
    """A JSON text that names none of ``gone``."""
    return None if text is None else dump_json(_unnamed(orjson.loads(text), gone))


def _unnamed(value: Any, gone: frozenset[str]) -> Any:
    """A successor, what has ended, or the changes or columns that hold them: without the ids that are gone."""
    if isinstance(value, str):
        return None if value in gone else value
    if isinstance(value, list):
        return [_unnamed(each, gone) for each in value]
    if not isinstance(value, dict):
        return value
    if "new_id" in value:
        return value | ({"new_id": ""} if value["new_id"] in gone else {})
    named = {name: _unnamed(value[name], gone) for name in ("superseded_by",) if name in value}
    if "ended" in value:
        # Columns keep it as they are kept: as JSON text.
        ended = value["ended"]
        named["ended"] = _json_without(ended, gone) if isinstance(ended, str) else _unnamed(ended, gone)
    return value | named
