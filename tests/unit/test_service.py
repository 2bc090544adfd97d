"""The facade: long texts, documents, sessions, tasks, feedback, a change of encoder, readiness."""

import itertools
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import SettableClock
from vimbank.domain.models import (
    AddResult,
    ListQuery,
    MemoryDraft,
    MemoryPatch,
    Partition,
    Query,
    Scope,
    Signal,
    Vectors,
)
from vimbank.encoders.hashing import HashingEncoder
from vimbank.errors import ConfigError, Conflict, InvalidInput, ModelError, NotFound, VimbankError
from vimbank.feed.notices import LocalNotices
from vimbank.feed.remotes import Remotes
from vimbank.ingestion.dialog import Turn
from vimbank.ingestion.tasks import TaskRun, TaskStep
from vimbank.service import MemoryService
from vimbank.settings import EncoderSettings, Settings, StoreSettings
from vimbank.wiring import open_service


def draft(text: str, **fields: object) -> MemoryDraft:
    return MemoryDraft(**{"tenant": "default", "user_id": "ana", "bank": "knowledge", "text": text, **fields})  # type: ignore[arg-type]


def query(text: str, **fields: object) -> Query:
    return Query(**{"tenant": "default", "user_id": "ana", "text": text, "reinforce": False, **fields})  # type: ignore[arg-type]


def texts(service: MemoryService, text: str, **fields: object) -> list[str]:
    return [each.memory.text for each in service.search(query(text, **fields)).results]


class FailingEncoder(HashingEncoder):
    """Refuses texts that hold a word, until it is mended."""

    def __init__(self, word: str) -> None:
        super().__init__()
        self.word: str | None = word

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        if self.word is not None and any(self.word in text for text in texts):
            raise ModelError("the model gave nothing usable")
        return super().encode_documents(texts)


# -- long texts and documents --


def test_case_113_a_fact_in_the_last_sentence_is_found_by_the_dense_leg(tmp_path: Path) -> None:
    with open_service(Settings(data_dir=tmp_path)) as service:
        _find_the_zebra(service)


def _find_the_zebra(service: MemoryService) -> None:
    filler = " ".join(f"Sentence number {number} says nothing of interest." for number in range(350))
    added = service.add(draft(f"{filler} The zebra keeps the golden key."))
    assert added.segments > 5
    for number in range(20):
        service.add(draft(f"Another note, number {number}, on the weather."))
    best = service.search(query("the zebra keeps the golden key", fusion="dense")).results[0].memory
    assert "zebra" in best.text
    assert best.source.parent_id == added.id


def test_a_long_memory_is_one_thing_to_get_update_and_delete(service: MemoryService) -> None:
    long = " ".join(f"word{number}" for number in range(1_000))
    added = service.add(draft(long, metadata={"a": 1}))
    assert service.get("default", added.id).text == long
    service.update("default", added.id, MemoryPatch(text="short now"))
    assert texts(service, "word999", fusion="sparse") == []
    assert texts(service, "short now")[0] == "short now"
    assert service.list(ListQuery(tenant="default", user_id="ana", parent_id=added.id)).total == 1
    service.update("default", added.id, MemoryPatch(text=long))
    assert service.search(query("word999", fusion="sparse")).results[0].memory.source.parent_id == added.id
    service.delete("default", added.id)
    assert service.list(ListQuery(tenant="default", user_id="ana")).total == 0
    assert texts(service, "word999", fusion="sparse") == []
    assert service.check().ok


def test_segments_cover_the_parent_and_say_where_they_stand(service: MemoryService) -> None:
    long = " ".join(f"word{number}." for number in range(900))
    added = service.add(draft(long, title="Words"))
    parts = service.list(ListQuery(tenant="default", parent_id=added.id, limit=1_000)).items
    assert len(parts) == added.segments
    assert [part.source.position for part in parts] == list(range(len(parts)))
    for part in parts:
        assert long[part.source.start : part.source.end] == part.text
        assert part.title == "Words"
    covered = {at for part in parts for at in range(part.source.start or 0, part.source.end or 0)}
    assert all(at in covered for at, letter in enumerate(long) if not letter.isspace())


