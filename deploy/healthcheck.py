"""Exit code 0 where the server in this container answers, else 1: the image's health check.

Asks ``/health/live`` on loopback, or the URL given as the only argument. Standard library alone: it runs every few
seconds and must start at once.
"""

import http.client
import os
import sys
from urllib.parse import urlsplit

TIMEOUT_S = 4


def status(url: str) -> int:
    """The HTTP status of ``url``; 0 where nothing answers in time."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", parts.path)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


def main(arguments: list[str]) -> int:
    """The exit code."""
    port = os.environ.get("VIMBANK_API__PORT", "8080")
    url = arguments[0] if arguments else f"http://127.0.0.1:{port}/health/live"
    return 0 if status(url) == http.client.OK else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
