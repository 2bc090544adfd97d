"""A session's turns become memories: one a round of query and response (V-3), one for every other turn."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeVar

from vimbank.domain.models import MemoryDraft, Source
from vimbank.errors import FieldError, InvalidInput

__all__ = ["REPLY_ROLES", "ROUND_KIND", "TURN_KIND", "Turn", "drafts_of_turns", "parts_of_turns"]

T = TypeVar("T")

QUERY_ROLE = "user"
RESPONSE_ROLE = "assistant"

ROUND_KIND: Final = "round"
"""Kind of a query with its response."""
TURN_KIND: Final = "turn"
"""Kind of what one side said, where it is no part of a round."""
REPLY_ROLES: Final = frozenset({RESPONSE_ROLE, "system", "tool"})
"""Roles of those who speak to the user."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What one side said once.

    ``role`` is free; ``user`` and ``assistant`` are the two that make a round. ``event_id`` is the caller's own
    name of the turn, unique inside a tenant: sent again, it is not stored again.
    """

    role: str
    content: str
    speaker: str | None = None
    event_at: datetime | None = None
    event_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


def drafts_of_turns(
    turns: Sequence[Turn],
    *,
    tenant: str,
    user_id: str,
    session_id: str,
    agent_id: str | None = None,
    bank: str = "dialog",
    start_position: int = 0,
) -> list[MemoryDraft]:
    """The memories of consecutive turns of one session, in order.

    A ``user`` turn followed by an ``assistant`` turn is one round: kind ``round``, text = query, newline, response,
    both verbatim; speaker, event id and time are the query's, or the response's where the query has none. Any other
    turn is kind ``turn``. Rounds are formed inside one call only. ``source.position`` counts memories from
    ``start_position``. A turn is an event, so equal texts do not fold; an event id makes a repeat harmless.

    Metadata: ``role`` of a turn, ``roles`` of a round, and the callers' own keys. Where query and response of a
    round contradict each other on a key, the response's value is kept as ``response_<key>``; a second speaker or
    event id likewise.

    Raises:  InvalidInput: a role or content without any character, named ``turns.<i>.<field>``.
    Source:  VIMBank V-3; speaker and time stay structured, not glued into the embedded text.
    """
    _check(turns)
    return [
        MemoryDraft(
            tenant=tenant,
            user_id=user_id,
            bank=bank,
            agent_id=agent_id,
            session_id=session_id,
            kind=ROUND_KIND if len(said) == 2 else TURN_KIND,
            text="\n".join(turn.content for turn in said),
            speaker=_first_given(turn.speaker for turn in said),
            event_at=_first_given(turn.event_at for turn in said),
            metadata=_metadata(said),
            source=Source(position=position, event_id=_first_given(turn.event_id for turn in said)),
            deduplicate=False,
        )
        for position, said in enumerate(_rounds(turns), start_position)
    ]


def parts_of_turns(turns: Sequence[Turn]) -> list[tuple[str, str] | None]:
    """Query and response of each memory of ``drafts_of_turns`` that is a round, None of the others, in order."""
    return [(said[0].content, said[1].content) if len(said) == 2 else None for said in _rounds(turns)]


def _check(turns: Sequence[Turn]) -> None:
    errors = [
        FieldError(f"turns.{index}.{name}", "must not be blank")
        for index, turn in enumerate(turns)
        for name, value in (("role", turn.role), ("content", turn.content))
        if not value.strip()
    ]
    if errors:
        raise InvalidInput(errors)


def _rounds(turns: Sequence[Turn]) -> Iterator[tuple[Turn, ...]]:
    """Each query with its response; a turn that has none, or that answers none, alone."""
    index = 0
    while index < len(turns):
        pair = tuple(turns[index : index + 2])
        said = pair if [turn.role for turn in pair] == [QUERY_ROLE, RESPONSE_ROLE] else pair[:1]
        yield said
        index += len(said)


def _first_given(values: Iterable[T | None]) -> T | None:
    return next((value for value in values if value is not None), None)


def _metadata(said: Sequence[Turn]) -> dict[str, Any]:
    if len(said) == 1:
        return {**said[0].metadata, "role": said[0].role}
    query, response = said
    merged = dict(query.metadata)
    for name in ("speaker", "event_id"):
        theirs = getattr(response, name)
        if theirs is not None and getattr(query, name) is not None:
            merged[f"response_{name}"] = theirs
    for key, value in response.metadata.items():
        merged[key if merged.get(key, value) == value else f"response_{key}"] = value
    return {**merged, "roles": [query.role, response.role]}
