"""Snapshots: what is saved comes back, and a damaged file is never believed nor overwritten (cases 1, 7)."""

from pathlib import Path

import numpy as np
import pytest

from vimbank.domain.models import Partition
from vimbank.errors import IndexCorrupt
from vimbank.feed.snapshot import Snapshot, SnapshotFolder

ALICE = Partition("acme", "alice", "dialog")


def snapshot(cursor: int = 7, partition: Partition = ALICE) -> Snapshot:
    arrays = {
        "vectors": np.arange(12, dtype=np.float32).reshape(3, 4),
        "codes": np.array([1, -2, 3], dtype=np.int8),
        "none": np.zeros((0, 4), dtype=np.float32),
        "scale": 0.5,
        "names": ["a", "b"],
    }
    return Snapshot(partition, cursor, 2, "postings", arrays)


@pytest.fixture
def folder(tmp_path: Path) -> SnapshotFolder:
    return SnapshotFolder(tmp_path / "indexes")


def test_a_saved_snapshot_comes_back_whole(folder: SnapshotFolder) -> None:
    folder.save(snapshot())
    loaded = folder.load(ALICE)
    assert loaded is not None
    assert (loaded.partition, loaded.cursor, loaded.generation, loaded.configuration) == (ALICE, 7, 2, "postings")
    assert loaded.arrays["scale"] == 0.5
    assert loaded.arrays["names"] == ["a", "b"]
    for name in ("vectors", "codes", "none"):
        saved = snapshot().arrays[name]
        assert loaded.arrays[name].dtype == saved.dtype
        np.testing.assert_array_equal(loaded.arrays[name], saved)


def test_the_arrays_are_mapped_and_read_only(folder: SnapshotFolder) -> None:
    folder.save(snapshot())
    loaded = folder.load(ALICE)
    assert loaded is not None
    with pytest.raises(ValueError, match="read-only"):
        loaded.arrays["vectors"][0, 0] = 1


def test_no_snapshot_is_none(folder: SnapshotFolder) -> None:
    assert folder.load(ALICE) is None


def test_the_newer_snapshot_takes_the_place_of_the_older(folder: SnapshotFolder) -> None:
    folder.save(snapshot(7))
    folder.save(snapshot(8))
    loaded = folder.load(ALICE)
    assert loaded is not None
    assert loaded.cursor == 8
    assert [path.suffix for path in folder.file(ALICE).parent.iterdir()] == [".index"]


def test_partitions_whose_names_glue_alike_have_files_of_their_own(folder: SnapshotFolder) -> None:
    glued = [Partition("a", "bc", "d"), Partition("ab", "c", "d"), Partition("a", "b", "cd")]
    assert len({folder.file(partition) for partition in glued}) == 3


@pytest.mark.parametrize("keep", [0, 1, 10, 20, 200, -1])
def test_case_1_a_cut_file_is_refused_and_set_aside(folder: SnapshotFolder, keep: int) -> None:
    folder.save(snapshot())
    path = folder.file(ALICE)
    whole = path.read_bytes()
    path.write_bytes(whole[:keep])
    with pytest.raises(IndexCorrupt):
        folder.load(ALICE)
    assert not path.exists()
    assert [folder.file(ALICE).parent.joinpath(name).read_bytes() for name in folder.damaged()] == [whole[:keep]]


def test_case_1_a_flipped_byte_that_matters_is_noticed(folder: SnapshotFolder) -> None:
    """A flip in the padding between arrays changes nothing; any other one is refused."""
    folder.save(snapshot())
    path = folder.file(ALICE)
    whole = path.read_bytes()
    for place in range(0, len(whole), 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            loaded = folder.load(ALICE)
        except IndexCorrupt:
            continue
        assert loaded is not None
        assert whole[place] == 0
        np.testing.assert_array_equal(loaded.arrays["vectors"], snapshot().arrays["vectors"])


def test_a_second_damaged_file_does_not_overwrite_the_first(folder: SnapshotFolder) -> None:
    for text in (b"first", b"second"):
        folder.save(snapshot())
        folder.file(ALICE).write_bytes(text)
        with pytest.raises(IndexCorrupt):
            folder.load(ALICE)
    assert len(folder.damaged()) == 2


def test_a_snapshot_of_another_partition_is_refused(folder: SnapshotFolder) -> None:
    bob = Partition("acme", "bob", "dialog")
    folder.save(snapshot(partition=bob))
    folder.file(bob).rename(folder.file(ALICE))
    with pytest.raises(IndexCorrupt, match="another partition"):
        folder.load(ALICE)


def test_drop_removes_the_file_and_what_was_set_aside(folder: SnapshotFolder) -> None:
    folder.save(snapshot())
    folder.file(ALICE).write_bytes(b"torn")
    with pytest.raises(IndexCorrupt):
        folder.load(ALICE)
    folder.save(snapshot())
    folder.drop(ALICE)
    assert list(folder.file(ALICE).parent.iterdir()) == []
