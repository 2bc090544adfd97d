"""A prune that is killed after its first batch: ``python -m tests.crash.killed_prune FOLDER NOW``."""

import os
import signal
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.runner_kit import open_folder, open_jobs


def main() -> None:
    """Prune the folder as of NOW; the second batch is the process's end."""
    now = datetime.fromisoformat(sys.argv[2])
    with open_folder(Path(sys.argv[1]), clock=lambda: now) as service:
        change, calls = service.change_states, []

        def killing(*args: Any, **named: Any) -> Any:
            calls.append(1)
            if len(calls) == 2:
                os.kill(os.getpid(), signal.SIGKILL)
            return change(*args, **named)

        service.change_states = killing  # type: ignore[method-assign]
        jobs = open_jobs(service, lambda: now)
        jobs.run(jobs.start("prune", {"max_share": 1}).id)


if __name__ == "__main__":
    main()
