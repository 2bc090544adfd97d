"""A generated set of fact updates, in English and Chinese, and how well the rules decide it (V-9, V-10).

A case is a handful of memories of one user in the order in which they arrive, and what should become of them: which
ones are current, which are stale. Half of the cases come from templates that the rules were tried on, half from others
(`vimbank.eval.fact_update_templates.halves`); only the second half is worth reporting.

Run as a program, this writes the set::

    python -m vimbank.eval.fact_updates --out datasets/fact_updates.jsonl --measure
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from vimbank.domain.conflicts import Claim, claims_of, decide
from vimbank.domain.models import Memory
from vimbank.domain.times import format_time, parse_time
from vimbank.eval.fact_update_templates.halves import REPORT, TUNING
from vimbank.eval.fact_update_templates.topic import FILLERS, SIBLINGS, Topic

__all__ = [
    "KINDS",
    "SPEAKER",
    "SPLITS",
    "Case",
    "Told",
    "case_record",
    "distractors",
    "generate",
    "main",
    "measure",
    "read_case",
]

SPLITS: Final = {"tuning": TUNING, "report": REPORT}
"""The two halves, each from its own templates."""

KINDS: Final = ("update", "out_of_order", "negation", "restatement", "past", "trap", "distractor")
"""What happens in a case: the first three make a memory stale, the others must not.

