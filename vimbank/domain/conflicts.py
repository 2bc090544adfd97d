"""Which memory supersedes which: same subject and attribute, another value (V-9, V-10, D9). Pure decisions.

The newest one that holds wins, from the instant at which it was said; both memories stay. A statement about the past
neither wins nor loses, the same value told again is no conflict, and «no longer» ends a value without a new one.
Decisions depend on when things were said, not on when they arrived.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from typing import Final, NamedTuple

from vimbank.domain.endings import Ended, Reason
from vimbank.domain.models import Label, Memory, MemoryState
from vimbank.domain.statement_values import may_contain, same_value
from vimbank.domain.statements import MAX_KEYS, OTHERS, Reading, Statement, read_memory

__all__ = [
    "SINGLE_VALUED",
    "Claim",
    "Ended",
    "Label",
    "Reason",
    "Supersede",
    "claim_keys",
    "claims_of",
    "contradictions",
    "decide",
    "is_single_valued",
    "labels",
    "outstanding",
]

_SINGLE_WORDS: Final = (
    "residence employer occupation age name nickname surname phone email address diet vehicle school birthday "
    "day hour deadline rent price salary weight height size budget income wage fee mortgage population "
    "hometown nationality major password passcode pin username login handle code wife husband boss manager "
    "landlord landlady dentist doctor therapist boyfriend girlfriend partner mayor capital president ceo "
    "headquarters currency principal 工资 月薪 年薪 体重 身高 价格 人口 年龄 "
    "生日 网名 昵称 老家 国籍 专业 血型 市长 首都 总统 地址 家庭住址 住址 微信号 "
    "微信"
)
SINGLE_VALUED: Final = frozenset(
    {
        *_SINGLE_WORDS.split(),
        "marital status",
        "native language",
        "blood type",
        "zip code",
        "time zone",
        "prime minister",
    }
)
"""Attributes of which one value holds at a time. Any other («likes», «allergy», «workplace») holds many."""

_SINGLE_PREFIXES: Final = ("favourite ", "count of ", "preference among ")
_SEVERAL_WORDS: Final = (
    "sister brother son daughter aunt uncle cousin niece nephew grandmother grandfather grandma grandpa roommate "
    "flatmate housemate dog cat puppy kitten parrot hamster rabbit horse tortoise goldfish boat car company startup "
    "blog band team 姐姐 哥哥 妹妹 弟弟 儿子 女儿 表哥 表弟 表姐 表妹 堂哥 堂弟 堂姐 堂妹 叔叔 阿姨 舅舅 舅妈 "
    "姑姑 姑妈 姨妈 侄子 侄女 外甥 室友 狗 猫 狗狗 小狗 小猫 猫咪 兔子 鹦鹉 仓鼠 车 公司 奶奶 爷爷 外婆 外公 姥姥 姥爷"
)
_SEVERAL: Final = frozenset(_SEVERAL_WORDS.split())
"""Of whom or of which one person may have several: «my dog is called Rex» and «my dog is called Miso» may be two "
"dogs."""

_MAX_KEY_CHARS: Final = 200
_OUT_OF_PLAY: Final = frozenset({MemoryState.DELETED, MemoryState.SUPPRESSED})

Scope = tuple[str, str, str | None]
"""(tenant, user, agent): no decision crosses it, in either direction."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement of one memory.

    ``at``: aware UTC, when it was said or became valid. ``created_at`` decides between equal ``at``; where both are
    equal nothing is known to be newer and nothing is superseded. ``complete``: the memory says nothing that is not
    in its claims, and nothing of the past, which no later memory ends.
    """

    memory_id: str
    scope: Scope
    statement: Statement
    at: datetime
    created_at: datetime
    complete: bool = True

    @property
    def order(self) -> tuple[datetime, datetime]:
        """What makes one claim newer than another."""
        return self.at, self.created_at


@dataclass(frozen=True, slots=True)
class Supersede:
    """``old_id`` is no longer so from ``from_instant`` on, because of ``new_id``; both stay.

    ``whole``: everything that the old memory says has ended, so that it may leave the current ones; ``from_instant`` is
    then when the last of it ended. Otherwise the memory holds more (another fact, or words that no rule read), and only
    what ``ended`` names is stale: it must not vanish, it may be labelled and ranked lower.
    """

    old_id: str
    new_id: str
    from_instant: datetime
    reason: Reason
    whole: bool
    ended: tuple[Ended, ...]


def is_single_valued(attribute: str) -> bool:
    """Whether one value of the attribute holds at a time."""
    return (
        attribute in SINGLE_VALUED
        or attribute.startswith(_SINGLE_PREFIXES)
        or attribute.split()[-1] in SINGLE_VALUED
        or attribute.endswith("密码")
    )


