"""A PostgreSQL server of a test's own, to be restarted while it is used."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.services import REQUIRED

__all__ = ["Server", "started_server"]


@dataclass(frozen=True, slots=True)
class Server:
    """A running server with an empty database; trusts whoever connects."""

    url: str
    folder: Path
    binaries: Path

    def restart_immediately(self) -> None:
        """Let it crash without a word, and come back; returns when it answers again."""
        _run([str(self.binaries / "pg_ctl"), "restart", "-m", "immediate", "-w", "-D", str(self.folder), "-s"])


@contextmanager
def started_server() -> Iterator[Server]:
    """In a new folder, on a free port; stopped and removed in the end. Skips where PostgreSQL is not installed."""
    binaries = _binaries()
    folder = Path(tempfile.mkdtemp(prefix="vimbank-pg-"))
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        shutil.chown(folder, "postgres", "postgres")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={folder}"
    data = folder / "data"
    try:
        _run([str(binaries / "initdb"), "-D", str(data), "-U", "vimbank", "-A", "trust", "-E", "UTF8", "--locale=C"])
        control = [str(binaries / "pg_ctl"), "-D", str(data), "-s", "-w"]
        _run([*control, "start", "-o", options, "-l", str(folder / "log")])
        try:
            yield Server(f"postgresql+psycopg://vimbank@127.0.0.1:{port}/postgres", data, binaries)
        finally:
            _run([*control, "stop", "-m", "fast"])
    finally:
        shutil.rmtree(folder)


def _binaries() -> Path:
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).parent
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    reason = "PostgreSQL's initdb is neither on the PATH nor under /usr/lib/postgresql"
    if os.environ.get(REQUIRED) == "required":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def _run(command: Sequence[str]) -> None:
    as_whom: dict[str, Any] = {}
    if os.geteuid() == 0:
        entry = pwd.getpwnam("postgres")
        as_whom = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    subprocess.run(
        command, check=True, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=60, **as_whom
    )
