"""Real servers in processes of their own, for what is measured over HTTP."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

__all__ = ["running_server"]


@contextmanager
def running_server(folder: Path, environment: Mapping[str, str] | None = None) -> Iterator[int]:
    """A server on a free port of this machine, until the block ends; the port.

    Args:    folder: the data folder.  environment: settings, as ``VIMBANK_`` variables.
    """
    command = [sys.executable, "-m", "vimbank", "serve", "--data", str(folder), "--port", "0", "--allow-anonymous"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **(environment or {})},
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            yield int(line.strip().rsplit(":", 1)[1].strip("/"))
        finally:
            process.terminate()
