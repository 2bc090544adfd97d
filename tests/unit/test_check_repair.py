"""check --repair: what is really damaged is named, and mended from the store; nothing is lost meanwhile."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.repair_kit import Place, components, fill, found, place, repaired
from tests.runner_kit import until
from vimbank.domain.checks import CheckReport
from vimbank.domain.models import (
    ListQuery,
    Memory,
    MemoryDraft,
    MemoryPatch,
    MemoryState,
    Partition,
    Scope,
    Signal,
    StateChange,
)
from vimbank.encoders.hashing import HashingEncoder
from vimbank.indexes.partition import LocalPartition
from vimbank.jobs.check import check_all
from vimbank.jobs.context import JobContext
from vimbank.jobs.portrait import portrait
from vimbank.jobs.summarise import summarise
from vimbank.service import MemoryService
from vimbank.wiring.jobs import open_jobs

HERE = Partition("default", "ana", "knowledge")
TEXTS = ("red kite over the pier", "blue heron in the reeds", "grey owl at dusk")
FORMS = ("alone", pytest.param("scaled", marks=pytest.mark.services))


@pytest.fixture(params=FORMS)
def here(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Both forms, the indexes in process."""
    with place(request.param, tmp_path / "data") as made:
        yield made


def index_of(service: MemoryService) -> LocalPartition:
    """The process's own index, to be damaged."""
    with service._indexes.read(HERE) as index:
        assert isinstance(index, LocalPartition)
        return index


def vectors(service: MemoryService, ids: list[str]) -> np.ndarray[Any, Any]:
    index = index_of(service)
    return index.dense.vectors(index.rows(ids))


# -- the in-process index --


def alter_a_vector(index: LocalPartition) -> None:
    index.dense.replace(1, np.eye(32, dtype=np.float32)[0])


def alter_terms(index: LocalPartition) -> None:
    index.sparse.replace(1, ["nonsense"])


def lose_a_row(index: LocalPartition) -> None:
    for leg in (index.dense, index.sparse, index._roster):
        leg.remove(0)


def make_stale(index: LocalPartition) -> None:
    index._roster._numbers[1, 2] -= 1  # its revision


@pytest.mark.parametrize("damage", [alter_a_vector, alter_terms, lose_a_row, make_stale])
def test_a_damaged_index_is_named_and_made_anew(here: Place, damage: Callable[[LocalPartition], None]) -> None:
    with here.open() as service:
        ids = fill(service, TEXTS)
        wanted = vectors(service, ids)
        damage(index_of(service))
        repaired(service, "index")
        assert np.array_equal(vectors(service, ids), wanted)
        assert found(service, "heron", top_k=1) == [TEXTS[1]]
    with here.open() as again:
        assert components(again.check()) == [], "the new snapshot holds what was repaired"


def test_a_surplus_row_is_named_and_goes(here: Place) -> None:
    with here.open() as service:
        ids = fill(service, TEXTS)
        index_of(service)
        here.sql(f"DELETE FROM embeddings WHERE number = (SELECT number FROM memories WHERE id = '{ids[0]}')")
        here.sql(f"DELETE FROM memories WHERE id = '{ids[0]}'", f"DELETE FROM history WHERE memory_id = '{ids[0]}'")
        repaired(service, "index")
        assert ids[0] not in index_of(service)._roster.all_ids()


# -- snapshots --


def test_a_damaged_snapshot_goes_when_a_good_one_stands(here: Place) -> None:
    with here.open() as service:
        fill(service, TEXTS)
        found(service, "kite")
    (file,) = here.snapshots
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with here.open() as service:
        assert found(service, "heron", top_k=1) == [TEXTS[1]]
        repaired(service, "snapshots")
        assert here.snapshots == [file], "nothing that was set aside is left"
        assert service.ready().components["indexes"] == "ok"
    with here.open() as service:
        assert components(service.check()) == []


def test_a_snapshot_that_is_damaged_while_its_index_is_loaded_is_found(here: Place) -> None:
    with here.open() as service:
        fill(service, TEXTS)
        found(service, "kite")
        service.flush()
        (file,) = here.snapshots
        damaged = bytes(len(file.read_bytes()))
        file.write_bytes(damaged)
        assert components(service.check()) == ["snapshots"]
        assert file.read_bytes() == damaged, "without a repair nothing is changed"
        repaired(service, "snapshots")
        assert here.snapshots == [file]


