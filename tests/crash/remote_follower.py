"""A process that follows into Elasticsearch and is held up between bulk and advance.

``python -m tests.crash.remote_follower FOLDER URL PREFIX``: says ``applied`` when everything was sent and nothing is
searchable yet, and waits there to be killed.
"""

import sys
import threading
from pathlib import Path

from tests.cases.doors import settings
from vimbank.indexes.elasticsearch.writer import ElasticsearchIndex
from vimbank.wiring import open_service


def main() -> None:
    """Follow until the hold-up."""
    folder, url, prefix = Path(sys.argv[1]), sys.argv[2], sys.argv[3]

    def hold(_index: ElasticsearchIndex, _cursor: int) -> None:
        print("applied", flush=True)
        threading.Event().wait()

    ElasticsearchIndex.advance = hold  # type: ignore[method-assign, assignment]
    given = {"elasticsearch": {"url": url, "prefix": prefix}, "index": {"sparse": "elasticsearch"}}
    with open_service(settings(folder, **given)) as service:
        service.follow_remote()


if __name__ == "__main__":
    main()
