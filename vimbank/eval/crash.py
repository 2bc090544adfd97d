"""Crash rounds: a real process writes, is killed without warning, and everything it acknowledged must be there.

``python -m vimbank.eval.crash FOLDER SEED`` is the writer: it adds, updates, deletes and searches for ever, and
prints a line when a call has returned. ``crash_rounds`` starts it, kills it at a random moment, and checks.
"""

import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vimbank.domain.models import Event, FusionName, MemoryDraft, MemoryPatch, Query
from vimbank.errors import NotFound
from vimbank.service import MemoryService
from vimbank.settings import Settings
from vimbank.wiring import open_service

__all__ = ["CrashReport", "crash_rounds"]

_TENANT: Final = "default"
_USER: Final = "writer"
_MOST_LINES: Final = 60
_LEGS: Final[Sequence[FusionName]] = ("dense", "sparse")


@dataclass(frozen=True, slots=True)
class CrashReport:
    """All rounds together: acknowledged writes, those that were gone, memories on one leg only, checks not clean."""

    rounds: int
    acknowledged: int
    lost: int
    half: int
    unclean: int


def crash_rounds(folder: Path, *, rounds: int, seed: int) -> CrashReport:
    """Kill a writer ``rounds`` times in one data folder, checking after each kill."""
    rng = random.Random(seed)
    acknowledged = lost = half = unclean = 0
    for number in range(rounds):
        lines = _killed_writer(folder, f"{seed}-{number}", rng)
        acknowledged += len(lines)
        with _open(folder) as service:
            lost += sum(not _holds(service, memory_id, action) for memory_id, action in _last_actions(lines).items())
            half += sum(not _on_both_legs_or_neither(service, word) for word in _words_in_doubt(lines, seed, number))
            unclean += not service.check().ok
    return CrashReport(rounds, acknowledged, lost, half, unclean)


def _killed_writer(folder: Path, seed: str, rng: random.Random) -> list[str]:
    """Lines the writer printed before it was killed; the last one only if it is whole."""
    command = [sys.executable, "-m", "vimbank.eval.crash", str(folder), seed]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(rng.randint(1, _MOST_LINES))]
        time.sleep(rng.random() * 0.004)  # somewhere inside the next call
        process.kill()
        lines += process.stdout.readlines()
    if not lines[0]:
        raise RuntimeError("the writer ended before it wrote anything")
    return [line.decode().strip() for line in lines if line.endswith(b"\n")]


def _last_actions(lines: list[str]) -> dict[str, tuple[str, str]]:
    """The last acknowledged action on each memory, and its word."""
    return {memory_id: (action, word) for action, memory_id, word in (line.split() for line in lines)}


def _holds(service: MemoryService, memory_id: str, last: tuple[str, str]) -> bool:
    """Whether what was acknowledged last is so, on both legs; one later write may have gone through unannounced."""
    action, word = last
    try:
        text = service.get(_TENANT, memory_id).text
    except NotFound:
        return _is_deleted(service, memory_id) and not any(memory_id in _found(service, word, leg) for leg in _LEGS)
    later = word.rsplit("x", 1)[0] == text.rsplit("x", 1)[0] and _number(text) > _number(word)
    legs = all(memory_id in _found(service, text, fusion) for fusion in _LEGS)
    return action != "delete" and (text == word or later) and legs


def _is_deleted(service: MemoryService, memory_id: str) -> bool:
    try:
        return service.history(_TENANT, memory_id)[-1].event is Event.DELETE
    except NotFound:
        return False


def _words_in_doubt(lines: list[str], seed: int, number: int) -> Iterator[str]:
    """Words of the adds that may or may not have gone through when the kill came."""
    last = max((_number(line.split()[2]) for line in lines), default=-1)
    for offset in (1, 2):
        yield _word(f"{seed}-{number}", last + offset)


def _on_both_legs_or_neither(service: MemoryService, word: str) -> bool:
    return len({word in _texts(service, word, fusion) for fusion in _LEGS}) == 1


def _found(service: MemoryService, word: str, fusion: FusionName) -> set[str]:
    return {each.memory.id for each in service.search(_query(word, fusion)).results}


def _texts(service: MemoryService, word: str, fusion: FusionName) -> str:
    return " ".join(each.memory.text for each in service.search(_query(word, fusion)).results)


def _query(word: str, fusion: FusionName) -> Query:
    return Query(
        tenant=_TENANT,
        user_id=_USER,
        text=word,
        banks=["knowledge"],
        fusion=fusion,
        top_k=5,
        reinforce=False,
    )


def _word(seed: str, number: int) -> str:
    return f"w{seed.replace('-', 'n')}x{number}"


def _number(word: str) -> int:
    return int(word.rsplit("x", 1)[1])


def _open(folder: Path) -> MemoryService:
    return open_service(
        Settings.model_validate({"data_dir": folder, "encoder": {"kind": "hashing"}, "index": {"snapshot_every": 16}})
    )


def _write(folder: Path, seed: str) -> None:
    """Write until killed: mostly adds, now and then an update, a delete, a search."""
    rng = random.Random(seed)
    ids: list[str] = []
    with _open(folder) as service:
        number = 0
        while True:
            word = _word(seed, number)
            choice = rng.random()
            if ids and choice < 0.1:
                gone = ids.pop(rng.randrange(len(ids)))
                service.delete(_TENANT, gone)
                _say("delete", gone, word)
            elif ids and choice < 0.2:
                changed = rng.choice(ids)
                service.update(_TENANT, changed, MemoryPatch(text=word))
                _say("update", changed, word)
            else:
                draft = MemoryDraft(tenant=_TENANT, user_id=_USER, bank="knowledge", text=word)
                ids.append(service.add(draft).id)
                _say("add", ids[-1], word)
            if choice > 0.8:
                service.search(_query(word, "convex"))
            number += 1


def _say(action: str, id: str, word: str) -> None:
    sys.stdout.write(f"{action} {id} {word}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _write(Path(sys.argv[1]), sys.argv[2])
