"""The repository's own files, for the tests that read them."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


def tracked_files() -> Iterator[Path]:
    """Every file that belongs to the project: tracked, or new and not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=True, text=True,
    )  # fmt: skip
    return (ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file())


def package_modules() -> list[Path]:
    """Every module of the package."""
    return sorted((ROOT / "vimbank").rglob("*.py"))