def test_what_was_set_aside_of_a_partition_that_is_gone_goes_too(here: Place) -> None:
    with here.open() as service:
        fill(service, TEXTS)
        found(service, "kite")
        service.flush()
        (here.settings.data_dir / "indexes" / f"{'0' * 32}.0.damaged").write_bytes(b"nobody's")
        repaired(service, "snapshots")
        assert len(here.snapshots) == 1


# -- embeddings --


def test_a_lost_embedding_is_made_again_in_every_process(here: Place) -> None:
    with here.open() as service, here.open() as other:
        ids = fill(service, TEXTS)
        wanted = vectors(service, ids)
        assert np.array_equal(vectors(other, ids), wanted)
        here.sql("DELETE FROM embeddings")
        service._indexes.rebuild(HERE)  # such as a restart does
        other._indexes.rebuild(HERE)
        assert not vectors(service, ids).any()
        report = repaired(service, "embeddings")
        assert report.repaired == {"embeddings": 3}
        assert np.array_equal(vectors(service, ids), wanted)
        assert np.array_equal(vectors(other, ids), wanted), "the other process makes its index anew"
        assert components(other.check()) == []
    assert here.sql("SELECT count(*) FROM embeddings") == [(3,)]


@pytest.mark.parametrize("blob", [np.ones(8, "<f4"), np.full(32, np.nan, "<f4")])
def test_an_embedding_that_cannot_be_the_encoders_is_made_again(here: Place, blob: np.ndarray[Any, Any]) -> None:
    with here.open() as service:
        ids = fill(service, TEXTS)
        wanted = vectors(service, ids)
        hexadecimal = blob.tobytes().hex()
        value = f"x'{hexadecimal}'" if here.settings.store.url is None else f"'\\x{hexadecimal}'"
        here.sql(f"UPDATE embeddings SET vector = {value} WHERE number = 2")
        report = service.check()
        assert set(components(report)) == {"embeddings", "index"}
        assert service.check(repair=True).ok
        assert components(service.check()) == []
        assert np.array_equal(vectors(service, ids), wanted)


def test_orphans_beside_no_memory_go(here: Place) -> None:
    with here.open() as service:
        ids = fill(service, TEXTS)
        service.delete("default", ids[0])
        vector = "x'00'" if here.settings.store.url is None else "'\\x00'"
        here.sql(
            f"INSERT INTO embeddings (encoder, number, vector) VALUES (1, 1, {vector})",  # of a deleted memory
            f"INSERT INTO embeddings (encoder, number, vector) VALUES (1, 77, {vector})",  # of none
        )
        report = repaired(service, "embeddings")
        assert [problem.text for problem in report.problems] == [
            "embeddings: a row of number 1, which no memory has",
            "embeddings: a row of number 77, which no memory has",
        ]
    assert here.sql("SELECT number FROM embeddings ORDER BY number") == [(2,), (3,)]


# -- the store --


def test_counters_that_are_behind_are_set_right_and_nothing_is_written_over(here: Place) -> None:
    with here.open() as service:
        ids = fill(service, TEXTS)
        found(service, "kite")
        here.sql("UPDATE counter SET revision = 1, number = 1")
        repaired(service, "store")
        service.add(MemoryDraft(tenant="default", user_id="ana", bank="knowledge", text="a fourth"))
        assert found(service, "fourth", top_k=1) == ["a fourth"]
        assert [service.get("default", each).text for each in ids] == list(TEXTS)
        assert components(service.check()) == []
    assert here.sql("SELECT revision, number FROM counter") == [(4, 4)]


def test_a_recall_is_counted_after_the_counter_of_the_access_log_was_lost_with_its_lines(here: Place) -> None:
    """A line of a number that was folded in before would never be."""
    with here.open() as service:
        (name, *_) = fill(service, TEXTS)
        for _ in range(3):
            service.feedback("default", name, Signal.USED)
        assert service.fold_recalls() == 3
        assert list(service.trim_recalls(before=service.clock() + timedelta(days=1))) == [3]
        here.sql("UPDATE counter SET recall = 0")
        told = repaired(service, "store").problems
        assert [each.text for each in told] == ["counter.recall is 0, but counter.folded has 3"]
        service.feedback("default", name, Signal.USED)
        assert service.fold_recalls() == 1
        assert service.get("default", name).recall_count == 4


