"""erase, and check --receipt."""

import json
from pathlib import Path

from tests.cli.conftest import Vimbank


def test_erase_prints_a_receipt_that_check_verifies(vimbank: Vimbank, data: Path, tmp_path: Path) -> None:
    vimbank("add", "the marigold key is under the mat", "--user", "ana")
    vimbank("add", "ben stays", "--user", "ben")
    erased = vimbank("erase", "--user", "ana", "--yes", "--json")
    assert erased.code == 0
    assert erased.json["counts"]["memories"] == 1
    assert "marigold" not in erased.out
    assert not [path for path in data.rglob("*") if path.is_file() and b"marigold" in path.read_bytes()]
    kept = next((data / "receipts").iterdir())
    assert json.loads(kept.read_text()) == erased.json
    checked = vimbank("check", "--receipt", str(kept), "--user", "ana")
    assert (checked.code, checked.out) == (0, "clean: nothing is left of it\n")
    assert vimbank("check", "--receipt", str(kept), "--user", "ben").code == 2
    assert vimbank("list", "--user", "ben", "--json").json["total"] == 1


def test_a_changed_receipt_is_refused(vimbank: Vimbank, data: Path) -> None:
    vimbank("erase", "--user", "ana", "--yes")
    kept = next((data / "receipts").iterdir())
    kept.write_text(kept.read_text().replace('"counts"', '"count"'))
    assert vimbank("check", "--receipt", str(kept)).code == 2


def test_erase_asks_first(vimbank: Vimbank) -> None:
    vimbank("add", "the marigold key is under the mat", "--user", "ana")
    refused = vimbank("erase", "--user", "ana", stdin="n\n")
    assert refused.code == 1
    assert vimbank("list", "--user", "ana", "--json").json["total"] == 1
    assert vimbank("erase", "--user", "ana", stdin="y\n").code == 0
    assert vimbank("list", "--user", "ana", "--json").json["total"] == 0
