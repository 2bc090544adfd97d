"""What each leg reads of a memory.

Dialog turns are short and full of first names: the speaker helps a keyword search, but glued into the embedded
text it draws every turn of one speaker together. So the sparse leg reads it and the dense leg does not.
"""

from vimbank.domain.models import Memory, MemoryDraft

__all__ = ["embedding_text", "lexical_text"]


def lexical_text(memory: Memory | MemoryDraft) -> str:
    """Speaker, title and text, a line each, for the analyzer of the sparse leg."""
    return "\n".join(part for part in (memory.speaker, memory.title, memory.text) if part)


def embedding_text(memory: Memory | MemoryDraft) -> str:
    """``title. text``, or the text alone: what the encoder turns into the vector."""
    return f"{memory.title}. {memory.text}" if memory.title else memory.text
