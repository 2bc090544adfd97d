"""Notices inside one process: a write wakes whoever follows the feed here."""

import threading

__all__ = ["LocalNotices"]


class LocalNotices:
    """``Notices`` for followers in this process alone; those of other processes poll."""

    def __init__(self) -> None:
        self._news = threading.Event()

    def announce(self, revision: int) -> None:  # noqa: ARG002 - a follower asks the store how far it is
        """See ``Notices.announce``."""
        self._news.set()

    def wait(self, timeout_s: float) -> None:
        """See ``Notices.wait``."""
        if self._news.wait(timeout_s):
            self._news.clear()

    def close(self) -> None:
        """Wake who waits."""
        self._news.set()
