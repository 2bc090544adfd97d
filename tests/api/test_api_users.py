"""Erasing a user over HTTP."""

from pathlib import Path

from starlette.testclient import TestClient

from tests.api.conftest import ClientFor, add, fields_of, search
from vimbank.portability.erase import leftovers
from vimbank.portability.receipts import load_receipt, receipt_from
from vimbank.service import MemoryService
from vimbank.settings import Settings
from vimbank.wiring.portability import open_eraser


def test_a_user_is_erased_and_the_receipt_kept(client: TestClient, stored: MemoryService, settings: Settings) -> None:
    add(client, "the marigold key is under the mat", "a/b c?#")
    add(client, "ben stays", "ben")
    answer = client.delete("/v1/users/a%2Fb%20c%3F%23")
    assert answer.status_code == 200, answer.text
    receipt = receipt_from(answer.json())
    assert receipt.counts["memories"] == 1
    assert receipt.by == "api:admin"
    kept = [path for path in Path(settings.data_dir, "receipts").iterdir() if receipt.id in path.name]
    assert load_receipt(kept[0]) == receipt
    assert leftovers(stored, open_eraser(stored), receipt, user_id="a/b c?#") == []
    assert search(client, "marigold key", "a/b c?#") == []
    assert len(search(client, "ben stays", "ben")) == 1


def test_only_a_session_is_erased(client: TestClient) -> None:
    add(client, "said in one", session_id="one")
    add(client, "said in two", session_id="two")
    answer = client.delete("/v1/users/alice", params={"session_id": "one"})
    assert answer.json()["counts"]["memories"] == 1
    assert [each["session_id"] for each in search(client, "said")] == ["two"]


def test_it_takes_an_administrator_and_one_user(client: TestClient, client_for: ClientFor) -> None:
    """Case 68: nobody erases everybody; a key of another tenant erases its own alone."""
    add(client, "the marigold key is under the mat")
    assert client_for("a-write").delete("/v1/users/alice").status_code == 403
    assert fields_of(client.delete("/v1/users/*")) == ["user_id"]
    assert fields_of(client.delete("/v1/users/%20")) == ["user_id"]
    assert fields_of(client.delete("/v1/users/alice", params={"session": "typo"})) == ["session"]
    assert fields_of(client.delete("/v1/users/alice", params={"session_id": "s", "agent_id": "a"})) == ["agent_id"]
    assert client_for("b").delete("/v1/users/alice").json()["counts"]["memories"] == 0
    assert len(search(client, "marigold")) == 1