def claim_keys(reading: Reading) -> tuple[tuple[str, str], ...]:
    """What an index finds the claims of a memory by: each (subject, attribute) of its statements once, in order.

    Statements of the past have keys too: they keep a memory from being superseded as a whole.

    A new memory can end, or be ended by, only memories of its scope which share a key with it, or which share a
    subject with it where one of both has the attribute OTHERS. Which old ones it ends is known from the claims of
    these; the whole decision of such an old one (``whole``, the last ender) needs, in a second round, the memories
    that its own keys find.

    Returns: at most MAX_KEYS pairs, as a text has no more that are read; each string at most 200 characters, cut at
             the end: two subjects that share a key are not always the same one.
    """
    pairs = dict.fromkeys(
        (each.subject[:_MAX_KEY_CHARS], each.attribute[:_MAX_KEY_CHARS]) for each in reading.statements
    )
    return tuple(pairs)[:MAX_KEYS]


def claims_of(memory: Memory, reading: Reading | None = None) -> list[Claim]:
    """The claims of a memory; none of a deleted or suppressed one. Superseded and archived ones still count: what
    they ended stays ended.

    Args:    reading: what the memory states, where it is known; None: it is read.
    """
    if memory.state in _OUT_OF_PLAY:
        return []
    reading = read_memory(memory) if reading is None else reading
    return [
        Claim(
            memory_id=memory.id,
            scope=(memory.tenant, memory.user_id, memory.agent_id),
            statement=statement,
            at=memory.valid_from or memory.event_at or memory.created_at,
            created_at=memory.created_at,
            complete=reading.unread == 0 and all(each.current for each in reading.statements),
        )
        for statement in reading.statements
    ]


def decide(claims: Iterable[Claim]) -> list[Supersede]:
    """Every supersession that follows from the claims, by ``old_id``; at most one an old memory.

    A function of the set of claims: any order gives the same, and claims of memories that are superseded already
    belong in it, as they may have been ended by another one than is now known. At write time, the claims of the new
    memory and of those of the same scope and subject suffice; ``outstanding`` leaves what is not yet recorded.

    A value is ended by the oldest newer claim that contradicts it, so validity forms a chain without gaps.
    Source:  VIMBank V-9, V-10; D9: never delete.
    """
    by_memory: dict[str, list[Claim]] = defaultdict(list)
    ended: dict[str, list[Ended]] = defaultdict(list)
    for group in _by_subject(claims).values():
        for old in group:
            by_memory[old.memory_id].append(old)
        for old, new, reason in _endings(group):
            statement = old.statement
            ended[old.memory_id].append(
                Ended(statement.subject, statement.attribute, statement.value, new.memory_id, new.at, reason)
            )
    return [_supersede(old_id, ended[old_id], by_memory[old_id]) for old_id in sorted(ended)]


def outstanding(decisions: Iterable[Supersede], recorded: Mapping[str, tuple[str, datetime]]) -> list[Supersede]:
    """The decisions that are not yet carried out.

    Args:    recorded: memory id -> (superseded by, from), as the store has them.
    """
    return [each for each in decisions if recorded.get(each.old_id) != (each.new_id, each.from_instant)]


def contradictions(claims: Iterable[Claim]) -> list[tuple[str, str]]:
    """Pairs of memories that contradict each other, whichever is newer; each pair once, in order of the ids."""
    pairs: set[tuple[str, str]] = set()
    for group in _by_subject(claims).values():
        values = _values(group)
        for one, other in combinations(group, 2):
            if one.memory_id != other.memory_id and (_reason(one, other, values) or _reason(other, one, values)):
                first, second = sorted((one.memory_id, other.memory_id))
                pairs.add((first, second))
    return sorted(pairs)


def labels(
    relevance: Mapping[str, float], claims: Iterable[Claim], *, threshold: float, superseded: Iterable[str] = ()
) -> dict[str, Label]:
    """The label of each record that a search returns.

    Conflicting: it is superseded, or contradicts another returned record that is not superseded either. Otherwise
    relevant at or above the threshold, irrelevant below it: whether it holds the answer is known only as far as the
    relevance tells.

    Args:    relevance: memory id -> relevance of the search, [0, 1].  claims: of these memories.
             superseded: ids known to be superseded.
    Source:  VIMBank V-9, V-11.
    """
    stale = set(superseded)
    open_conflicts = {
        memory_id
        for pair in contradictions(claim for claim in claims if claim.memory_id in relevance)
        if not stale.intersection(pair)
        for memory_id in pair
    }
    return {
        memory_id: Label.CONFLICTING
        if memory_id in stale or memory_id in open_conflicts
        else Label.RELEVANT
        if score >= threshold
        else Label.IRRELEVANT
        for memory_id, score in relevance.items()
    }


