"""Published data sets as memories and questions: HotpotQA, LoCoMo, MemoryBank, SCM (layouts: datasets/README.md)."""

from collections.abc import Mapping
from typing import Final

from vimbank.ingestion.datasets import hotpotqa, locomo, memorybank, scm
from vimbank.ingestion.datasets.base import Loader, Question, Split

__all__ = ["LOADERS", "Loader", "Question", "Split"]

LOADERS: Final[Mapping[str, Loader]] = {
    loader.name: loader for loader in (hotpotqa.LOADER, locomo.LOADER, memorybank.LOADER, scm.LOADER)
}
"""Loader by the name that ``vimbank load`` takes."""
