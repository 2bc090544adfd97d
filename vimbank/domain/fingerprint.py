"""The content hash: when two memories say the same, of the same user, in the same place (cases 62, 63)."""

import hashlib
import json

from vimbank.domain.models import Memory, MemoryDraft

__all__ = ["content_hash"]


def content_hash(memory: Memory | MemoryDraft) -> str:
    """32 hexadecimal digits over everything its author said: partition, kind, text, title, speaker, scopes,
    metadata, event time and validity. Not over what the server adds (id, creation time, position, counters).

    The fields are hashed as one JSON list, so that no two different lists of fields glue to the same bytes.
    """
    times = (memory.event_at, memory.valid_from, memory.valid_to)
    fields = [
        memory.tenant,
        memory.user_id,
        memory.bank,
        memory.kind,
        memory.text,
        memory.title,
        memory.speaker,
        memory.agent_id,
        memory.session_id,
        dict(memory.metadata),
        *(None if time is None else time.timestamp() for time in times),
    ]
    return hashlib.blake2b(json.dumps(fields, sort_keys=True).encode(), digest_size=16).hexdigest()
