"""Progress bars on standard error, only where somebody watches."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm

__all__ = ["Bar", "progress"]


class Bar:
    """A bar that moves by steps or to a place."""

    def __init__(self, bar: "tqdm[Any]") -> None:
        self._bar = bar

    def advance(self, steps: int = 1) -> None:
        """Move on by ``steps``."""
        self._bar.update(steps)

    def reach(self, done: int, total: int | None = None) -> None:
        """Move to ``done``, of ``total`` where that is known only now."""
        if total is not None:
            self._bar.total = total
        self._bar.update(done - self._bar.n)


@contextmanager
def progress(label: str, *, total: int | None, unit: str = "memories") -> Iterator[Bar]:
    """A bar; ``total`` None where the end is unknown. Silent unless standard error is a terminal."""
    tqdm_bar: tqdm[Any] = tqdm(total=total, desc=label, unit=f" {unit}", disable=None, dynamic_ncols=True)
    with tqdm_bar:
        yield Bar(tqdm_bar)
