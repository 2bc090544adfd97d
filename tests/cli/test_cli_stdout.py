"""Standard output carries the answer and nothing else, whatever is logged (case 129): every command, debug logs on."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.project.test_project_readme import all_commands
from vimbank.cli.main import cli

MEMORY = "m1"
WORDS: dict[str, Sequence[str]] = {
    "add": ("--user=ana", "--id=m2", "--bank=dialog", "--", "her cat is called Mochi"),
    "search": ("--user=ana", "--explain", "--", "cat"),
    "get": (MEMORY,),
    "list": ("--user=ana",),
    "update": ("--text=likes tea", MEMORY),
    "delete": (MEMORY,),
    "history": (MEMORY,),
    "feedback": (MEMORY, "used"),
    "ingest": ("--user=ana", "{folder}/note.md"),
    "load": ("scm", "{folder}"),
    "summaries": ("--user=ana",),
    "archive": (MEMORY,),
    "restore": (MEMORY,),
    "suppress": (MEMORY,),
    "unsuppress": (MEMORY,),
    "forecast": ("--user=ana",),
    "consolidate": ("--dry-run",),
    "conflicts": ("--dry-run",),
    "stats": (),
    "check": (),
    "export": ("--user=ana", "--out={folder}/export.jsonl"),
    "import": ("{folder}/lines.jsonl", "--user=ana"),
    "erase": ("--user=ana", "--yes"),
    "reindex": (),
    "store migrate": (),
    "store copy": ("--from=sqlite:///{folder}/vimbank.db", "--to=sqlite:///{folder}/copy.db"),
    "es status": (),
    "es reindex": (),
    "es migrate": (),
    "jobs start": ("check",),
    "jobs list": (),
    "jobs show": ("nope",),
    "jobs watch": ("nope",),
    "jobs cancel": ("nope",),
    "jobs names": (),
    "curve": (),
    "config": (),
}
"""Each command with words that it does something by, or refuses; a test fails where a new one is not here."""

NOT_JSON = {"serve"}
"""It answers over HTTP."""


def test_every_command_is_here() -> None:
    assert set(WORDS) == set(all_commands()) - NOT_JSON


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stdout")
    (folder / "note.md").write_text("# Note\n\nThe pump runs at 50 Hz.\n")
    (folder / "lines.jsonl").write_text('{"text": "the ferry leaves at nine", "bank": "dialog"}\n')
    return folder


@pytest.mark.parametrize("name", WORDS)
def test_with_debug_logs_on_standard_output_is_one_json_document(name: str, made: Path, tmp_path: Path) -> None:
    environment = {"VIMBANK_DATA_DIR": str(tmp_path), "VIMBANK_ENCODER__KIND": "hashing", "VIMBANK_LOG__FORMAT": "json"}

    def run(command: str, *words: str) -> tuple[int, str, str]:
        given = [*command.split(), "--json", "-v", *words]
        result = CliRunner().invoke(cli, given, env=environment)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.stdout, result.stderr

    code, _, _ = run("add", "--user=ana", f"--id={MEMORY}", "--", "Ana is allergic to peanuts")
    assert code == 0
    for path in made.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    code, out, _ = run(name, *(word.replace("{folder}", str(tmp_path)) for word in WORDS[name]))
    assert code in (0, 1, 2, 3)
    document = json.loads(out)  # one document: a second, or a line of a log, would be no JSON
    assert isinstance(document, dict)
    assert code in (0, 1) or "error" in document


@pytest.mark.parametrize("logs", ["text", "json"])
def test_the_process_itself_writes_no_log_to_standard_output(tmp_path: Path, logs: str) -> None:
    """Ten calls of a real process, of which libraries could write past Python's own streams."""
    environment = {**os.environ, "VIMBANK_DATA_DIR": str(tmp_path), "VIMBANK_ENCODER__KIND": "hashing",
                   "VIMBANK_LOG__FORMAT": logs, "VIMBANK_LOG__LEVEL": "DEBUG"}  # fmt: skip
    program = (
        "import sys, logging\n"
        "from vimbank.cli.main import main\n"
        "search = ['search', '--json', '--user=ana', 'pier']\n"
        "calls = [['add', '--json', '--user=ana', '--', 'the pier'], *[search] * 9]\n"
        "for words in calls:\n"
        "    sys.argv = ['vimbank', *words]\n"
        "    try:\n"
        "        main()\n"
        "    except SystemExit as ended:\n"
        "        assert not ended.code, ended.code\n"
        "    logging.getLogger('vimbank.test').debug('a line of the log')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    decoder, rest, documents = json.JSONDecoder(), done.stdout.strip(), []
    while rest:
        document, end = decoder.raw_decode(rest)
        documents.append(document)
        rest = rest[end:].strip()
    assert len(documents) == 10
    assert done.stderr.count("a line of the log") == 10
