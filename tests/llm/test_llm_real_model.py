"""A real model over HTTP: shapes, JSON, time-outs, cancellation. Never what it says: it is very small."""

import json
import time
from datetime import UTC, datetime

import pytest

from tests.llm.conftest import OpenChat
from vimbank.domain.comparing import Relation
from vimbank.domain.models import ListQuery, MemoryDraft, MemoryState, Sample
from vimbank.errors import BackendUnavailable, ModelError
from vimbank.ingestion.dialog import Turn
from vimbank.jobs.assess import assess
from vimbank.jobs.conflicts import conflicts
from vimbank.jobs.conflicts import validate as validate_conflicts
from vimbank.jobs.context import JobContext, Surroundings
from vimbank.jobs.params import partitions_and_dry_run
from vimbank.jobs.pulse import JobCancelled
from vimbank.jobs.summarise import summarise
from vimbank.llm.assess import ChatJudge
from vimbank.llm.compare import ChatComparer
from vimbank.llm.summarise import ChatWriter
from vimbank.ports import ChatMessage
from vimbank.service import MemoryService

pytestmark = pytest.mark.llm

ASKED = [ChatMessage("system", "Answer in JSON."), ChatMessage("user", "Is the sky blue by day?")]
LONG = [ChatMessage("user", "Tell me a very long story about a lighthouse, with many chapters.")]
ENDLESS = 3_000
"""Tokens that take the model minutes: one slot, so whoever asks next waits for them unless they are given up."""
SOON_S = 30.0


class Pulse:
    """A job that nobody stops."""

    def report(self, done: int, total: int | None = None, message: str = "") -> None:
        pass

    def check(self) -> None:
        pass


def test_a_reply_has_text_and_is_counted(open_chat: OpenChat) -> None:
    reply = open_chat().complete(ASKED, max_tokens=8)
    assert reply.text
    assert reply.usage.counted
    assert reply.usage.prompt_tokens > 10
    assert 0 < reply.usage.completion_tokens <= 8


def test_a_schema_is_kept(open_chat: OpenChat) -> None:
    schema = {
        "type": "object",
        "properties": {"blue": {"type": "boolean"}, "sure": {"type": "string", "enum": ["yes", "no"]}},
        "required": ["blue", "sure"],
        "additionalProperties": False,
    }
    value = json.loads(open_chat().complete(ASKED, schema=schema).text)
    assert set(value) == {"blue", "sure"}
    assert isinstance(value["blue"], bool)
    assert value["sure"] in ("yes", "no")


def test_json_that_is_cut_off_is_an_error(open_chat: OpenChat) -> None:
    schema = {"type": "object", "properties": {"story": {"type": "string"}}, "required": ["story"]}
    with pytest.raises(ModelError):
        open_chat().complete(LONG, schema=schema, max_tokens=3)


def test_a_time_out_ends_in_time_and_frees_the_model(open_chat: OpenChat) -> None:
    started = time.monotonic()
    with pytest.raises(BackendUnavailable):
        open_chat(timeout_s=1.0).complete(LONG, max_tokens=ENDLESS)
    assert time.monotonic() - started < 10
    _answers_soon(open_chat)


def test_a_cancelled_request_ends_at_once_and_frees_the_model(open_chat: OpenChat) -> None:
    started = time.monotonic()

    def check() -> None:
        if time.monotonic() - started > 1:
            raise JobCancelled("cancelled")

    with pytest.raises(JobCancelled):
        open_chat().complete(LONG, max_tokens=ENDLESS, check=check)
    assert time.monotonic() - started < 10
    _answers_soon(open_chat)


