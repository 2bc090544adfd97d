"""Where the report of an evaluation goes: files, standard output."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["publish"]


def publish(report: Mapping[str, Any], markdown: str, *, stem: str, out: Path | None, as_json: bool) -> None:
    """Print a report as Markdown or JSON, and write both to ``out``, where a folder is given.

    Args:    stem: of the files, ``<stem>.json`` and ``<stem>.md``.
    """
    text = json.dumps(report, indent=2, ensure_ascii=False) + "\n"
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / f"{stem}.json").write_text(text, "utf-8")
        (out / f"{stem}.md").write_text(markdown, "utf-8")
    sys.stdout.write(text if as_json else markdown)
