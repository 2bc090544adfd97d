"""What an update makes of a memory."""

from datetime import UTC, datetime
from types import MappingProxyType

from vimbank.domain.models import Memory, MemoryPatch
from vimbank.domain.patching import patched

NOW = datetime(2026, 1, 31, tzinfo=UTC)
MEMORY = Memory(
    id="m", tenant="t", user_id="u", bank="dialog", kind="note", text="old", title="a title", created_at=NOW,
    updated_at=NOW, content_hash="", revision=1, metadata=MappingProxyType({"topic": "health", "seen": 1}),
)  # fmt: skip


def test_what_is_not_given_stays_and_none_clears() -> None:
    new = patched(MEMORY, MemoryPatch(text="new", title=None))
    assert (new.text, new.title, new.metadata, new.pinned) == ("new", None, MEMORY.metadata, False)
    assert patched(MEMORY, MemoryPatch()) == MEMORY


def test_metadata_changes_key_by_key_and_none_removes_a_key_case_73() -> None:
    new = patched(MEMORY, MemoryPatch(metadata={"seen": 2, "topic": None, "page": 7, "unknown": None}))
    assert new.metadata == {"seen": 2, "page": 7}
    assert MEMORY.metadata == {"topic": "health", "seen": 1}
