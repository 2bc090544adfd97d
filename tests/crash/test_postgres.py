"""Several processes on one PostgreSQL server, and a server that crashes under them: nothing lost, nothing doubled."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from tests.contracts.postgres import empty_store
from tests.contracts.store_data import JAN, add, add_one, prepared
from tests.crash.postgres_server import started_server
from vimbank.domain.models import AddResult, ListQuery, MemoryDraft, MemoryPatch, Query
from vimbank.errors import BackendUnavailable
from vimbank.service import MemoryService
from vimbank.settings import Settings
from vimbank.store.sql import SqlStore
from vimbank.wiring import open_service

pytestmark = [pytest.mark.crash, pytest.mark.services, pytest.mark.timeout(240)]

PROCESSES: Final = 4
DEADLINE_S: Final = 60.0

WRITER = """
import json, sys
from concurrent.futures import ThreadPoolExecutor
from tests.contracts.store_data import add, prepared
from vimbank.store.sql import SqlStore

url, name, kind, count = *sys.argv[1:4], int(sys.argv[4])
drafts = {
    "own": lambda place: prepared(f"{name} {place}"),
    "key": lambda place: prepared(f"text {place}", idempotency_key=f"key {place}"),
    "same": lambda place: prepared(f"text {place}"),
}
store = SqlStore.open(url, busy_timeout_s=60)
print("ready", flush=True)
sys.stdin.readline()
with ThreadPoolExecutor(3) as threads:
    results = list(threads.map(lambda place: add(store, drafts[kind](place))[0], range(count)))
store.close()
print(json.dumps([[result.id, result.duplicate] for result in results]))
"""

NEIGHBOUR = """
import json, sys
from tests.crash.test_postgres import QUERY, opened
from vimbank.domain.models import MemoryDraft

with opened(sys.argv[1], sys.argv[2]) as service:
    print("ready", flush=True)
    for line in sys.stdin:
        verb, text = json.loads(line)
        if verb == "add":
            answer = service.add(MemoryDraft(tenant="t", user_id="ana", bank="dialog", text=text)).id
        else:
            answer = [each.memory.id for each in service.search(QUERY(text)).results]
        print(json.dumps(answer), flush=True)
