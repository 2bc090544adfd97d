"""The access log is folded once, whoever folds and wherever they die: real processes, killed amid a fold."""

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from tests.contracts.backends import SHARED, new_url
from tests.contracts.store_data import APR, FEB, add_one, curve_of
from vimbank.domain.models import RecallEntry, Signal
from vimbank.store.sql import SqlStore

MEMORIES, RECALLS = 5, 12

KILLED = """
import os, signal, sys
from tests.contracts.store_data import APR, curve_of
from vimbank.store.sql import SqlStore
from vimbank.store.sql_rows import SqlRows

url, where = sys.argv[1:]
calls = 0

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def dying_curve(bank):
    global calls
    calls += 1
    if calls == 8:  # in the second batch, whose first memories are reviewed
        die()
    return curve_of(bank)

finish = SqlRows.finish

def finish_and_die(rows):
    finish(rows)  # everything is written, and nothing committed
    if rows.counters.folded == 40:
        die()

if where == "before the commit":
    SqlRows.finish = finish_and_die
store = SqlStore.open(url)
while store.fold(dying_curve if where == "amid the reviews" else curve_of, limit=20, now=APR):
    pass
"""


@pytest.fixture(params=SHARED)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return new_url(request.param, tmp_path)


def noted(url: str) -> list[str]:
    """Memories of which each was returned twelve times, in turns."""
    store = SqlStore.open(url)
    names = [add_one(store, f"text {place}") for place in range(MEMORIES)]
    for minute in range(RECALLS):
        at = FEB + timedelta(minutes=minute)
        store.append([RecallEntry("t", name, at, Signal.RETURNED) for name in names])
    store.close()
    return names


def check_once(url: str, names: list[str]) -> None:
    store = SqlStore.open(url)
    last = FEB + timedelta(minutes=RECALLS - 1)
    for memory in store.get("t", names):
        assert (memory.recall_count, memory.strength) == (RECALLS, 1.0 + RECALLS)
        assert memory.last_recalled_at == last
    assert store.fold(curve_of, limit=100, now=APR) == 0
    changed = [change.revision for change in store.changes(0, limit=100)]
    assert changed == sorted(set(changed))
    assert changed[-1] == store.state().revision
    store.close()


TRIMMED = """
import os, signal, sys
from tests.contracts.store_data import APR, curve_of
from vimbank.store.sql import SqlStore
from vimbank.store.sql_rows import SqlRows

url = sys.argv[1]
trim = SqlRows.trim_recalls
batches = 0

def trim_and_die(rows, *given):
    global batches
    count = trim(rows, *given)  # done, and not committed
    batches += 1
    if batches == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return count

SqlRows.trim_recalls = trim_and_die
store = SqlStore.open(url)
assert store.fold(curve_of, limit=40, now=APR) == 40
for _ in store.trim(before=APR, batch=15):
    pass
"""


def test_entries_whose_removal_was_killed_count_once_and_go_later(url: str) -> None:
    """Sixty entries, forty folded in; fifteen of them are gone when the next fifteen are being removed."""
    names = noted(url)
    killed = subprocess.run([sys.executable, "-c", TRIMMED, url], capture_output=True, timeout=120, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    store = SqlStore.open(url)
    assert list(store.trim(before=APR)) == [25]
    assert [store.fold(curve_of, limit=100, now=APR) for _ in range(2)] == [20, 0]
    assert list(store.trim(before=APR)) == [20]
    store.close()
    check_once(url, names)


@pytest.mark.parametrize("where", ["amid the reviews", "before the commit"])
def test_a_fold_that_was_killed_is_done_again_and_counts_once(url: str, where: str) -> None:
    names = noted(url)
    killed = subprocess.run([sys.executable, "-c", KILLED, url, where], capture_output=True, timeout=120, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    store = SqlStore.open(url)
    assert [memory.recall_count for memory in store.get("t", names)] == [4] * MEMORIES, "the first batch stands"
    assert [store.fold(curve_of, limit=100, now=APR) for _ in range(2)] == [40, 0]
    store.close()
    check_once(url, names)


def test_case_120_folds_of_several_processes_at_once_count_once(url: str) -> None:
    names = noted(url)

    def fold(_place: int) -> int:
        store = SqlStore.open(url)
        folded = 0
        while count := store.fold(curve_of, limit=7, now=APR):
            folded += count
        store.close()
        return folded

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(fold, range(4))) == MEMORIES * RECALLS
    check_once(url, names)
