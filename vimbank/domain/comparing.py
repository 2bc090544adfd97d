"""Which pairs of memories a chat model is asked about, and what follows from its answer (V-9, V-10). Pure.

What the rules (``domain.conflicts``) have decided, or read as no conflict, is not asked. A model's word makes no memory
vanish: see ``endings``.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final

from vimbank.domain.conflicts import Claim, decide, is_single_valued
from vimbank.domain.endings import Ended, Reason
from vimbank.domain.models import Memory, MemoryState, Sample
from vimbank.domain.statement_values import same_value
from vimbank.domain.statements import Statement, testimony
from vimbank.domain.superseding import own_claims, said_at, takes_part

__all__ = [
    "COMPARED",
    "NEAR",
    "NEAREST",
    "TEXT",
    "Relation",
    "can_be_compared",
    "endings",
    "in_order",
    "is_newer",
    "is_settled",
]

COMPARED: Final = ("", "compared")
"""The claim of a memory that was compared with those near it, so that it is not compared again and again."""

TEXT: Final = ("", "text")
"""Subject and attribute of what has ended where no rule read it: the memory's text, as a whole."""

NEAR: Final = 0.6
"""Cosine from which two memories may tell of one thing."""

NEAREST: Final = 5
"""Memories that one memory is compared with."""


class Relation(StrEnum):
    """What the newer of two memories is to the older."""

    UPDATE = "update"
    """It gives the present state of what the older one tells, which holds no longer."""

    CONTRADICTION = "contradiction"
    """Both cannot be true, and neither says that something has changed."""

    SAME = "same"
    """It tells the same again, or more of it."""

    UNRELATED = "unrelated"
    """Both may be true side by side."""


def can_be_compared(memory: Memory, *, now: datetime) -> bool:
    """Whether a memory says something for somebody to compare: active, no part or derivative, no assistant's word, no
    negative sample (a question, a greeting), and of no later time than ``now``."""
    return (
        memory.state is MemoryState.ACTIVE
        and takes_part(memory)
        and memory.sample is not Sample.NEGATIVE
        and testimony(memory) is not None
        and said_at(memory) <= now
    )


def is_newer(memory: Memory, other: Memory) -> bool:
    """Whether it is known to be the newer one, as the rules have it (``Claim.order``)."""
    return (said_at(memory), memory.created_at) > (said_at(other), other.created_at)


def in_order(one: Memory, other: Memory) -> tuple[Memory, Memory]:
    """The older and the newer; of two equally old ones the one that was written first is called older."""
    if is_newer(one, other) or (not is_newer(other, one) and one.number > other.number):
        return other, one
    return one, other


def is_settled(old: Memory, new: Memory) -> bool:
    """Whether nothing is left to ask about a pair.

    It is decided already: ``new``, or something from before it, is known to have ended ``old``, or the rules see that
    it does, whether or not somebody took that back. Or it is no conflict by the rules: the one only repeats what the
    other says, or both are understood as a whole and tell of different people or things.
    """
    at = said_at(new)
    if any(each.new_id == new.id or (_key(each) == TEXT and each.from_instant <= at) for each in old.ended):
        return True
    before, after = own_claims(old), own_claims(new)
    if any({each.old_id, each.new_id} == {old.id, new.id} for each in decide([*before, *after])):
        return True
    if _repeats(after, before) or _repeats(before, after):
        return True
    understood = _understood(before) and _understood(after)
    return understood and not {each.statement.subject for each in before} & {each.statement.subject for each in after}


def endings(old: Memory, new: Memory, relation: Relation) -> tuple[Ended, ...]:
    """What has ended of ``old`` by a model's answer about both; () where nothing has, or neither is the newer one.

    The newest one that holds wins (V-10), yet a model errs: ``old`` is named stale and stays active, so that searches
    find it, below ``new``. Of an old memory that the rules understand in part, the statements of which ``new`` has
    another value are named; else its ``TEXT`` is. Never is all named that the rules understand as a whole, which would
    supersede it: where they understand both and ended nothing, they hold that both may be true.
    """
    if relation not in (Relation.UPDATE, Relation.CONTRADICTION) or not is_newer(new, old):
        return ()
    before, after = own_claims(old), own_claims(new)
    changed = [each.statement for each in before if any(_changed(each, claim) for claim in after)]
    if not changed or _understood(before):
        return (Ended(*TEXT, None, new.id, said_at(new), Reason.CHANGED),)
    return tuple(
        Ended(each.subject, each.attribute, each.value, new.id, said_at(new), Reason.CHANGED) for each in changed
    )


def _key(ended: Ended) -> tuple[str, str]:
    return ended.subject, ended.attribute


def _understood(claims: Sequence[Claim]) -> bool:
    """Whether the rules read all that a memory says."""
    return bool(claims) and all(each.complete for each in claims)


def _repeats(some: Sequence[Claim], others: Sequence[Claim]) -> bool:
    """Whether a memory, understood as a whole, says nothing that the other does not."""
    return _understood(some) and all(any(_alike(each.statement, other.statement) for other in others) for each in some)


def _alike(one: Statement, other: Statement) -> bool:
    told = (one.subject, one.attribute, one.positive, one.current)
    if told != (other.subject, other.attribute, other.positive, other.current):
        return False
    if one.value is None or other.value is None:
        return one.value == other.value
    return same_value(one.value, other.value)


def _changed(old: Claim, new: Claim) -> bool:
    before, after = old.statement, new.statement
    plain = all(each.current and each.positive and each.value is not None for each in (before, after))
    told_of_one = (before.subject, before.attribute) == (after.subject, after.attribute)
    return plain and told_of_one and is_single_valued(before.attribute) and not _alike(before, after)