def _by_subject(claims: Iterable[Claim]) -> dict[tuple[Scope, str], list[Claim]]:
    groups: dict[tuple[Scope, str], list[Claim]] = defaultdict(list)
    for claim in dict.fromkeys(claims):
        if claim.statement.current:
            groups[claim.scope, claim.statement.subject].append(claim)
    for group in groups.values():
        group.sort(key=_rank)
    return groups


_Values = Mapping[tuple[str, str], Sequence[str]]


def _values(group: Sequence[Claim]) -> _Values:
    """What each memory says an attribute is: (memory id, attribute) -> values."""
    values: dict[tuple[str, str], list[str]] = defaultdict(list)
    for claim in group:
        if claim.statement.positive and claim.statement.value is not None:
            values[claim.memory_id, claim.statement.attribute].append(claim.statement.value)
    return values


class _Ender(NamedTuple):
    claim: Claim
    reason: Reason


def _endings(group: Sequence[Claim]) -> Iterator[tuple[Claim, Claim, Reason]]:
    """For each claim of one subject that ended: the oldest newer one that ends it. ``group`` is oldest first."""
    values = _values(group)
    buckets: dict[tuple[str, bool], list[Claim]] = defaultdict(list)
    for claim in group:
        buckets[claim.statement.attribute, claim.statement.positive].append(claim)
    # From the newest back: what ends the next one that says the same ends this one too, if nothing between does.
    next_same: dict[tuple[str, bool, str | None], tuple[Claim, _Ender | None]] = {}
    for old in reversed(group):
        key = (old.statement.attribute, old.statement.positive, old.statement.value)
        following, ender = next_same.get(key, (None, None))
        firsts = (_first_ender(old, buckets.get(each, ()), values, following) for each in _opposed(old.statement))
        found = min((first for first in firsts if first), key=lambda first: _rank(first.claim), default=ender)
        next_same[key] = (old, found)
        if found:
            yield old, found.claim, found.reason


def _opposed(statement: Statement) -> Iterator[tuple[str, bool]]:
    """(attribute, positive) of the statements that may end this one."""
    yield statement.attribute, not statement.positive
    if statement.positive and is_single_valued(statement.attribute):
        yield statement.attribute, True
        yield OTHERS, False


def _first_ender(old: Claim, news: Sequence[Claim], values: _Values, last: Claim | None) -> _Ender | None:
    """The oldest of ``news`` that ends ``old``: newer than it, not newer than ``last``. ``news`` is oldest first."""
    start = bisect_right(news, old.order, key=_order)
    stop = len(news) if last is None else bisect_right(news, last.order, key=_order)
    for new in news[start:stop]:  # claims of one memory are equally old: none of these is its own
        if reason := _reason(old, new, values):
            return _Ender(new, reason)
    return None


def _order(claim: Claim) -> tuple[datetime, datetime]:
    return claim.order


def _rank(claim: Claim) -> tuple[datetime, datetime, str]:
    return (*claim.order, claim.memory_id)


def _reason(old: Claim, new: Claim, values: _Values) -> Reason | None:
    """Why ``new``, said later of the same subject, ends ``old``; None: it does not."""
    before, after = old.statement, new.statement
    same_attribute = before.attribute == after.attribute
    if before.positive and after.positive:
        # A memory that also tells the old value adds to it, it does not replace it.
        told = values.get((new.memory_id, after.attribute), ())
        single = same_attribute and is_single_valued(before.attribute)
        changed = (
            single
            and not any(_alike(before.value, value) for value in told)
            and (after.change or not _may_both_hold(before, after))
        )
        return Reason.CHANGED if changed else None
    if before.positive and not after.positive:
        named = same_attribute or (after.attribute == OTHERS and is_single_valued(before.attribute))
        return Reason.ENDED if named and (after.value is None or _alike(before.value, after.value)) else None
    if after.positive and before.value is not None and same_attribute and _alike(before.value, after.value):
        return Reason.RESUMED
    return None


def _may_both_hold(before: Statement, after: Statement) -> bool:
    """Whether two values of one attribute, plainly told, may both hold: two dogs, two jobs, a town and its land."""
    _, owned, relation = after.subject.rpartition("'s ")
    several = bool(owned) and relation.split()[-1] in _SEVERAL
    return several or after.attribute == "occupation" or may_contain(before.value or "", after.value or "")


def _alike(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and same_value(one, other)


def _supersede(old_id: str, ended: Sequence[Ended], claims: Sequence[Claim]) -> Supersede:
    inherited = sorted(
        ended, key=lambda each: (each.from_instant, each.new_id, each.subject, each.attribute, each.value or "")
    )
    last = inherited[-1]
    whole = len(ended) == len(claims) and all(claim.complete for claim in claims)
    return Supersede(old_id, last.new_id, last.from_instant, last.reason, whole, tuple(inherited))