def test_a_memory_that_only_its_history_knows_is_told_and_left(here: Place) -> None:
    with here.open() as service:
        ids = fill(service, TEXTS)
        here.sql("DELETE FROM embeddings WHERE number = 3", f"DELETE FROM memories WHERE id = '{ids[2]}'")
        report = service.check(repair=True)
        assert not report.ok
        (left,) = [problem for problem in report.everything if not problem.repaired]
        assert (left.component, left.text) == ("store", f"{ids[2]} of tenant default: has a history, but is not there")
        assert left.why is not None
        assert "backup" in left.why
        assert service.history("default", ids[2])[0].new_text == TEXTS[2], "what is left of it stays"


def test_a_segment_without_its_document_is_told_and_left(here: Place) -> None:
    with here.open() as service:
        text = " ".join(f"Sentence number {n} of a long manual." for n in range(200))
        added = service.add_document(tenant="default", user_id="ana", text=text)
        here.sql(f"DELETE FROM memories WHERE id = '{added.id}'", f"DELETE FROM history WHERE memory_id = '{added.id}'")
        report = service.check(repair=True)
        assert not report.ok
        assert len(report.problems) == added.segments
        assert all(problem.component == "store" and problem.why for problem in report.problems)


def test_a_damaged_index_of_the_database_is_made_anew(tmp_path: Path) -> None:
    """The index is hidden from SQLite while a row is changed: it then holds an entry that no row has."""
    with place("alone", tmp_path) as here:
        with here.open() as service:
            fill(service, TEXTS)
        database = str(here.settings.data_dir / "vimbank.db")

        def run(*statements: str) -> list[Any]:
            connection = sqlite3.connect(database)
            rows: list[Any] = []
            for statement in ("PRAGMA writable_schema=ON", *statements):
                rows = connection.execute(statement).fetchall()
            connection.commit()
            connection.close()
            return rows

        ((name, table, page, sql),) = run(
            "SELECT name, tbl_name, rootpage, sql FROM sqlite_master WHERE name = 'memories_partition_revision'"
        )
        run("DELETE FROM sqlite_master WHERE name = 'memories_partition_revision'")
        run("UPDATE memories SET user_id = 'ben' WHERE number = 1")
        run(f"INSERT INTO sqlite_master VALUES ('index', '{name}', '{table}', {page}, '{sql}')")
        run("UPDATE memories SET user_id = 'ben' WHERE number = 1")
        with here.open() as service:
            first = service.check()
            assert "store" in components(first)
            assert any("memories_partition_revision" in problem.text for problem in first.problems)
            assert service.check(repair=True).ok
            assert components(service.check()) == []


@pytest.mark.services
def test_an_invalid_index_of_postgresql_is_made_anew(tmp_path: Path) -> None:
    with place("scaled", tmp_path) as here, here.open() as service:
        fill(service, TEXTS)
        here.sql("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'memories_revision'::regclass")
        repaired(service, "store")


# -- outside the process --

REMOTE = (
    pytest.param("sparse", "ELASTICSEARCH_A", id="sparse-A"),
    pytest.param(
        "sparse", "ELASTICSEARCH_B", id="sparse-B"
    ),  # it remembers deletions, and what is not newer is refused
    pytest.param("dense", "ELASTICSEARCH_A", id="dense-A"),
)


@pytest.fixture
def outside(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Place, str]]:
    leg, server = request.param
    with place("scaled", tmp_path / "data", leg, server=server) as made:
        yield made, leg


def on_servers(function: Any) -> Any:
    values = [pytest.param(each.values, id=each.id) for each in REMOTE]
    return pytest.mark.services(pytest.mark.parametrize("outside", values, indirect=True)(function))


def document(here: Place, number: int) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Path, query parameters and content of a memory's document; the form holds one leg there."""
    with closing(here.client) as client:
        for index in client.ask("GET", f"/{here.settings.elasticsearch.prefix}-*/_mapping"):
            hits = client.ask("POST", f"/{index}/_search", {"query": {"term": {"number": number}}})["hits"]["hits"]
            if hits:
                params = {"routing": hits[0]["_source"]["partition"], "refresh": "true"}
                return f"/{index}/_doc/{{}}", params, hits[0]["_source"]
    raise AssertionError("there is no such document")


