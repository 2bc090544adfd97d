"""VIMBank: a memory server for LLM agents. ``from vimbank import MemoryService`` opens a data folder in process."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vimbank.service import MemoryService

__all__ = ["MemoryService", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Load the service on first use, so that ``import vimbank`` costs nothing."""
    if name == "MemoryService":
        from vimbank.wiring import MemoryService

        return MemoryService
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
