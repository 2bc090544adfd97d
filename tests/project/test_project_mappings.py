"""The mappings of the keyword leg match the documents that are written, and are shipped."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.elasticsearch_kit import change
from vimbank.domain.banks import DEFAULT_POLICIES
from vimbank.indexes.elasticsearch.mappings import MAPPING_VERSION, load_body, sparse_document, sparse_plans
from vimbank.indexes.elasticsearch.writer import BOOKKEEPING_FIELDS

FOLDER = Path(__file__).parents[2] / "es_mappings"
FILES = sorted(FOLDER.glob("*.json"))
BANKS = sorted(DEFAULT_POLICIES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_file_maps_fields_by_itself_and_each_has_the_bookkeeping(path: Path) -> None:
    """Case 56: a field that nobody declared is refused, never mapped."""
    body = json.loads(path.read_text("utf-8"))
    assert body["mappings"]["dynamic"] == "strict"
    assert body["mappings"]["properties"].keys() >= BOOKKEEPING_FIELDS


def test_each_built_in_bank_has_a_file() -> None:
    assert {f"{bank}.v{MAPPING_VERSION}.json" for bank in BANKS} <= {path.name for path in FILES}


@pytest.mark.parametrize("bank", BANKS)
class TestSparse:
    def test_every_field_that_is_written_is_mapped_and_the_reverse(self, bank: str) -> None:
        full = sparse_document(change(1, "words", session_id="s", agent_id="a", metadata={"any": "thing"}))
        assert full is not None
        assert full.keys() | BOOKKEEPING_FIELDS == load_body(bank)["mappings"]["properties"].keys()

    def test_the_text_and_the_metadata_stay_in_the_store(self, bank: str) -> None:
        document = sparse_document(change(1, "Some Words", metadata={"secret": "value"}))
        assert document is not None
        assert "Some Words" not in json.dumps(document)
        assert "secret" not in json.dumps(document)

    def test_what_the_search_relies_on(self, bank: str) -> None:
        body = load_body(bank)
        index, fields = body["settings"]["index"], body["mappings"]["properties"]
        assert fields["terms"] == {
            "type": "text", "analyzer": "whitespace", "similarity": "terms", "index_options": "freqs",
        }  # fmt: skip
        assert index["similarity"]["terms"] == {"type": "BM25", "k1": 1.2, "b": 0.75}
        assert index["number_of_shards"] == 1
        assert index["gc_deletes"] == "10m"
        kinds = {name: fields[name]["type"] for name in ("partition", "id", "number", "revision")}
        assert kinds == {"partition": "keyword", "id": "keyword", "number": "long", "revision": "long"}

    def test_plans_do_not_share_what_they_change(self, bank: str) -> None:
        one, other = (sparse_plans([bank], prefix="p", store_id="s", k1=k1)[bank] for k1 in (1.0, 2.0))
        assert [_k1(plan.body) for plan in (one, other)] == [1.0, 2.0]


def _k1(body: Any) -> float:
    return float(body["settings"]["index"]["similarity"]["terms"]["k1"])