``update``: a new value.  ``out_of_order``: the same, and the older memory arrives last.  ``negation``: it is no longer
so.  ``restatement``: told again.  ``past``: an old value is remembered.  ``trap``: another value is mentioned, wished
for, asked about.  ``distractor``: another person of a similar name, another user, another text, another attribute, or
one of several values that hold at a time.
"""

SPEAKER: Final = {"en": "the user", "zh": "我"}
"""What a question calls the one who speaks."""

_EPOCH: Final = datetime(2025, 1, 6, 9, tzinfo=UTC)
_DEFAULT_SIZE: Final = 500
_DEFAULT_SEED: Final = 20250106


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One memory of a case: ``at`` is when it was said, ``created_at`` when it arrived; both aware UTC.

    ``title``: of the text that it is from, if any.
    """

    id: str
    user_id: str
    text: str
    at: datetime
    created_at: datetime
    title: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Memories in order of arrival, and the ids of those that are ``stale`` and ``current`` afterwards."""

    id: str
    split: str
    language: str
    kind: str
    topic: str
    question: str
    memories: Sequence[Told]
    stale: Sequence[str]
    current: Sequence[str]


def generate(size: int = _DEFAULT_SIZE, *, seed: int = _DEFAULT_SEED) -> list[Case]:
    """``size`` cases, the same ones for the same seed: splits, languages and kinds take turns."""
    rng = np.random.default_rng(seed)
    combinations = [(kind, language, split) for kind in KINDS for language in ("en", "zh") for split in SPLITS]
    return [_case(number, *combinations[number % len(combinations)], rng) for number in range(size)]


def distractors(case: Case, count: int, *, seed: int = _DEFAULT_SEED) -> list[str]:
    """Sentences that the same user could have said: of other topics than the case's, no two of one topic.

    Returns: at most ``count``, as many as there are topics; the same ones for the same seed.
    """
    rng = np.random.default_rng([seed, int(case.id.rpartition("-")[2])])
    topics: dict[str, Topic] = {}
    for number in rng.permutation(len(SPLITS[case.split])):
        topic = SPLITS[case.split][int(number)]
        if topic.language == case.language and topic.name != case.topic and not topic.titles:
            topics.setdefault(topic.name, topic)
    found = []
    for topic in list(topics.values())[:count]:
        forms = _about(topic.states, named=False) or list(topic.states)
        form = forms[int(rng.integers(len(forms)))]
        value = topic.values[int(rng.integers(len(topic.values)))]
        found.append(form.format(s=_subjects(topic, rng)[0], v=value))
    return [text[0].upper() + text[1:] for text in found]


def measure(cases: Sequence[Case]) -> dict[str, Any]:
    """How the rules decide the cases: by split, and inside a split by language, kind and topic.

    Returns: for each group ``stale_cases``, ``decided`` and ``recall`` (the share of cases with a stale memory where
             every stale one is superseded and no current one is), ``kept`` and ``false_supersession`` (the share of the
             memories that are not stale and yet superseded), and ``missed`` and ``wrong``: case ids.
    """
    verdicts = [(case, _superseded(case)) for case in cases]
    groups: dict[str, list[tuple[Case, set[str]]]] = {}
    for case, superseded in verdicts:
        for name in ("", f"/{case.language}", f"/{case.kind}", f"/{case.language}/{case.topic}"):
            groups.setdefault(case.split + name, []).append((case, superseded))
    return {name: _summary(group) for name, group in sorted(groups.items())}


def _summary(group: Sequence[tuple[Case, set[str]]]) -> dict[str, Any]:
    asked = [(case, superseded) for case, superseded in group if case.stale]
    missed = [case.id for case, superseded in asked if not set(case.stale) <= superseded]
    wrong = [case.id for case, superseded in group if superseded - set(case.stale)]
    decided = len({case.id for case, _ in asked} - set(missed) - set(wrong))
    kept = sum(len(case.memories) - len(case.stale) for case, _ in group)
    false = sum(len(superseded - set(case.stale)) for case, superseded in group)
    return {
        "cases": len(group),
        "stale_cases": len(asked),
        "decided": decided,
        "recall": round(decided / len(asked), 4) if asked else None,
        "kept": kept,
        "false_supersession": round(false / kept, 4) if kept else None,
        "missed": missed,
        "wrong": wrong,
    }


def _superseded(case: Case) -> set[str]:
    claims: list[Claim] = []
    for told in case.memories:
        claims.extend(claims_of(_memory(told)))
    return {decision.old_id for decision in decide(claims)}


def _memory(told: Told) -> Memory:
    return Memory(
        id=told.id,
        tenant="default",
        user_id=told.user_id,
        bank="dialog",
        kind="note",
        text=told.text,
        title=told.title,
        created_at=told.created_at,
        updated_at=told.created_at,
        event_at=told.at,
        content_hash="",
        revision=1,
    )


# --- making -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Draw:
    """What one case draws from: its topic, whether somebody is named, and the generator."""

    topic: Topic
    topics: Sequence[Topic]
    named: bool
    subject: str
    namesake: str
    rng: np.random.Generator

    def pick(self, options: Sequence[str]) -> str:
        return options[int(self.rng.integers(len(options)))]

    def form(self, forms: Sequence[str]) -> str:
        return self.pick(_about(forms, named=self.named))

    def values(self, count: int) -> list[str]:
        chosen = self.rng.choice(len(self.topic.values), size=count, replace=False)
        return [self.topic.values[int(number)] for number in chosen]

    def several(self, subject: str) -> bool:
        """Whether two values may be of two: two dogs, two brothers."""
        return self.topic.several or (self.named and subject in SIBLINGS)

    def pick_titles(self) -> list[str]:
        """Two titles, or none where the topic has none."""
        return [str(title) for title in self.rng.permutation(self.topic.titles)[:2]]

    def other_attribute(self) -> "_Draw":
        """The same with another topic of the language and the split, about the same sort of subject."""
        others = [
            topic
            for topic in self.topics
            if topic.language == self.topic.language
            and topic.name != self.topic.name
            and bool(_about(topic.states, named=self.named))
            and (not self.named or bool(set(topic.subjects) & set(self.topic.subjects)))
        ]
        return replace(self, topic=others[int(self.rng.integers(len(others)))]) if others else self

    def say(self, form: str, *, subject: str, value: str, old: str = "") -> str:
        year = str(int(self.rng.integers(2005, 2016)))
        text = form.format(s=subject, v=value, old=old, year=year)
        text = text[0].upper() + text[1:]
        if self.rng.random() < 0.2:
            filler = self.pick(FILLERS[self.topic.language])
            gap = " " if self.topic.language == "en" else ""
            text = filler + gap + text if self.rng.random() < 0.5 else text + gap + filler
        return text


class _Line(NamedTuple):
    text: str
    user: str = "a"
    stale: bool = False
    other_text: bool = False
    """Whether it is from another text than the first line."""


def _case(number: int, kind: str, language: str, split: str, rng: np.random.Generator) -> Case:
    topics = [topic for topic in SPLITS[split] if topic.language == language and _people(topic, kind)]
    topic = topics[int(rng.integers(len(topics)))]
    people = _people(topic, kind)
    subject, namesake = _subjects(topic, rng)
    draw = _Draw(topic, topics, people[int(rng.integers(len(people)))], subject, namesake, rng)
    lines = _MAKERS[kind](draw)
    case_id = f"{split}-{number:04d}"
    step = timedelta(days=int(rng.integers(20, 200)))
    order = list(range(len(lines)))
    said = [_EPOCH + number * timedelta(hours=1) + step * position for position in order]
    if kind == "out_of_order":
        order.reverse()
    arrived = said[-1] + timedelta(days=1)
    late = kind == "out_of_order"
    titles = draw.pick_titles()
    memories = [
        Told(
            id=f"{case_id}-{position}",
            user_id=f"{case_id}-{lines[position].user}",
            text=lines[position].text,
            title=titles[lines[position].other_text] if titles else None,
            at=said[position],
            created_at=arrived + timedelta(minutes=turn) if late else said[position],
        )
        for turn, position in enumerate(order)
    ]
    stale = [f"{case_id}-{position}" for position in range(len(lines)) if lines[position].stale]
    return Case(
        id=case_id,
        split=split,
        language=language,
        kind=kind,
        topic=topic.name,
        question=topic.question.format(s=subject if draw.named else SPEAKER[language]),
        memories=memories,
        stale=stale,
        current=[told.id for told in memories if told.id not in stale],
    )


def _subjects(topic: Topic, rng: np.random.Generator) -> list[str]:
    return [topic.subjects[int(number)] for number in rng.choice(len(topic.subjects), size=2, replace=False)]


def _about(forms: Sequence[str], *, named: bool) -> list[str]:
    return [form for form in forms if ("{s}" in form) is named]


def _people(topic: Topic, kind: str) -> list[bool]:
    """Whether a case of this kind can be about a named one, about the speaker, or both."""
    needed = {
        "update": [topic.states, topic.updates],
        "out_of_order": [topic.states, topic.updates],
        "negation": [topic.states, topic.ended],
        "restatement": [topic.states],
        "past": [topic.states, topic.past],
        "trap": [topic.states, topic.traps],
        "distractor": [topic.states],
    }[kind]
    return [named for named in (False, True) if all(_about(forms, named=named) for forms in needed)]


def _update(draw: _Draw) -> list[_Line]:
    subject, (old, new) = draw.subject, draw.values(2)
    first = draw.say(draw.form(draw.topic.states), subject=subject, value=old)
    if draw.rng.random() < 0.25 and not draw.several(subject):  # people also just say what is so now
        second = draw.say(draw.form(draw.topic.states), subject=subject, value=new)
    else:
        second = draw.say(draw.form(draw.topic.updates), subject=subject, value=new, old=old)
    return [_Line(first, stale=True), _Line(second)]


def _negation(draw: _Draw) -> list[_Line]:
    subject, (value,) = draw.subject, draw.values(1)
    first = draw.say(draw.form(draw.topic.states), subject=subject, value=value)
    second = draw.say(draw.form(draw.topic.ended), subject=subject, value=value)
    return [_Line(first, stale=True), _Line(second)]


def _restatement(draw: _Draw) -> list[_Line]:
    subject, (value,) = draw.subject, draw.values(1)
    return [_Line(draw.say(draw.form(draw.topic.states), subject=subject, value=value)) for _ in range(2)]


def _past(draw: _Draw) -> list[_Line]:
    subject, (value, before) = draw.subject, draw.values(2)
    first = draw.say(draw.form(draw.topic.states), subject=subject, value=value)
    second = draw.say(draw.form(draw.topic.past), subject=subject, value=before)
    return [_Line(first), _Line(second)]


def _trap(draw: _Draw) -> list[_Line]:
    subject, (value, other) = draw.subject, draw.values(2)
    first = draw.say(draw.form(draw.topic.states), subject=subject, value=value)
    second = draw.say(draw.form(draw.topic.traps), subject=subject, value=other)
    return [_Line(first), _Line(second)]


def _distractor(draw: _Draw) -> list[_Line]:
    (subject, namesake), (value, other) = (draw.subject, draw.namesake), draw.values(2)
    first = draw.say(draw.form(draw.topic.states), subject=subject, value=value)
    if (draw.topic.many or draw.several(subject)) and draw.rng.random() < 0.5:
        return [_Line(first), _Line(draw.say(draw.form(draw.topic.states), subject=subject, value=other))]
    if draw.topic.titles and draw.rng.random() < 0.5:
        second = draw.say(draw.form(draw.topic.states), subject=subject, value=other)
        return [_Line(first), _Line(second, other_text=True)]
    elsewhere = draw.other_attribute()
    if elsewhere is not draw and draw.rng.random() < 0.3:
        shared = [name for name in elsewhere.topic.subjects if name == subject]
        told_of = shared[0] if shared else _subjects(elsewhere.topic, draw.rng)[0]
        second = elsewhere.say(elsewhere.form(elsewhere.topic.states), subject=told_of, value=elsewhere.values(1)[0])
        return [_Line(first), _Line(second)]
    if not draw.named or draw.rng.random() < 0.3:
        second = draw.say(draw.form(draw.topic.states), subject=subject, value=other)
        return [_Line(first), _Line(second, user="b")]
    return [_Line(first), _Line(draw.say(draw.form(draw.topic.states), subject=namesake, value=other))]


_MAKERS: Final[Mapping[str, Callable[[_Draw], list[_Line]]]] = {
    "update": _update,
    "out_of_order": _update,
    "negation": _negation,
    "restatement": _restatement,
    "past": _past,
    "trap": _trap,
    "distractor": _distractor,
}


# --- files --------------------------------------------------------------------------------------------------------


def case_record(case: Case) -> dict[str, Any]:
    """A case as one line of the file: JSON's types, times as ISO 8601 in UTC."""
    return {
        "id": case.id,
        "split": case.split,
        "language": case.language,
        "kind": case.kind,
        "topic": case.topic,
        "question": case.question,
        "memories": [
            {
                "id": told.id,
                "user_id": told.user_id,
                "text": told.text,
                "event_at": format_time(told.at),
                "created_at": format_time(told.created_at),
                **({"title": told.title} if told.title else {}),
            }
            for told in case.memories
        ],
        "stale": list(case.stale),
        "current": list(case.current),
    }