@on_servers
def test_a_missing_document_is_named_and_applied_again(outside: tuple[Place, str]) -> None:
    here, leg = outside
    with here.open() as service:
        fill(service, TEXTS)
        assert service.check().ok
        path, params, _ = document(here, 2)
        with closing(here.client) as client:
            client.ask("DELETE", path.format(2), params=params)
        report = repaired(service, f"remote_{leg}")
        assert report.repaired == {f"remote_{leg}": 1}
        assert found(service, "blue heron in the reeds", top_k=1, fusion=leg) == [TEXTS[1]]


@on_servers
def test_a_surplus_and_a_changed_document_go(outside: tuple[Place, str]) -> None:
    here, leg = outside
    with here.open() as service:
        fill(service, TEXTS)
        assert service.check().ok
        path, params, source = document(here, 3)
        with closing(here.client) as client:
            client.ask("PUT", path.format(999), {**source, "number": 999, "id": "nobody"}, params=params)
            client.ask("PUT", path.format(3), {**source, "id": "changed"}, params=params)
        report = repaired(service, f"remote_{leg}")
        assert report.repaired == {f"remote_{leg}": 2}
        assert sorted(found(service, "kite heron owl", fusion=leg)) == sorted(TEXTS)


@on_servers
def test_a_document_of_a_user_of_whom_nothing_is_left_goes(outside: tuple[Place, str]) -> None:
    here, leg = outside
    with here.open() as service:
        fill(service, TEXTS)
        assert service.check().ok
        path, params, source = document(here, 1)
        service.delete_all(Scope("default", "ana"))
        assert service.check().ok
        with closing(here.client) as client:
            client.ask("PUT", path.format(999), {**source, "number": 999}, params=params)
        repaired(service, f"remote_{leg}")


@on_servers
def test_a_lost_embedding_reaches_the_index_outside(outside: tuple[Place, str]) -> None:
    here, leg = outside
    with here.open() as service:
        fill(service, TEXTS)
        assert service.check().ok
        here.sql("DELETE FROM embeddings WHERE number = 2")
        assert service.check(repair=True).repaired["embeddings"] == 1
        assert components(service.check()) == []
        assert found(service, "blue heron in the reeds", top_k=1, fusion=leg) == [TEXTS[1]]


def test_an_index_out_of_reach_is_told_and_left(tmp_path: Path) -> None:
    with place("alone", tmp_path) as here:
        elasticsearch = here.settings.elasticsearch.model_copy(update={"url": "http://127.0.0.1:9"})
        index = here.settings.index.model_copy(update={"sparse": "elasticsearch"})
        down = here.settings.model_copy(update={"elasticsearch": elasticsearch, "index": index})
        with Place(down).open() as service:
            fill(service, TEXTS)
            report = service.check(repair=True)
            assert components(report) == ["remote_sparse"]
            assert not report.ok
            assert report.repaired == {}
            assert "no answer" in str(report.everything[0])


# -- summaries --


TURNS = ("I live in Lisbon", "My cat is called Mochi", "I play the cello", "I work at the port", "I like rye bread")


@contextmanager
def by_hand(here: Place, service: MemoryService) -> Iterator[JobContext]:
    with closing(open_jobs(here.settings, service)) as jobs, jobs.by_hand() as context:
        yield context


def summaries(service: MemoryService) -> dict[str, Memory]:
    """Every summary and portrait, by id."""
    pages = [service.derived("default", "ana", kind, bank="dialog") for kind in ("summary", "portrait")]
    return {memory.id: memory for page in pages for memory in page.items}


def test_stale_summaries_are_written_anew_and_no_other_is_added(here: Place) -> None:
    with here.open() as service, by_hand(here, service) as context:
        ids = fill(service, TURNS, bank="dialog")
        for job in (summarise, portrait):
            job(context, {})
        written = summaries(service)
        assert {each.metadata["level"] for each in written.values()} == {"group", "day", "global"}
        service.update("default", ids[0], MemoryPatch(text="I live in Porto now"))
        fill(service, [f"the rain of day {n}" for n in range(5)], bank="dialog")  # enough for another group

        def check(**given: Any) -> CheckReport:
            return check_all(context, None, repair=given.get("repair", False), progress=lambda _done, _all: None)

        repaired(service, "summaries", check=check)
        fresh = summaries(service)
        assert set(fresh) == set(written), "what nobody asked for is not written"
        assert not any(memory.metadata["stale"] for memory in fresh.values())
        assert "Porto" in next(each.text for each in fresh.values() if each.metadata["level"] == "group")


