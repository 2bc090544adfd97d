"""One index outside the process that holds vectors, whatever encoder the store has at the moment."""

from collections.abc import Callable, Mapping, Sequence

from vimbank.domain.models import Change, Partition
from vimbank.ports import EncoderIdentity, RemoteIndex

__all__ = ["EncoderBound"]


class EncoderBound:
    """``RemoteIndex`` of the store's current encoder.

    Each encoder has an index of its own. ``cursor`` looks which one it is; what is applied after that goes to it, until
    ``cursor`` is asked again. So a pass of a follower, which begins with ``cursor`` and ends when the store's
    generation changes, keeps to one.
    """

    def __init__(
        self, name: str, encoder: Callable[[], EncoderIdentity], make: Callable[[EncoderIdentity], RemoteIndex]
    ) -> None:
        self.name = name
        self._encoder = encoder
        self._make = make
        self._current: tuple[EncoderIdentity, RemoteIndex] | None = None

    @property
    def index(self) -> RemoteIndex:
        """The index that the last ``cursor`` found."""
        return self._current[1] if self._current is not None else self._look()

    def cursor(self) -> int:
        """See ``RemoteIndex.cursor``."""
        return self._look().cursor()

    def apply(self, changes: Sequence[Change]) -> None:
        """See ``RemoteIndex.apply``."""
        self.index.apply(changes)

    def advance(self, cursor: int) -> None:
        """See ``RemoteIndex.advance``."""
        self.index.advance(cursor)

    def holds(self, partition: Partition) -> Mapping[int, int]:
        """See ``RemoteIndex.holds``."""
        return self.index.holds(partition)

    def reset(self) -> None:
        """See ``RemoteIndex.reset``; of the current encoder's index."""
        self.index.reset()

    def _look(self) -> RemoteIndex:
        encoder = self._encoder()
        if self._current is None or self._current[0] != encoder:
            self._current = (encoder, self._make(encoder))
        return self._current[1]