def read_case(record: Mapping[str, Any]) -> Case:
    """The case of one line; the inverse of ``case_record``. Raises KeyError, InvalidInput for a line that is none."""
    memories = [
        Told(
            id=told["id"],
            user_id=told["user_id"],
            text=told["text"],
            at=parse_time(told["event_at"], "event_at"),
            created_at=parse_time(told["created_at"], "created_at"),
            title=told.get("title"),
        )
        for told in record["memories"]
    ]
    names = ("id", "split", "language", "kind", "topic", "question", "stale", "current")
    return Case(memories=memories, **{name: record[name] for name in names})


def _lines(cases: Sequence[Case]) -> Iterator[str]:
    for case in cases:
        yield json.dumps(case_record(case), ensure_ascii=False) + "\n"


def _table(figures: Mapping[str, Mapping[str, Any]]) -> str:
    rows = ["group                        cases  stale  decided  recall  kept  false"]
    for name, row in figures.items():
        recall = "-" if row["recall"] is None else f"{row['recall']:.3f}"
        rows.append(
            f"{name:<28} {row['cases']:>5}  {row['stale_cases']:>5}  {row['decided']:>7}  {recall:>6}  "
            f"{row['kept']:>4}  {row['false_supersession']:.4f}"
        )
    return "\n".join(rows) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command ``python -m vimbank.eval.fact_updates``."""
    parser = argparse.ArgumentParser(
        prog="python -m vimbank.eval.fact_updates",
        description="Write the generated set of fact updates as JSON Lines, and measure how the rules decide it.",
        epilog="Example: python -m vimbank.eval.fact_updates --out datasets/fact_updates.jsonl --measure",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="file to write; default: standard output")
    parser.add_argument("--size", type=int, default=_DEFAULT_SIZE, help="number of cases; default: %(default)s")
    parser.add_argument("--seed", type=int, default=_DEFAULT_SEED, help="seed; default: %(default)s")
    parser.add_argument("--measure", action="store_true", help="print what the rules decide, to standard error")
    parser.add_argument("--json", action="store_true", help="with --measure: as JSON, with the ids of the slips")
    chosen = parser.parse_args(arguments)
    if chosen.size < 1:
        parser.error("--size must be at least 1")
    cases = generate(chosen.size, seed=chosen.seed)
    text = "".join(_lines(cases))
    if chosen.out is None:
        sys.stdout.write(text)
    else:
        chosen.out.write_text(text, encoding="utf-8")
    if chosen.measure:
        figures = measure(cases)
        sys.stderr.write(json.dumps(figures, indent=2, ensure_ascii=False) + "\n" if chosen.json else _table(figures))
    counts = Counter(case.split for case in cases)
    sys.stderr.write(f"{len(cases)} cases: " + ", ".join(f"{count} {name}" for name, count in counts.items()) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