def test_a_summary_by_it_is_a_whole_one_or_none(open_chat: OpenChat, service: MemoryService) -> None:
    """Case 89: whatever the model says, a summary is text and tells its sources, or nothing was changed."""
    turns = [Turn("user", "I moved to Lisbon on 3 March."), Turn("assistant", "How do you like it?")]
    (added,) = service.add_turns(tenant="default", user_id="ana", session_id="s", turns=turns)
    chat = open_chat(max_tokens=64)
    around = Surroundings(
        service,
        None,  # type: ignore[arg-type]
        lambda: service.get("default", added.id).created_at,  # type: ignore[union-attr]
        None,  # type: ignore[arg-type]
        (),
        7.0,
        writer=lambda check: ChatWriter(chat, service.encoder, reply_tokens=64, run_tokens=10**6, check=check),
    )
    try:
        report = summarise(JobContext(around, Pulse()), partitions_and_dry_run({}))  # type: ignore[arg-type]
    except ModelError:
        report = None
    written = service.list(ListQuery(tenant="default", kind="summary")).items
    if report is None:
        assert not written
        return
    assert len(written) == report["written"]
    assert report["prompt_tokens"] > 0
    for each in written:
        assert each.text.strip()
        assert (each.metadata["method"], each.metadata["model"]) == ("llm", "smollm2")
        assert each.metadata["sources"]


def test_a_judgement_by_it_is_one_of_the_known_or_none(open_chat: OpenChat, service: MemoryService) -> None:
    """Case 89: whatever the model says, a judgement has a known reason, or the one by rules stands."""
    turns = [Turn("user", "I moved to Lisbon on 3 March."), Turn("assistant", "How do you like it?")]
    (added,) = service.add_turns(tenant="default", user_id="ana", session_id="s", turns=turns)
    before = service.get("default", added.id)  # type: ignore[union-attr]
    chat = open_chat(max_tokens=64)
    around = Surroundings(
        service,
        None,  # type: ignore[arg-type]
        lambda: before.created_at,
        None,  # type: ignore[arg-type]
        (),
        7.0,
        judge=lambda check: ChatJudge(chat, run_tokens=10**6, check=check),
    )
    try:
        report = assess(JobContext(around, Pulse()), partitions_and_dry_run({}))  # type: ignore[arg-type]
    except ModelError:
        report = None
    after = service.get("default", before.id)
    if report is None:
        assert after == before
        return
    assert (report["judged"], report["model"]) == (1, "smollm2")
    assert report["prompt_tokens"] > 0
    assert after.sample in (Sample.POSITIVE, Sample.NEGATIVE)
    assert (after.sample_reasons[0], len(after.sample_reasons)) == ("llm", 2)


def test_a_comparison_by_it_names_a_relation_or_nothing_changes(open_chat: OpenChat, service: MemoryService) -> None:
    """Case 89: whatever the model says, no memory vanishes, and only an older one is named stale."""
    texts = ("the bus takes Ana to the office on weekdays", "the bike takes Ana to the office on weekdays")
    drafts = [
        MemoryDraft(
            tenant="default", user_id="ana", bank="dialog", text=text, event_at=datetime(2026, 1, day, tzinfo=UTC)
        )
        for day, text in enumerate(texts, 1)
    ]
    old, new = (service.add(each).id for each in drafts)
    before = service.get("default", new)
    chat = open_chat(max_tokens=200)
    around = Surroundings(
        service,
        None,  # type: ignore[arg-type]
        lambda: before.created_at,
        None,  # type: ignore[arg-type]
        (),
        7.0,
        comparer=lambda check: ChatComparer(chat, run_tokens=10**6, check=check),
    )
    report = conflicts(JobContext(around, Pulse()), validate_conflicts({}))["by_model"]  # type: ignore[arg-type]
    assert (report["asked"], report["model"]) == (1, "smollm2")
    assert report["failed"] + sum(report["relations"].values()) == 1
    assert set(report["relations"]) == set(Relation)
    after = service.get("default", old)
    assert after.state is MemoryState.ACTIVE
    assert [each.new_id for each in after.ended] == [new] * report["ended"]
    assert service.get("default", new) == before


def _answers_soon(open_chat: OpenChat) -> None:
    """The server has let go of the request before."""
    started = time.monotonic()
    assert open_chat().complete(ASKED, max_tokens=1).text
    assert time.monotonic() - started < SOON_S
