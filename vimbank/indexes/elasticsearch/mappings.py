"""The indexes of the sparse leg: settings and mappings from ``es_mappings/``, and the documents that fit them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import resources
from typing import Any, Final

from vimbank.domain.banks import DEFAULT_POLICIES
from vimbank.domain.memory_text import lexical_text
from vimbank.domain.models import Change
from vimbank.domain.text import ANALYZER_VERSION, analyze, analyzer_identity
from vimbank.errors import ConfigError
from vimbank.indexes.elasticsearch.naming import bank_alias, partition_key

__all__ = ["MAPPING_VERSION", "IndexPlan", "indexed_term", "load_body", "sparse_document", "sparse_plans"]

MAPPING_VERSION: Final = 1
"""Of the files ``es_mappings/<bank>.v1.json``; another one makes other indexes."""

_FOLDER: Final = "es_mappings"
_COMMON: Final = "knowledge"  # the file of a bank that has none of its own
_MOST_TOKEN_UNITS: Final = 255  # Lucene's whitespace tokenizer cuts longer tokens; in UTF-16 units
_SHORT_CHARS: Final = 127  # surely within: a character is two units at most
_KEPT_CHARS: Final = 64


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """What one index is made of.

    ``alias``: under which it is searched and written; ``stem``: begins the names of the indexes behind it; ``body``:
    settings and mappings, whose ``_meta`` says what makes two indexes comparable and names the ``store``.
    """

    alias: str
    stem: str
    body: Mapping[str, Any]

    @property
    def meta(self) -> Mapping[str, Any]:
        """``mappings._meta`` of the body."""
        meta: Mapping[str, Any] = self.body["mappings"]["_meta"]
        return meta


def load_body(name: str, version: int = MAPPING_VERSION) -> dict[str, Any]:
    """Settings and mappings of ``es_mappings/<name>.v<version>.json``. ConfigError: the file is not installed."""
    try:
        text = (resources.files(_FOLDER) / f"{name}.v{version}.json").read_text("utf-8")
    except (ModuleNotFoundError, FileNotFoundError) as exc:
        raise ConfigError(f"there is no {_FOLDER}/{name}.v{version}.json: VIMBank is not installed completely") from exc
    body: dict[str, Any] = json.loads(text)
    return body


def sparse_plans(
    banks: Iterable[str], *, prefix: str, store_id: str, k1: float = 1.2, b: float = 0.75
) -> dict[str, IndexPlan]:
    """The sparse leg's index of each bank, by bank, in order of their names.

    A declared bank, which has no file of its own, has that of ``knowledge``. ``k1`` and ``b`` replace the file's.
    """
    plans = {}
    for bank in sorted(banks):
        body = load_body(bank if bank in DEFAULT_POLICIES else _COMMON)
        body["settings"]["index"]["similarity"]["terms"].update(k1=k1, b=b)
        body["mappings"]["_meta"].update(analyzer=analyzer_identity(), store=store_id, bank=bank, k1=k1, b=b)
        alias = bank_alias(prefix, bank)
        plans[bank] = IndexPlan(alias, f"{alias}-v{MAPPING_VERSION}-a{ANALYZER_VERSION}", body)
    return plans


def sparse_document(change: Change) -> dict[str, Any] | None:
    """What the sparse leg keeps of a memory: its terms and whose they are; None for one that is not indexed.

    Neither the text nor the metadata, which only the store has: so no metadata can be too large, too many or of a type
    that contradicts an earlier one (cases 54, 56).
    """
    memory = change.memory
    if memory is None or not memory.indexed:
        return None
    document = {
        "terms": _joined(analyze(lexical_text(memory))),
        "partition": partition_key(change.partition),
        "id": memory.id,
        "number": change.number,
        "revision": change.revision,
        "kind": memory.kind,
        "session_id": memory.session_id,
        "agent_id": memory.agent_id,
        "created_at": memory.created_at.isoformat(),
    }
    return {name: value for name, value in document.items() if value is not None}


def _joined(terms: Sequence[str]) -> str:
    if max(map(len, terms), default=0) > _SHORT_CHARS:
        terms = [indexed_term(term) for term in terms]
    return " ".join(terms)


def indexed_term(term: str) -> str:
    """The term as Elasticsearch keeps it, in a document and in a query: itself, or its beginning and a hash.

    Terms that are longer than Lucene's tokenizer takes would be cut in two, and count as two.
    """
    if len(term) <= _SHORT_CHARS or len(term.encode("utf-16-le")) // 2 <= _MOST_TOKEN_UNITS:
        return term
    return term[:_KEPT_CHARS] + sha256(term.encode()).hexdigest()
