"""A memory with all that a store knows of it, as it travels between stores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from vimbank.domain.models import Event, Memory, Vector, Vectors

__all__ = ["Archived", "Outcome", "Past"]

Outcome = Literal["added", "duplicate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """One entry of a history. ``before``: the memory before it, whole, or as the store's own columns of it.

    ``moved``: the embedding changed or went with it; it was ``vector`` (None: there was none, or by another encoder).
    """

    bank: str
    at: datetime
    event: Event
    actor: str
    old_text: str | None = None
    new_text: str | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    before: Memory | Mapping[str, Any] | None = None
    moved: bool = False
    vector: Vector | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """All of one id: the memory (None: it was deleted), its embedding, and its history, oldest first.

    ``tokens``: token vectors as the store keeps them; ``token_vectors``: as an encoder makes them.
    ``graves``: what is left of earlier lives of the id.
    ``parts``: segments that come and go with it. ``fold``: an active memory of the same content counts as it.
    Numbers and revisions of ``memory`` and ``graves`` mean nothing: the store that takes them in gives its own.
    """

    id: str
    tenant: str
    user_id: str
    memory: Memory | None = None
    key: str | None = None
    vector: Vector | None = field(default=None, compare=False)
    tokens: bytes | None = None
    token_vectors: Vectors | None = field(default=None, compare=False)
    past: Sequence[Past] = ()
    graves: Sequence[Memory] = ()
    parts: Sequence["Archived"] = ()
    fold: bool = False