"""


def all_at_once(url: str, kind: str, count: int) -> list[list[tuple[str, bool]]]:
    """What each process was answered: id and whether it was a duplicate, in order. They start to write together."""
    command = [sys.executable, "-W", "error", "-c", WRITER, url]
    with ExitStack() as stack:
        writers = [
            stack.enter_context(
                subprocess.Popen(
                    [*command, f"p{number}", kind, str(count)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for number in range(PROCESSES)
        ]
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write("\n")
            writer.stdin.flush()
        outputs = [writer.communicate(timeout=120)[0] for writer in writers]
        assert [writer.returncode for writer in writers] == [0] * PROCESSES
    return [[(name, duplicate) for name, duplicate in json.loads(output)] for output in outputs]


def check_whole(url: str, ids: Sequence[str]) -> None:
    """Exactly these memories, with their vectors, one history entry each, and no gap in numbers and revisions."""
    wanted = list(range(1, len(ids) + 1))
    assert len(set(ids)) == len(ids)
    with create_engine(url, poolclass=NullPool).connect() as connection:

        def column(query: str) -> list[Any]:
            return list(connection.exec_driver_sql(query).scalars())

        assert set(column("SELECT id FROM memories")) == set(ids)
        assert column("SELECT number FROM memories ORDER BY number") == wanted
        assert column("SELECT revision FROM memories ORDER BY revision") == wanted
        assert column("SELECT number FROM embeddings ORDER BY number") == wanted
        assert column("SELECT revision FROM history ORDER BY revision") == wanted
        assert set(column("SELECT memory_id FROM history WHERE event = 'ADD' OR event = 'add'")) == set(ids)
    store = SqlStore.open(url)
    assert store.state().revision == len(ids)
    assert [change.revision for change in store.changes(0, limit=100_000)] == wanted
    assert store.integrity() == []
    store.close()


class TestFourProcesses:
    def test_cases_117_and_118_nothing_is_lost_or_doubled(self) -> None:
        url = empty_store()
        answers = all_at_once(url, "own", 250)
        check_whole(url, [name for answer in answers for name, _ in answer])

    @pytest.mark.parametrize("kind", ["key", "same"])
    def test_the_same_from_all_at_once_is_one_memory(self, kind: str) -> None:
        url = empty_store()
        answers = all_at_once(url, kind, 50)
        names = [[name for name, _ in answer] for answer in answers]
        assert names == [names[0]] * PROCESSES
        check_whole(url, names[0])
        firsts = [place for answer in answers for place, (_, duplicate) in enumerate(answer) if not duplicate]
        assert sorted(firsts) == list(range(50))


class TestServerCrash:
    def test_what_was_acknowledged_is_there_and_writers_go_on(self) -> None:
        with started_server() as server:
            store = SqlStore.open(server.url, busy_timeout_s=30)
            load = Load(store)
            with ThreadPoolExecutor(6) as threads:
                work = [threads.submit(load.write, number) for number in range(4)]
                work += [threads.submit(load.read) for _ in range(2)]
                try:
                    for _ in range(3):
                        load.wait_for_more(100)
                        server.restart_immediately()
                    load.wait_for_more(100)
                finally:
                    load.enough.set()
                for each in work:
                    each.result(timeout=DEADLINE_S)
            assert load.refused > 0  # or the load did not notice
            texts = {memory.id: memory.text for memory in store.get("t", list(load.acknowledged))}
            assert texts == load.acknowledged
            store.close()
            check_whole(server.url, list(load.acknowledged))

    def test_idle_connections_survive_a_restart_without_an_error(self) -> None:
        with started_server() as server:
            store = SqlStore.open(server.url)
            name = add_one(store, "tea")
            with ThreadPoolExecutor(4) as threads:
                list(threads.map(lambda _: store.get("t", [name]), range(40)))
            for number in range(2):
                server.restart_immediately()
                assert add_one(store, f"coffee {number}")
                server.restart_immediately()
                assert store.get("t", [name])[0].text == "tea"
                assert store.page(ListQuery(tenant="t")).total == number + 2
            store.close()


class Load:
    """Threads that write and read until it is enough, through whatever happens to the server."""

    def __init__(self, store: SqlStore) -> None:
        self.enough = threading.Event()
        self.acknowledged: dict[str, str] = {}
        self.refused = 0
        self._store = store
        self._changed = threading.Condition()

    def write(self, thread: int) -> None:
        """Add memory after memory; one whose outcome is unknown is added again by its idempotency key."""
        place = 0
        while not self.enough.is_set():
            text = f"{thread} {place}"
            result = self._until_acknowledged(text)
            with self._changed:
                self.acknowledged[result.id] = text
                self._changed.notify_all()
            place += 1

    def read(self) -> None:
        """What was acknowledged is seen, whenever the server answers."""
        while not self.enough.is_set():
            with self._changed:
                self._changed.wait(0.01)
                names = list(self.acknowledged)[-5:]
            try:
                assert [memory.id for memory in self._store.get("t", names)] == names
                assert self._store.state().revision >= len(names)
            except BackendUnavailable:
                self.refused += 1

    def wait_for_more(self, count: int) -> None:
        with self._changed:
            wanted = len(self.acknowledged) + count
            assert self._changed.wait_for(lambda: len(self.acknowledged) >= wanted, timeout=DEADLINE_S)

    def _until_acknowledged(self, text: str) -> AddResult:
        deadline = time.monotonic() + DEADLINE_S
        while True:
            try:
                return add(self._store, prepared(text, idempotency_key=text), now=JAN)[0]
            except BackendUnavailable:
                self.refused += 1
                assert time.monotonic() < deadline
                self._changed_or_soon()

    def _changed_or_soon(self) -> None:
        with self._changed:
            self._changed.wait(0.02)


def QUERY(text: str) -> Query:
    return Query(tenant="t", user_id="ana", text=text, banks=["dialog"], top_k=3)


def opened(url: str, folder: str) -> MemoryService:
    """One process's service on the shared store, with indexes of its own."""
    settings = {"data_dir": folder, "store": {"url": url}, "encoder": {"kind": "hashing"}}
    return open_service(Settings.model_validate(settings))


class Neighbour:
    """Another process with a service on the same store."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        assert self._read() == "ready"

    def ask(self, verb: str, text: str) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([verb, text]) + "\n")
        self._process.stdin.flush()
        return json.loads(self._read())

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@contextmanager
def neighbour(url: str, folder: Path) -> Iterator[Neighbour]:
    command = [sys.executable, "-W", "error", "-c", NEIGHBOUR, url, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Neighbour(process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(60) == 0


def test_each_process_finds_at_once_what_the_other_wrote(tmp_path: Path) -> None:
    url = empty_store()
    with opened(url, str(tmp_path / "here")) as here, neighbour(url, tmp_path / "there") as there:
        for round_ in range(10):
            word = f"w{round_}"
            mine = here.add(MemoryDraft(tenant="t", user_id="ana", bank="dialog", text=f"{word} from here")).id
            assert mine in there.ask("search", f"{word} from here")
            theirs = there.ask("add", f"{word} from there")
            assert theirs in [each.memory.id for each in here.search(QUERY(f"{word} from there")).results]
            assert here.get("t", theirs).text == f"{word} from there"
            here.update("t", theirs, MemoryPatch(text=f"changed {word}"))
            assert there.ask("search", f"changed {word}")[0] == theirs
            here.delete("t", mine)
            assert mine not in there.ask("search", f"{word} from here")
