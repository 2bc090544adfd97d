"""What an update makes of a memory: one rule for whoever prepares it and whoever stores it."""

from dataclasses import fields, replace
from typing import Any, Final

from vimbank.domain.models import Memory, MemoryPatch, Unset

__all__ = ["patched"]

_PLAIN_FIELDS: Final = tuple(field.name for field in fields(MemoryPatch) if field.name != "metadata")


def patched(memory: Memory, patch: MemoryPatch) -> Memory:
    """The memory with the patch's fields; metadata key by key, None removes a key (case 73)."""
    given = {name: getattr(patch, name) for name in _PLAIN_FIELDS}
    changes: dict[str, Any] = {name: value for name, value in given.items() if not isinstance(value, Unset)}
    if not isinstance(patch.metadata, Unset):
        merged = {**memory.metadata, **patch.metadata}
        changes["metadata"] = {key: value for key, value in merged.items() if value is not None}
    return replace(memory, **changes)
