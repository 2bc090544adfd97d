"""The follower: indexes that are loaded, kept in step with the store, snapshotted, evicted and rebuilt."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cases.doors import settings
from vimbank.domain.models import MemoryDraft, Partition, Query
from vimbank.feed.snapshot import SnapshotFolder
from vimbank.service import MemoryService
from vimbank.wiring import open_service

ALICE = Partition("default", "alice", "knowledge")
Open = Callable[..., MemoryService]


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    def open_(**index: object) -> MemoryService:
        return open_service(settings(tmp_path, index=index))

    return open_


def add(service: MemoryService, *texts: str, user: str = "alice") -> list[str]:
    drafts = [MemoryDraft(tenant="default", user_id=user, bank="knowledge", text=text) for text in texts]
    return [result.id for result in service.add_many(drafts)]  # type: ignore[union-attr]


def found(service: MemoryService, text: str, user: str = "alice") -> list[str]:
    return [each.memory.text for each in service.search(_query(text, user)).results]


def _query(text: str, user: str = "alice") -> Query:
    return Query(tenant="default", user_id=user, text=text, banks=["knowledge"], fusion="sparse", reinforce=False)


def snapshot_file(folder: Path) -> Path:
    return SnapshotFolder(folder / "indexes").file(ALICE)


def test_a_clean_stop_saves_and_the_next_start_reads_it(opened: Open, tmp_path: Path) -> None:
    with opened() as service:
        add(service, "red kite", "blue heron")
        assert found(service, "kite") == ["red kite"]
    assert snapshot_file(tmp_path).exists()
    with opened() as service:
        assert found(service, "heron") == ["blue heron"]
        assert service.check().ok


def test_what_was_written_after_the_snapshot_is_applied(opened: Open) -> None:
    with opened() as service:
        add(service, "red kite")
        found(service, "kite")
        service.flush()
        (heron,) = add(service, "blue heron")
        service.delete("default", heron)
        add(service, "grey owl")
    with opened() as service:
        assert found(service, "owl") == ["grey owl"]
        assert found(service, "heron") == []


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "gone"])
def test_case_1_a_damaged_index_file_is_rebuilt_from_the_store(opened: Open, tmp_path: Path, damage: str) -> None:
    with opened() as service:
        add(service, "A is the first", "B is the second", "C is the third")
        found(service, "first")
    path = snapshot_file(tmp_path)
    whole = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(
            {"cut": whole[: len(whole) // 2], "flip": whole[:-1] + bytes([whole[-1] ^ 1]), "empty": b""}[damage]
        )
    with opened() as service:
        for word, text in (("first", "A is the first"), ("second", "B is the second"), ("third", "C is the third")):
            assert found(service, word) == [text]
        report = service.check()
        components = [problem.component for problem in report.everything]
        assert components == ([] if damage == "gone" else ["snapshots"]), "a file that was set aside is reported"
        assert ("damaged" in service.ready().components["indexes"]) == (damage != "gone")


def test_a_snapshot_newer_than_the_store_is_not_used(opened: Open, tmp_path: Path) -> None:
    """The store was put back from a backup: its snapshots know memories it does not have."""
    with opened() as service:
        add(service, "red kite")
    backup = (tmp_path / "vimbank.db").read_bytes()
    with opened() as service:
        add(service, "blue heron")
        assert found(service, "heron") == ["blue heron"]
    for side in tmp_path.glob("vimbank.db-*"):
        side.unlink()
    (tmp_path / "vimbank.db").write_bytes(backup)
    with opened() as service:
        assert found(service, "heron") == []
        assert found(service, "kite") == ["red kite"]
        assert service.check().ok


def test_a_snapshot_of_another_version_is_rebuilt_not_refused(opened: Open, tmp_path: Path) -> None:
    with opened() as service:
        add(service, "red kite")
        assert found(service, "kite") == ["red kite"]
    folder = SnapshotFolder(tmp_path / "indexes")
    saved = folder.load(ALICE)
    assert saved is not None
    folder.save(replace(saved, arrays={**saved.arrays, "roster.format": 0}))
    with opened() as service:
        assert found(service, "kite") == ["red kite"]
        assert service.check().ok


def test_least_recently_used_partitions_leave_memory_and_come_back(opened: Open) -> None:
    with opened(memory_mb=1) as service:
        for number in range(6):
            add(service, *[f"note {number} {word} " * 10 for word in range(200)], user=f"user-{number}")
            assert found(service, "note", user=f"user-{number}")
        status = service.stats("default").index
        assert status.nbytes <= 2 * 1024 * 1024
        assert status.partitions < 6
        for number in range(6):
            assert found(service, f"{number}", user=f"user-{number}")
        assert service.check().ok


def test_a_second_process_sees_a_write_at_once(opened: Open) -> None:
    with opened() as one, opened() as other:
        add(one, "red kite")
        assert found(other, "kite") == ["red kite"]
        (heron,) = add(other, "blue heron")
        assert found(one, "heron") == ["blue heron"]
        one.delete("default", heron)
        assert found(other, "heron") == []


def test_deleting_a_user_leaves_no_snapshot_of_its_words(opened: Open, tmp_path: Path) -> None:
    from vimbank.domain.models import Scope

    with opened() as service:
        add(service, "xylophonist")
        found(service, "xylophonist")
        service.flush()
        assert b"xylophonist" in snapshot_file(tmp_path).read_bytes()
        service.delete_all(Scope("default", "alice"))
        assert not snapshot_file(tmp_path).exists()
    assert not any(b"xylophonist" in path.read_bytes() for path in (tmp_path / "indexes").glob("*"))


def test_another_sparse_index_does_not_read_the_snapshot_of_the_first(opened: Open) -> None:
    with opened(sparse="postings") as service:
        add(service, "red kite", "blue heron")
        found(service, "kite")
    with opened(sparse="rank-bm25", dense="exact") as service:
        assert found(service, "kite") == ["red kite"]
        assert service.check().ok
