"""An Elasticsearch of a test's own: killed, frozen and started again on the same data."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.runner_kit import until
from tests.services import service_command

__all__ = ["Server", "started_server"]


class Server:
    """One node on a free port, with a data folder that outlives it."""

    def __init__(self, folder: Path) -> None:
        self._command = service_command("ELASTICSEARCH_START")
        self._folder = folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._pid = 0
        self.start()

    def start(self) -> None:
        """Returns when it answers."""
        subprocess.run([*self._command, str(self.port), str(self._folder)], check=True, stdout=subprocess.DEVNULL)
        self._pid = self._find()

    def kill(self) -> None:
        """End it as a loss of power would."""
        os.kill(self._pid, signal.SIGKILL)
        until(lambda: self._state() == "Z")

    def freeze(self) -> None:
        """Let it accept connections and answer nothing."""
        os.kill(self._pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        os.kill(self._pid, signal.SIGCONT)

    def revive(self) -> None:
        """Have it run, in whatever state it is."""
        if self._state() == "Z":
            self.start()
        self.thaw()

    def stop(self) -> None:
        """End it for good, in whatever state it is."""
        if self._state() != "Z":
            self.kill()

    def _state(self) -> str:
        """As the kernel calls it; ``Z`` for one that has ended."""
        try:
            return Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return "Z"

    def _find(self) -> int:
        """The process that has the port among its arguments and was started for the folder."""
        wanted = {str(self.port).encode(), str(self._folder).encode()}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    arguments = (entry / "cmdline").read_bytes().split(b"\0")
                except OSError:  # it has just ended
                    continue
                if b"java" in arguments[0] and wanted <= set(arguments):
                    return int(entry.name)
        raise AssertionError(f"no java process serves port {self.port}")


@contextmanager
def started_server() -> Iterator[Server]:
    """In a new folder; killed, and its data removed, in the end. Skips where no command to start one is named."""
    folder = Path(tempfile.mkdtemp(prefix="vimbank-es-"))
    try:
        server = Server(folder)
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
