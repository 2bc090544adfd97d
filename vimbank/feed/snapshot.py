"""Snapshots of in-process indexes: one checksummed file a partition, memory-mapped when read.

File layout (version 1), little endian::

    magic "VIMBANK1" | u32 manifest length | u32 manifest CRC-32 | manifest (JSON) | padding | array | array ...

Every array starts on a 64-byte border; the manifest names it, its dtype, shape, place and CRC-32, and tells which
partition, revision, generation and index configuration the file stands for. A file is written under another name,
synced, and renamed: a reader sees the old one or the new one, whole. A file that does not check out is set aside
with the suffix ``.damaged`` and never overwritten.
"""

import hashlib
import json
import logging
import os
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np

from vimbank.domain.models import Partition
from vimbank.errors import IndexCorrupt
from vimbank.ports import Arrays

__all__ = ["Snapshot", "SnapshotFolder"]

_LOG = logging.getLogger(__name__)
_MAGIC: Final = b"VIMBANK1"
_HEAD: Final = struct.Struct("<8sII")
_ALIGNMENT: Final = 64


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a file holds: the partition's arrays at ``cursor``, under ``generation`` and ``configuration``.

    ``configuration`` is whatever decides that the arrays can be used: encoder, analyzer and index settings.
    """

    partition: Partition
    cursor: int
    generation: int
    configuration: str
    arrays: Arrays


class SnapshotFolder:
    """The snapshots of one data folder. Safe for several processes: the last complete file wins."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def file(self, partition: Partition) -> Path:
        """Where the partition's snapshot lies."""
        parts = (partition.tenant, partition.user_id, partition.bank)
        key = b"".join(struct.pack("<I", len(raw)) + raw for raw in (part.encode() for part in parts))
        return self._path / f"{hashlib.blake2b(key, digest_size=16).hexdigest()}.index"

    def save(self, snapshot: Snapshot) -> None:
        """Write and sync the snapshot, then put it in the place of the former one."""
        target = self.file(snapshot.partition)
        self._path.mkdir(parents=True, exist_ok=True)
        temporary = target.with_suffix(f".{os.getpid()}-{id(snapshot):x}.writing")
        try:
            with temporary.open("wb") as file:
                _write(file, snapshot)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
        _sync_folder(self._path)

    def load(self, partition: Partition) -> Snapshot | None:
        """The partition's snapshot, or None where there is none.

        Raises IndexCorrupt for a damaged file, after it has been set aside.
        """
        path = self.file(partition)
        try:
            return _checked(path, partition)
        except ValueError as error:
            raise self._set_aside(path, str(error)) from error

    def fault(self, partition: Partition) -> str | None:
        """What is wrong with the partition's snapshot, which stays; None where it checks out, or there is none."""
        path = self.file(partition)
        try:
            _checked(path, partition)
        except ValueError as error:
            return f"{path.name}: {error}"
        return None

    def stands(self, partition: Partition) -> bool:
        """Whether there is a snapshot of the partition that checks out."""
        return self.file(partition).exists() and self.fault(partition) is None

    def drop(self, partition: Partition) -> None:
        """Delete the partition's snapshot, also a damaged one and one that a killed process had half written."""
        path = self.file(partition)
        for each in (path, *self._path.glob(f"{path.stem}.*")):
            each.unlink(missing_ok=True)

    def heads(self) -> Iterator[tuple[Partition, int]]:
        """Partition and cursor of every snapshot whose manifest can be read."""
        for path in sorted(self._path.glob("*.index")):
            try:
                with path.open("rb") as file:
                    _, length, _ = _HEAD.unpack(file.read(_HEAD.size))
                    manifest = json.loads(file.read(length))
                yield Partition(*manifest["partition"]), int(manifest["cursor"])
            except (OSError, ValueError, KeyError, TypeError, struct.error):
                continue  # damaged, or gone meanwhile: loading it will tell

    def damaged(self, partition: Partition | None = None) -> list[str]:
        """Names of files that were set aside: the partition's, or all."""
        pattern = "*.damaged" if partition is None else f"{self.file(partition).stem}.*.damaged"
        return sorted(path.name for path in self._path.glob(pattern))

    def drop_damaged(self, names: Iterable[str]) -> None:
        """Delete files that were set aside; those that are gone already are none."""
        for name in names:
            if name.endswith(".damaged"):
                (self._path / name).unlink(missing_ok=True)

    @staticmethod
    def _set_aside(path: Path, reason: str) -> IndexCorrupt:
        number = 0
        while (aside := path.with_suffix(f".{number}.damaged")).exists():
            number += 1
        path.rename(aside)
        _LOG.error("index snapshot %s is damaged (%s); set aside as %s", path.name, reason, aside.name)
        return IndexCorrupt("snapshot", f"{path.name}: {reason}; set aside as {aside.name}")