def test_a_summary_whose_sources_are_gone_goes(here: Place) -> None:
    with here.open() as service, by_hand(here, service) as context:
        ids = fill(service, TURNS, bank="dialog")
        kept = fill(service, ["I am called Ana"], user="ben", bank="dialog")
        summarise(context, {})
        for each in ids:
            service.delete("default", each)
        assert len(summaries(service)) == 3
        report = check_all(context, None, repair=False, progress=lambda _done, _all: None)
        assert set(components(report)) == {"summaries"}
        assert "5 of its 5 sources are gone" in str(report.everything)
        assert check_all(context, None, repair=True, progress=lambda _done, _all: None).ok
        assert summaries(service) == {}
        assert service.get("default", kept[0]).text == "I am called Ana"


def test_without_the_jobs_stale_summaries_are_told_alone(here: Place) -> None:
    with here.open() as service:
        ids = fill(service, TURNS, bank="dialog")
        with by_hand(here, service) as context:
            summarise(context, {})
        service.delete("default", ids[0])
        before = summaries(service)
        report = service.check(repair=True)
        assert not report.ok
        assert set(components(report)) == {"summaries"}
        assert {each: memory.text for each, memory in summaries(service).items()} == {
            each: memory.text for each, memory in before.items()
        }


# -- while memories are written --


def test_nothing_is_lost_and_nothing_is_told_falsely_while_memories_are_written(here: Place) -> None:
    with here.open() as service:
        ids = fill(service, TEXTS)
        stop = threading.Event()
        written: list[str] = []
        deleted: list[str] = []

        def write() -> None:
            while not stop.is_set():
                written.extend(fill(service, [f"note {len(written)} on herons"]))
                service.update("default", ids[0], MemoryPatch(text=f"red kite, seen {len(written)} times"))
                if len(written) % 3 == 0:
                    deleted.append(written[-2])
                    service.delete("default", written[-2])

        writer = threading.Thread(target=write)
        writer.start()
        try:
            until(lambda: len(written) > 5)
            for _ in range(5):
                assert components(service.check()) == []
            for _ in range(3):
                alter_a_vector(index_of(service))
                here.sql("DELETE FROM embeddings WHERE number = 2")
                assert service.check(repair=True).ok
        finally:
            stop.set()
            writer.join()
        assert components(service.check()) == []
        assert {memory.id for memory in service.list(ListQuery(tenant="default", limit=1000)).items} == {
            *ids,
            *written,
        } - {*deleted}


# -- another encoder --


def test_case_140_everything_works_after_a_change_of_the_vectors_dimension(here: Place) -> None:
    """No table is left at the old dimension: delete, archive, restore, supersede, update and check all work."""
    with here.open() as service:
        ids = fill(service, [*TEXTS, "a fourth", "a fifth"])
        found(service, "kite")
        other = HashingEncoder(64)
        service.reindex(other)
        assert set(here.sql("SELECT length(vector) FROM embeddings")) == {(4 * 64,)}
        assert components(service.check()) == []
    with here.open(encoder=other) as service:
        service.delete("default", ids[0])
        service.archive("default", ids[1])
        service.restore("default", ids[1])
        (moved,) = service.change_states(
            "default", [StateChange(id=ids[2], to=MemoryState.SUPERSEDED, superseded_by=ids[3])], actor="test"
        )
        assert not isinstance(moved, Exception)
        service.update("default", ids[4], MemoryPatch(text="the fifth, changed"))
        assert found(service, "heron", top_k=1) == [TEXTS[1]]
        assert sorted(found(service, "fifth fourth kite owl")) == sorted([TEXTS[1], "a fourth", "the fifth, changed"])
        service.restore("default", ids[2])
        assert found(service, "owl at dusk", top_k=1) == [TEXTS[2]]
        assert components(service.check(repair=True)) == []
