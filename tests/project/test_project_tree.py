"""The tree: scripts that run, public names that explain themselves, nothing that belongs elsewhere."""

import ast
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project.tree import ROOT, package_modules, tracked_files

# Written in halves, so that this file does not hold what it forbids.
FORBIDDEN = tuple("".join(halves) for halves in (
    ("/wo", "rk/"), ("pypi", ".org"), ("python", "hosted"), ("registry", ".npmjs"), ("deb.", "debian"),
    ("hugging", "face.co"), ("cla", "ude"), ("anthro", "pic"),
))  # fmt: skip
NEIGHBOUR = "".join(("../sha", "red"))
CI = ROOT / ".ci" / "run"
MIGRATION_VERBS = {"upgrade", "downgrade"}  # the tool's names; the module says what the revision does
SCRIPTS = [
    "bench",
    "check",
    "eval-fact-updates",
    "eval-replay",
    "eval-retrieval",
    "models",
    "serve",
    "services",
    "stack",
    "test",
]

# What the server answers for, by number; a test that holds a case names it ("case 8").
CASES = {
    *(1, 2, 3, 5, 7, 8, 10, 11, 12, 14, 15, 16, 18, 19, 21),
    *(22, 23, 25, 26, 28, 29, 30, 32, 33, 35, 36, 38),
    *(39, 40, 42, 43, 45, 46, 47, 49, 50, 52, 53, 54, 56, 57, 58),
    *(59, 61, 62, 63, 65, 66, 67),
    *(68, 70, 71, 72, 73, 74, 76, 77, 79, 80, 81, 82, 84),
    *(85, 86, 88, 89, 90, 92, 93),
    *(94, 95, 97, 98, 100, 101, 102, 103, 105, 106, 108),
    *(112, 113, 114, 116),
    *(117, 118, 120, 121, 122, 124, 125, 126),
    *(127, 129, 130, 133),
    *(134, 135, 137, 138, 140, 141, 143, 144, 146, 148),
}


def texts() -> Iterator[tuple[Path, str]]:
    for path in tracked_files():
        try:
            yield path, path.read_text("utf-8")
        except UnicodeDecodeError:  # a document of the tests
            continue


def test_the_tree_speaks_of_the_project_alone() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {word}" for path, text in texts() for word in FORBIDDEN if word in text.lower()
    ]
    assert not found


def test_a_neighbour_folder_is_named_by_ci_alone() -> None:
    assert [path for path, text in texts() if NEIGHBOUR in text] in ([CI], [])


@pytest.mark.parametrize("path", package_modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_module_class_and_function_in_public_has_a_docstring(path: Path) -> None:
    tree = ast.parse(path.read_text())
    public = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_")
    ]
    bare = [node.name for node in public if not ast.get_docstring(node) and node.name not in MIGRATION_VERBS]
    if path.read_text().strip() and not ast.get_docstring(tree):
        bare.insert(0, "the module itself")
    assert not bare


def test_every_case_is_named_by_a_test() -> None:
    named: set[int] = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        for numbers in re.findall(r"\bcases? (\d+(?:(?:, | and |, and )\d+)*)", path.read_text(), re.IGNORECASE):
            named |= {int(number) for number in re.findall(r"\d+", numbers)}
        for numbers in re.findall(r"\bdef test_cases?_(\d+(?:_and_\d+)*)", path.read_text()):
            named |= {int(number) for number in re.findall(r"\d+", numbers)}
    assert sorted(CASES - named) == []


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_explains_itself_from_any_folder(name: str, tmp_path: Path) -> None:
    script = ROOT / "scripts" / name
    done = subprocess.run([script, "--help"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert f"usage: scripts/{name}" in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", [*(ROOT / "scripts" / name for name in SCRIPTS), CI], ids=lambda path: path.name)
def test_every_script_stops_at_its_first_error(path: Path) -> None:
    assert "set -euo pipefail" in path.read_text()
    assert os.access(path, os.X_OK)