def _checked(path: Path, partition: Partition) -> Snapshot | None:
    """The snapshot in a file, None where there is no file. Raises ValueError for a damaged one."""
    try:
        mapped = np.memmap(path, dtype=np.uint8, mode="r")
    except FileNotFoundError:
        return None
    except ValueError:  # an empty file cannot be mapped
        raise ValueError("the file is empty") from None
    try:
        snapshot = _read(mapped)
    except (KeyError, TypeError, struct.error) as error:
        raise ValueError(str(error)) from error
    if snapshot.partition != partition:
        raise ValueError("it belongs to another partition")
    return snapshot


def _write(file: BinaryIO, snapshot: Snapshot) -> None:
    arrays = {
        name: np.ascontiguousarray(value) for name, value in snapshot.arrays.items() if isinstance(value, np.ndarray)
    }
    values = {name: value for name, value in snapshot.arrays.items() if name not in arrays}
    place = 0
    entries: dict[str, dict[str, Any]] = {}
    for name, array in arrays.items():
        place = _aligned(place)
        entries[name] = {
            "dtype": array.dtype.str,
            "shape": list(array.shape),
            "at": place,
            "crc": zlib.crc32(_bytes(array)),
        }
        place += array.nbytes
    partition = snapshot.partition
    manifest = json.dumps(
        {
            "partition": [partition.tenant, partition.user_id, partition.bank],
            "cursor": snapshot.cursor,
            "generation": snapshot.generation,
            "configuration": snapshot.configuration,
            "arrays": entries,
            "values": values,
            "size": place,
        }
    ).encode()
    file.write(_HEAD.pack(_MAGIC, len(manifest), zlib.crc32(manifest)))
    file.write(manifest)
    start = _aligned(file.tell())
    for name, array in arrays.items():
        file.write(b"\0" * (start + entries[name]["at"] - file.tell()))
        file.write(_bytes(array))


def _read(mapped: "np.memmap[Any, Any]") -> Snapshot:
    magic, length, checksum = _HEAD.unpack(mapped[: _HEAD.size].tobytes())
    raw = mapped[_HEAD.size : _HEAD.size + length].tobytes()
    if magic != _MAGIC or len(raw) != length or zlib.crc32(raw) != checksum:
        raise ValueError("its manifest does not check out")
    manifest = json.loads(raw)
    start = _aligned(_HEAD.size + length)
    if len(mapped) != (start + manifest["size"] if manifest["arrays"] else _HEAD.size + length):
        raise ValueError("it is cut short or has grown")
    arrays = {name: _array(mapped, start, entry) for name, entry in manifest["arrays"].items()}
    _verify(arrays, manifest["arrays"])
    return Snapshot(
        Partition(*manifest["partition"]),
        manifest["cursor"],
        manifest["generation"],
        manifest["configuration"],
        arrays | manifest["values"],
    )


def _array(mapped: "np.memmap[Any, Any]", start: int, entry: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    dtype, shape, at = np.dtype(entry["dtype"]), tuple(entry["shape"]), start + entry["at"]
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    array: np.ndarray[Any, Any] = np.asarray(mapped[at : at + size]).view(dtype).reshape(shape)
    return array


def _verify(arrays: Mapping[str, np.ndarray[Any, Any]], entries: Mapping[str, Mapping[str, Any]]) -> None:
    """Compare all checksums; CRC-32 releases the interpreter, so two threads read twice as fast."""
    with ThreadPoolExecutor(2) as pool:
        checksums = dict(zip(arrays, pool.map(lambda array: zlib.crc32(_bytes(array)), arrays.values()), strict=True))
    for name, entry in entries.items():
        if checksums[name] != entry["crc"]:
            raise ValueError(f"its array {name} does not check out")


def _bytes(array: np.ndarray[Any, Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")


def _aligned(place: int) -> int:
    return -(-place // _ALIGNMENT) * _ALIGNMENT


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