def test_case_90_all_segments_of_a_large_document_are_kept(service: MemoryService) -> None:
    text = "\n\n".join(f"Chapter {number}. " + f"Fact {number} about topic{number}. " * 30 for number in range(210))
    added = service.add_document(tenant="default", user_id="ana", title="Big", text=text)
    assert added.segments >= 200
    assert service.list(ListQuery(tenant="default", parent_id=added.id, limit=1_000)).total == added.segments
    for number in (0, 77, 199):
        assert f"topic{number}." in texts(service, f"topic{number}", fusion="sparse", top_k=1)[0]


def test_a_document_needs_either_text_or_content(service: MemoryService) -> None:
    for given in ({}, {"text": "a", "content": b"b"}):
        with pytest.raises(InvalidInput):
            service.add_document(tenant="default", user_id="ana", title="x", **given)  # type: ignore[arg-type]


def test_the_same_long_text_folds(service: MemoryService) -> None:
    long = " ".join(f"word{number}" for number in range(1_000))
    first, second = service.add(draft(long)), service.add(draft(long))
    assert (second.id, second.duplicate, second.segments) == (first.id, True, first.segments)


# -- sessions and tasks --


def test_turns_become_rounds_with_windows_and_positions_go_on(service: MemoryService) -> None:
    def say(*contents: str) -> Sequence[AddResult | VimbankError]:
        roles = ("user", "assistant")
        turns = [Turn(role, content) for content, role in zip(contents, roles * len(contents), strict=False)]
        return service.add_turns(tenant="default", user_id="ana", session_id="s1", turns=turns)

    say("where is the cello?", "in the hall")
    say("and the bow?", "beside it", "thank you", "gladly")
    stored = service.list(ListQuery(tenant="default", session_id="s1")).items
    assert [(each.kind, each.source.position) for each in stored] == [("round", 0), ("round", 1), ("round", 2)]
    (best, *_) = service.search(query("the bow", banks=["dialog"], fusion="convex")).results
    assert [each.source.position for each in best.window] == [0, 1, 2]


def test_a_turn_sent_again_under_its_event_id_is_stored_once(service: MemoryService) -> None:
    turns = [Turn("user", "hello", event_id="e1"), Turn("assistant", "hi")]
    (first,) = service.add_turns(tenant="default", user_id="ana", session_id="s", turns=turns)
    (again,) = service.add_turns(tenant="default", user_id="ana", session_id="s", turns=turns)
    assert isinstance(again, AddResult)
    assert again.duplicate
    assert first == replace(again, duplicate=False)


def test_a_task_run_is_found_once_however_many_steps_match(service: MemoryService) -> None:
    for number, outcome in enumerate(("failure", "success")):
        steps = [TaskStep(action=f"go to shelf {at}", observation="you see a mug") for at in range(3)]
        run = TaskRun("default", "ana", "put a clean mug on the desk", steps, outcome, id=f"run-{number}")  # type: ignore[arg-type]
        assert all(isinstance(each, AddResult) for each in service.add_task(run))
    results = service.search(query("put a clean mug on the desk", banks=["task"])).results
    runs = [each.memory.source.parent_id or each.memory.id for each in results]
    assert runs == ["run-1", "run-0"], "one hit a run, the successful one first"
    service.delete("default", "run-0")
    assert service.list(ListQuery(tenant="default", bank="task")).total == 4


# -- batches and failures --


def test_case_21_one_text_the_encoder_refuses_does_not_take_the_batch_down(tmp_path: Path) -> None:
    encoder = FailingEncoder("poison")
    with open_service(Settings(data_dir=tmp_path), encoder=encoder) as service:
        batch = [draft(f"note {number}" + (" poison" if number == 3 else "")) for number in range(10)]
        results = service.add_many(batch)
        assert [isinstance(each, ModelError) for each in results] == [number == 3 for number in range(10)]
        assert service.stats("default").memories == 9
        encoder.word = None
        assert all(isinstance(each, AddResult) for each in service.add_many(batch))
        assert service.stats("default").memories == 10
        assert service.check().ok


def test_a_bad_draft_names_its_field_and_the_rest_is_kept(service: MemoryService) -> None:
    results = service.add_many([draft("one"), draft("two", bank="cellar"), draft("  "), draft("four", importance=2)])
    fields = [each.errors[0].field if isinstance(each, InvalidInput) else None for each in results]
    assert fields == [None, "bank", "text", "importance"]


