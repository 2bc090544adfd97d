"""MemoryBank's probes: ten days of fifteen users with an assistant, English and Chinese (Zhong et al. 2023)."""

from typing import Final

from vimbank.ingestion.datasets.base import Loader
from vimbank.ingestion.datasets.rounds import RoundsLoader

__all__ = ["LOADER"]

LOADER: Final[Loader] = RoundsLoader(
    name="memorybank",
    summary="MemoryBank's users, one memory a round of query and response (bank dialog).",
    languages=("en", "cn"),
    session_field="session_id",
    time_field="date",
)
