"""One thing to know of somebody and how people put it, and what a case says besides.

A form is about a named person or thing where it has ``{s}``, else about the speaker, whom a question calls «the user»
or «我». ``{v}`` is the value told, ``{old}`` the one before it, ``{year}`` a year well past.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["FILLERS", "SIBLINGS", "Topic"]


@dataclass(frozen=True, slots=True)
class Topic:
    """One thing to know of somebody, in one language, and how people put it.

    ``states``: it is so; ``updates``: it is so now, in place of ``{old}``; ``ended``: it is no longer so, without a
    new value; ``past``: it was so, long ago; ``traps``: the value is named but nothing is said to be so.
    ``many``: several values hold at a time. ``subjects``: names for ``{s}``. ``titles``: of texts that each tell of
    their own, so that one's class is not another's. ``several``: a person may have several of what it is about, so that
    a second value need not replace the first («my dog is called Rex», «my dog is called Miso»).
    """

    name: str
    language: str
    question: str
    subjects: Sequence[str]
    values: Sequence[str]
    states: Sequence[str]
    updates: Sequence[str] = ()
    ended: Sequence[str] = ()
    past: Sequence[str] = ()
    traps: Sequence[str] = ()
    many: bool = False
    titles: Sequence[str] = ()
    several: bool = False


FILLERS: Final = {
    "en": (
        "The train was late again this morning.",
        "Thanks for asking!",
        "It rained the whole weekend.",
        "Anyway, that is the news.",
    ),
    "zh": ("今天地铁特别挤。", "谢谢你问我！", "周末一直在下雨。", "反正就是这么回事。"),
}

SIBLINGS: Final = frozenset(
    {"my sister", "my brother", "my daughter", "my cousin", "我姐姐", "我哥哥", "我表弟", "我同桌"}
)
"""Subjects of whom the speaker may have several."""
