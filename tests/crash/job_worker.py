"""A process that runs jobs and is held at each batch: ``python -m tests.crash.job_worker FOLDER [URL]``.

Each line on standard input is a command: a job id (run it), or an empty line (let one batch go). It answers with one
line a batch that it has reached, ``batch``, and one line of JSON when a job is done. At the end of its input nothing
holds it up any more.
"""

import json
import queue
import sys
import threading
from pathlib import Path

from tests.runner_kit import GatedEncoder, open_jobs
from vimbank.settings import EncoderSettings, Settings, StoreSettings
from vimbank.wiring import open_service, utc_now

LEASE_S = 1.0


def main() -> None:
    """Serve the commands until the input ends."""
    folder, url = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None
    settings = Settings(data_dir=folder, encoder=EncoderSettings(kind="hashing"), store=StoreSettings(url=url))
    asked: queue.Queue[str] = queue.Queue()
    batches = threading.Semaphore(0)
    free = threading.Event()

    def listen() -> None:
        for line in map(str.strip, sys.stdin):
            if line:
                asked.put(line)
            else:
                batches.release()
        free.set()
        batches.release()
        asked.put("")

    def hold() -> None:
        print("batch", flush=True)
        batches.acquire()
        if free.is_set():
            batches.release()

    threading.Thread(target=listen, daemon=True).start()
    with open_service(settings, claim=False) as service:
        jobs = open_jobs(service, utc_now, encoder=GatedEncoder(hold), lease_s=LEASE_S)
        print("ready", flush=True)
        while job_id := asked.get():
            print(json.dumps(jobs.run(job_id).as_dict()), flush=True)


if __name__ == "__main__":
    main()
