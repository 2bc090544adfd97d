"""search: the answer, its explanation, and what is refused."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import ENVIRONMENT, Vimbank
from vimbank.domain.models import MemoryDraft, Query
from vimbank.settings import EncoderSettings, Settings
from vimbank.wiring import open_service


@pytest.fixture
def filled(vimbank: Vimbank, data: Path, memories: list[MemoryDraft]) -> Vimbank:
    """The command over the dozen memories."""
    with open_service(Settings(data_dir=data, encoder=EncoderSettings(kind="hashing"))) as service:
        service.add_many(memories)
    return vimbank


def test_search_prints_rank_score_bank_id_and_text(filled: Vimbank) -> None:
    done = filled("search", "ZX-4471", "--user", "ana", "--bank", "knowledge", "-k", "2")
    lines = done.out.splitlines()
    assert lines[0].split() == ["rank", "score", "bank", "id", "text"]
    rank, score, bank, _, text = lines[1].split(maxsplit=4)
    assert (rank, bank) == ("1", "knowledge")
    assert 0 < float(score) <= 1
    assert text.startswith("error code ZX-4471 on the pump")
    assert len(lines) <= 3


def test_explain_shows_figures_that_add_up(filled: Vimbank) -> None:
    best = filled("search", "peanuts allergic", "--user", "ana", "--bank", "dialog", "-k", "1", "--explain", "--json")
    explanation = best.json["results"][0]["explain"]
    product = sum(explanation["parts"].values())
    assert product == pytest.approx(explanation["relevance"], abs=1e-6)
    for factor in explanation["factors"].values():
        product *= factor
    assert product == pytest.approx(best.json["results"][0]["score"], abs=1e-6)

    shown = filled(
        "search", "peanuts allergic", "--user", "ana", "--bank", "dialog", "-k", "1", "--explain", "--no-reinforce"
    )
    figures = {line.rsplit(maxsplit=1)[0].strip(): float(line.rsplit(maxsplit=1)[1])
               for line in shown.out.splitlines()[2:] if not line.strip().startswith("from ")}  # fmt: skip
    parts = sum(value for name, value in figures.items() if name[0] not in "=x")
    factors = [value for name, value in figures.items() if name.startswith("x ")]
    assert parts == pytest.approx(figures["= relevance"], abs=1e-5)
    for factor in factors:
        parts *= factor
    assert parts == pytest.approx(figures["= score"], abs=1e-5)


def test_labels_stand_beside_the_scores(filled: Vimbank) -> None:
    """V-9: relevant, irrelevant or conflicting."""
    shown = filled("search", "peanuts allergic", "--user", "ana", "--bank", "dialog", "--labels").out.splitlines()
    assert shown[0].split() == ["rank", "score", "label", "bank", "id", "text"]
    labels = [line.split()[2] for line in shown[1:]]
    assert labels[0] == "relevant"
    assert set(labels) == {"relevant", "irrelevant"}
    found = filled("search", "peanuts allergic", "--user", "ana", "--bank", "dialog", "--labels", "--json").json
    assert [hit["label"] for hit in found["results"]] == labels


def test_case_29_the_command_ranks_as_python_does(filled: Vimbank, data: Path) -> None:
    queries = ["allergic", "what is the cat called", "ZX-4471 valve", "pump", "quiet hours", "clean mug desk"]
    with open_service(Settings(data_dir=data, encoder=EncoderSettings(kind="hashing"))) as service:
        expected = [
            [scored.memory.id for scored in service.search(
                Query(tenant="default", user_id="ana", text=text, reinforce=False)).results]
            for text in queries
        ]  # fmt: skip
    found = [filled("search", text, "--user", "ana", "--no-reinforce", "--json").json["results"] for text in queries]
    assert [[result["id"] for result in results] for results in found] == expected
    assert all(expected)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (("-k", "0"), "top_k"),  # case 77
        (("-k", "-3"), "top_k"),
        (("--threshold", "1.5"), "threshold"),
        (("--bank", "nonsense"), "banks"),
        (("--filter", '{"age": {"gtt": 5}}'), "filter"),  # case 52
        (("--filter", "{"), "filter"),
        (("--as-of", "soon"), "as_of"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(filled: Vimbank, options: tuple[str, ...], field: str) -> None:
    done = filled("search", "tea", "--user", "ana", "--json", *options)
    assert done.code == 2
    assert field in done.json["error"]["errors"][0]["field"]
    assert field in done.err


def test_case_52_the_operator_is_named(filled: Vimbank) -> None:
    assert "gtt" in filled("search", "tea", "--user", "ana", "--filter", '{"age": {"gtt": 5}}').err


@pytest.mark.parametrize("blank", ["", "   ", "\n"])
def test_case_80_a_blank_query_is_refused(filled: Vimbank, blank: str) -> None:
    done = filled("search", blank, "--user", "ana", "--json")
    assert (done.code, done.json["error"]["errors"][0]["field"]) == (2, "query")


def test_nothing_found_is_no_error(vimbank: Vimbank) -> None:
    done = vimbank("search", "tea", "--user", "nobody")
    assert (done.code, done.out) == (0, "No memory found.\n")


def test_filters_and_scopes_reach_the_search(filled: Vimbank) -> None:
    ids = filled(
        "search", "Ana", "--user", "ana", "--filter", '{"topic": ["pets", "home"]}', "--session", "s1", "--json"
    )
    assert [result["metadata"]["topic"] for result in ids.json["results"]] == ["home"]


@pytest.mark.parametrize("broken", [b"a\xff", b"caf\xe9"])
def test_case_114_bytes_that_are_no_text_are_cleaned_or_refused(data: Path, broken: bytes) -> None:
    """In a real process, where such bytes arrive as lone surrogates."""
    command = str(Path(sys.executable).parent / "vimbank")
    environment = {**ENVIRONMENT, "VIMBANK_DATA_DIR": str(data), "PATH": "/usr/bin", "LC_ALL": "C.UTF-8"}
    for arguments in (
        [b"add", broken, b"--user", b"ana", b"--json"],
        [b"search", broken, b"--user", b"ana", b"--json"],
        [b"get", broken, b"--json"],
    ):
        done = subprocess.run([command.encode(), *arguments], env=environment, capture_output=True, check=False)
        assert done.returncode in (0, 1, 2), done.stderr.decode()
        json.loads(done.stdout.decode())
        assert b"Traceback" not in done.stderr
    after = subprocess.run(
        [command, "add", "still works", "--user", "ana"], env=environment, capture_output=True, check=False
    )
    assert after.returncode == 0
