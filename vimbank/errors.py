"""Every exception that VIMBank raises on purpose.

::

    VimbankError
      ConfigError            settings contradict each other or the store           exit 2 at start
      InvalidInput           the caller's value is bad (also a ValueError)         422
      NotFound               unknown id, or an id of somebody else                 404
      Conflict               the change contradicts what is stored                 409
      BackendError           an engine failed; .backend names it
        BackendUnavailable   refused or timed out: try again                       503
        BackendRejected      the engine said no: do not try again                  502
        IndexCorrupt         manifest or checksum wrong: rebuild from the store    503
      ModelError             an encoder or a chat model gave nothing usable        502
"""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = [
    "BackendError",
    "BackendRejected",
    "BackendUnavailable",
    "ConfigError",
    "Conflict",
    "FieldError",
    "IndexCorrupt",
    "InvalidInput",
    "ModelError",
    "NotFound",
    "VimbankError",
]


class VimbankError(Exception):
    """Base of everything VIMBank raises on purpose."""


class ConfigError(VimbankError):
    """Settings contradict each other, or contradict what the store was built with."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """One bad field of an input: its dotted name, and what is wrong with it."""

    field: str
    message: str


class InvalidInput(VimbankError, ValueError):
    """A value given by the caller is bad; nothing was changed.

    ``errors`` names each field. ``InvalidInput.of("top_k", "must be at least 1")`` is the usual form.
    """

    def __init__(self, errors: Sequence[FieldError]) -> None:
        self.errors = tuple(errors)
        super().__init__("; ".join(f"{error.field}: {error.message}" for error in self.errors))

    @classmethod
    def of(cls, field: str, message: str) -> "InvalidInput":
        """An error about one field."""
        return cls([FieldError(field, message)])


class NotFound(VimbankError):
    """No such thing, or it belongs to somebody else: the two are not told apart."""


class Conflict(VimbankError):
    """The change contradicts what is stored, for example an id that is taken by another memory."""


class BackendError(VimbankError):
    """An engine behind a port failed."""

    def __init__(self, backend: str, message: str) -> None:
        self.backend = backend
        super().__init__(f"{backend}: {message}")


class BackendUnavailable(BackendError):
    """The engine refused the connection or timed out; the same call may succeed later."""


class BackendRejected(BackendError):
    """The engine understood the call and refused it; repeating it is useless."""


class IndexCorrupt(BackendError):
    """A snapshot's manifest or checksum is wrong; the index has to be rebuilt from the store."""


class ModelError(VimbankError):
    """An encoder or a chat model failed, or answered nothing usable."""
