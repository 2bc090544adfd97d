"""The content hash: when two memories say the same, of the same user, in the same place (cases 62, 63)."""

import hashlib
import json
import struct

from vimbank.domain.models import Memory, MemoryDraft

__all__ = ["content_hash"]



def content_hash(memory: Memory | MemoryDraft) -> str:
    """32 hexadecimal digits over everything its author said: partition, kind, text, title, speaker, scopes,
    metadata, event time and validity. Not over what the server adds (id, creation time, position, counters).

    Each field goes in with its length, so that no two different lists of fields glue to the same bytes.
    """
    times = (memory.event_at, memory.valid_from, memory.valid_to)
    fields: list[str | None] = [
        memory.tenant,
        memory.user_id,
        memory.bank,
        memory.kind,
        memory.text,
        memory.title,
        memory.speaker,
        memory.agent_id,
        memory.session_id,
        json.dumps(dict(memory.metadata), sort_keys=True, ensure_ascii=False, separators=(",", ":")),
        *(None if time is None else time.isoformat() for time in times),
    ]
    digest = hashlib.blake2b(digest_size=16)
    for value in fields:
        raw = b"" if value is None else value.encode()
        digest.update(struct.pack("<q", -1 if value is None else len(raw)))
        digest.update(raw)
    return digest.hexdigest()