def test_a_vector_must_fit(service: MemoryService) -> None:
    unit = HashingEncoder().encode_documents(["x"])[0]
    for vector in (unit[:10], unit * 2):
        with pytest.raises(InvalidInput, match="vector"):
            service.add(draft("x", vector=vector))
    assert service.add(draft("x", vector=unit)).id


def test_a_caller_id_with_other_content_is_a_conflict(service: MemoryService) -> None:
    service.add(draft("first", id="mine"))
    assert service.add(draft("first", id="mine")).duplicate
    with pytest.raises(Conflict):
        service.add(draft("second", id="mine"))


def test_an_update_expects_the_revision_it_read(service: MemoryService) -> None:
    added = service.add(draft("first"))
    changed = service.update("default", added.id, MemoryPatch(text="second"), expected_revision=added.revision)
    with pytest.raises(Conflict):
        service.update("default", added.id, MemoryPatch(text="third"), expected_revision=added.revision)
    assert service.get("default", added.id) == changed


def test_updates_from_many_threads_all_count(service: MemoryService) -> None:
    added = service.add(draft("shared text"))

    def mark(number: int) -> None:
        service.update("default", added.id, MemoryPatch(metadata={f"k{number}": number}))

    threads = [threading.Thread(target=mark, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert service.get("default", added.id).metadata == {f"k{number}": number for number in range(6)}
    assert len(service.history("default", added.id)) == 7


# -- scopes --


def test_case_61_an_id_of_another_tenant_is_unknown(service: MemoryService) -> None:
    added = service.add(draft("private", tenant="b"))
    for call in (
        lambda: service.get("a", added.id),
        lambda: service.update("a", added.id, MemoryPatch(text="mine now")),
        lambda: service.delete("a", added.id),
        lambda: service.history("a", added.id),
        lambda: service.feedback("a", added.id, Signal.USED),
    ):
        with pytest.raises(NotFound):
            call()
    assert service.get("b", added.id).text == "private"


def test_case_59_nothing_of_another_user_or_tenant_on_any_read(service: MemoryService) -> None:
    service.add(draft("the plan of ben", user_id="ben"))
    service.add(draft("the plan of another house", tenant="other"))
    assert texts(service, "plan") == []
    assert service.list(ListQuery(tenant="default", user_id="ana")).total == 0
    assert service.stats("default", "ana").memories == 0
    assert texts(service, "plan", user_id="*") == ["the plan of ben"]


def test_shared_memories_are_read_by_all_users_unless_told_otherwise(service: MemoryService) -> None:
    service.add(draft("quiet hours start at ten", user_id="shared"))
    assert texts(service, "quiet hours") == ["quiet hours start at ten"]
    assert texts(service, "quiet hours", include_shared=False) == []


def test_delete_all_of_a_session_leaves_the_others(service: MemoryService) -> None:
    for session in ("s1", "s2"):
        service.add(draft(f"note of {session}", bank="dialog", session_id=session))
    assert service.delete_all(Scope("default", "ana", session_id="s1")) == 1
    assert texts(service, "note") == ["note of s2"]


# -- recalls --


def test_case_32_a_memory_recalled_today_stands_before_its_twin(service: MemoryService, clock: SettableClock) -> None:
    first = service.add(draft("the tram leaves at nine", bank="dialog", session_id="a"))
    second = service.add(draft("the tram leaves at nine", bank="dialog", session_id="b"))
    clock.advance(days=30)
    service.feedback("default", second.id, Signal.USED)
    assert service.fold_recalls() == 1
    found = service.search(query("when does the tram leave", explain=True)).results
    assert [each.memory.id for each in found] == [second.id, first.id]
    factors = [each.explanation.factors["time"] for each in found if each.explanation]
    assert factors[0] == pytest.approx(1.0)
    assert factors[1] == pytest.approx(0.999 + 0.001 * 2 ** (-30 / 7), abs=1e-9)


def test_case_141_returned_counts_once_unreinforced_not_at_all_feedback_more(service: MemoryService) -> None:
    ids = [service.add(draft(f"fact number {number} about herons")).id for number in range(3)]
    service.search(query("herons", reinforce=True))
    service.search(query("herons", reinforce=False))
    service.feedback("default", ids[0], Signal.USED)
    service.feedback("default", ids[1], Signal.IGNORED)
    service.fold_recalls()
    memories = [service.get("default", each) for each in ids]
    assert [each.recall_count for each in memories] == [2, 1, 1]
    assert [each.strength for each in memories] == [4.0, 2.0, 2.0]
    assert service.fold_recalls() == 0, "each entry counts once"


def test_recalls_are_folded_when_the_service_closes(tmp_path: Path) -> None:
    with open_service(settings(tmp_path, 384)) as service:
        added = service.add(draft("red kite"))
        service.search(query("red kite", reinforce=True))
    with open_service(settings(tmp_path, 384)) as service:
        assert service.get("default", added.id).recall_count == 1
        assert service.fold_recalls() == 0


def test_recalls_are_folded_in_time(tmp_path: Path) -> None:
    store = StoreSettings(recalls_flush_s=0.01, recalls_fold_s=0.01)
    with open_service(settings(tmp_path, 384).model_copy(update={"store": store})) as service:
        added = service.add(draft("red kite"))
        service.search(query("red kite", reinforce=True))
        deadline = time.monotonic() + 10
        while not service.get("default", added.id).recall_count and time.monotonic() < deadline:
            threading.Event().wait(0.01)
        assert service.get("default", added.id).recall_count == 1
        assert service.check().ok


def test_case_144_strength_is_capped_and_a_fresh_exact_match_still_wins(service: MemoryService) -> None:
    trivial = service.add(draft("a note on something", bank="dialog"))
    for _ in range(40):
        service.feedback("default", trivial.id, Signal.USED)
    service.fold_recalls()
    assert service.get("default", trivial.id).strength == 20.0
    exact = service.add(draft("the exact words of the question", bank="dialog"))
    assert service.search(query("the exact words of the question")).results[0].memory.id == exact.id


# -- notices --


class Noted(LocalNotices):
    """Keeps what was announced."""

    def __init__(self) -> None:
        super().__init__()
        self.revisions: list[int] = []

    def announce(self, revision: int) -> None:
        self.revisions.append(revision)


def test_a_write_announces_a_revision_that_it_wrote_and_no_write_none(service: MemoryService) -> None:
    notices = Noted()
    service._remotes = Remotes([], notices, every_s=60)  # as with an engine outside the process
    first = service.add(draft("red kite"))
    service.add(draft("red kite"))  # a duplicate: nothing new
    service.add_many([draft("blue heron"), draft(""), draft("grey owl")])
    service.archive("default", first.id)
    service.restore("default", first.id)
    updated = service.update("default", first.id, MemoryPatch(pinned=True))
    service.delete("default", first.id)
    service.feedback("default", service.add(draft("tern")).id, Signal.USED)
    service.fold_recalls()
    assert notices.revisions == [1, 3, 4, 5, updated.revision, 7, 8, 9]


# -- the encoder --


def settings(folder: Path, dimension: int) -> Settings:
    return Settings(data_dir=folder, encoder=EncoderSettings(kind="hashing", dimension=dimension))


def test_case_16_another_encoder_is_refused_with_both_names_and_the_command(tmp_path: Path) -> None:
    with open_service(settings(tmp_path, 384)) as service:
        service.add(draft("red kite"))
    with pytest.raises(ConfigError, match=r"384.*768.*vimbank reindex|768.*384.*vimbank reindex"):
        open_service(settings(tmp_path, 768))
    with open_service(settings(tmp_path, 384)) as service:
        assert texts(service, "red kite") == ["red kite"]


def test_reindex_changes_the_encoder_while_serving(tmp_path: Path) -> None:
    with open_service(settings(tmp_path, 384)) as service:
        for number in range(50):
            service.add(draft(f"memory number {number}"))
        before = texts(service, "memory number 7", fusion="dense", top_k=1)
        report = service.reindex(HashingEncoder(64), batch=7)
        assert (report.memories, report.current.dimension) == (50, 64)
        assert texts(service, "memory number 7", fusion="dense", top_k=1) == before
        service.add(draft("a later memory"))
        assert service.check().ok
    with open_service(settings(tmp_path, 64)) as service:
        assert texts(service, "a later memory", top_k=1) == ["a later memory"]
        assert service.check().ok


def test_a_process_with_the_former_encoder_says_so_after_a_reindex(tmp_path: Path) -> None:
    with open_service(settings(tmp_path, 384)) as stale, open_service(settings(tmp_path, 384)) as service:
        service.add(draft("red kite"))
        assert texts(stale, "red kite") == ["red kite"]
        service.reindex(HashingEncoder(64))
        for call in (lambda: texts(stale, "red kite"), lambda: stale.add(draft("blue heron"))):
            with pytest.raises(ConfigError, match="restart"):
                call()
        assert not stale.ready().ok
        assert service.ready().ok


# -- all at once --


@pytest.mark.timeout(120)
def test_case_18_searches_adds_and_deletes_at_once(tmp_path: Path) -> None:
    errors: list[BaseException] = []
    stop = threading.Event()
    with open_service(settings(tmp_path, 384)) as service:
        service.add_many([draft(f"seed number {number}") for number in range(200)])
        added: list[str] = []
        numbers = itertools.count()

        def guarded(work: object) -> None:
            try:
                while not stop.is_set():
                    work()  # type: ignore[operator]
            except BaseException as error:  # noqa: BLE001 - a thread's error has to reach the test
                errors.append(error)

        def add() -> None:
            added.append(service.add(draft(f"added {next(numbers)}")).id)

        def delete() -> None:
            if added:
                service.delete("default", added.pop())

        works = [lambda: service.search(query("seed number 7", reinforce=True))] * 4 + [add, add, delete]
        threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        stop.wait(4)
        stop.set()
        for thread in threads:
            thread.join()
        assert errors == []
        assert service.check().ok
        assert texts(service, "seed number 7", top_k=1) == ["seed number 7"]


def test_next_position_counts_deleted_turns(service: MemoryService) -> None:
    turns = [Turn("user", "hello")]
    (first,) = service.add_turns(tenant="default", user_id="ana", session_id="s", turns=turns)
    assert isinstance(first, AddResult)
    service.delete("default", first.id)
    service.add_turns(tenant="default", user_id="ana", session_id="s", turns=turns)
    (memory,) = service.list(ListQuery(tenant="default", session_id="s")).items
    assert memory.source.position == 1
    assert memory.partition == Partition("default", "ana", "dialog")


# -- late interaction --


class WordTokens(HashingEncoder):
    """A multi-vector encoder: one vector a word, as a ColBERT checkpoint has one a token (V-13, B15)."""

    def encode_query_tokens(self, text: str) -> Vectors:
        return self.encode_documents(text.split())

    def encode_document_tokens(self, texts: Sequence[str]) -> list[Vectors]:
        return [self.encode_documents(text.split()) for text in texts]


def test_token_vectors_are_stored_and_rerank_by_maxsim(tmp_path: Path) -> None:
    with open_service(Settings(data_dir=tmp_path), encoder=WordTokens()) as service:
        service.add(draft("the red kite circles over the hill", id="kite"))
        service.add(draft("a red hill and a kite shop", id="shop"))
        found = service.search(query("red kite circles", explain=True)).results
        assert found[0].memory.id == "kite"
        explanation = found[0].explanation
        assert explanation is not None
        # Every query word stands in the text, so MaxSim is 1, of which half counts.
        assert explanation.parts["rerank"] == pytest.approx(0.5, abs=1e-3)
        assert sum(explanation.parts.values()) == pytest.approx(found[0].score, abs=1e-6)
    with open_service(Settings(data_dir=tmp_path), encoder=WordTokens()) as service:
        again = service.search(query("red kite circles", explain=True)).results
        assert [(each.memory.id, each.score) for each in again] == [(each.memory.id, each.score) for each in found]


def test_pooled_vectors_come_from_the_token_vectors(tmp_path: Path) -> None:
    with open_service(Settings(data_dir=tmp_path), encoder=WordTokens()) as service:
        service.add(draft("red kite"))
        (best,) = service.search(query("red kite", fusion="dense")).results
        assert best.score > 0.99
