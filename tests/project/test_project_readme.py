"""README and CHANGELOG name what there is, and nothing else."""

import re
import shlex

import click
import pytest

from tests.project.tree import ROOT
from vimbank.cli.configuration import bank_rows, markdown_tables, setting_rows
from vimbank.cli.main import COMMANDS, cli
from vimbank.observability.metrics import METRICS
from vimbank.settings import Settings

README = (ROOT / "README.md").read_text()
TYPED = [line[2:] for line in README.splitlines() if line.startswith("$ vimbank ")]


def all_commands() -> dict[str, click.Command]:
    """Each by its name, and those of a group by the group's name and their own."""
    context = click.Context(cli)
    found: dict[str, click.Command] = {}
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        parts = command.commands.items() if isinstance(command, click.Group) else ()
        found |= {f"{name} {part}": each for part, each in parts} or {name: command}
    return found


def test_readme_names_every_command_with_its_summary_and_no_other() -> None:
    rows = dict(re.findall(r"^\| `vimbank ([\w-]+)` \| (.*?) \|", README, re.MULTILINE))
    assert rows == {name: entry.summary for name, entry in COMMANDS.items()}


def test_readme_names_every_option_of_every_command() -> None:
    for name, command in all_commands().items():
        row = next(line for line in README.splitlines() if line.startswith(f"| `vimbank {name.split()[0]}` |"))
        own = {max(option.opts, key=len) for option in command.params if isinstance(option, click.Option)}
        missing = {opt for opt in own - {"--json", "--data", "--tenant", "--verbose"} if f"`{opt}" not in row}
        assert not missing, f"README's row of {name} lacks {missing}"


def test_readme_holds_the_tables_of_settings_as_they_are() -> None:
    """``vimbank config --markdown`` prints them."""
    for line in markdown_tables(Settings()).splitlines():
        assert line in README


def test_readme_names_no_setting_that_does_not_exist() -> None:
    known = {row.name for row in [*setting_rows(Settings()), *bank_rows(Settings())]}
    named = set(re.findall(r"\bVIMBANK_(?!TEST_)[A-Z0-9_]*[A-Z0-9]\b(?!__)", README))
    assert named <= known | {"VIMBANK_BANKS"}


def test_every_setting_has_a_description() -> None:
    for row in [*setting_rows(Settings()), *bank_rows(Settings())]:
        assert row.description.endswith("."), row.name


@pytest.mark.parametrize("line", TYPED)
def test_what_readme_types_is_understood(line: str) -> None:
    _, *words = shlex.split(line)
    length = 1 if words[0] in all_commands() else 2
    name, arguments = " ".join(words[:length]), words[length:]
    command = all_commands()[name]
    with command.make_context(name, arguments, resilient_parsing=False) as context:
        assert context.params


def test_readme_leads_with_the_two_commands() -> None:
    head = README[:1500]
    assert 0 < head.index("scripts/serve") < head.index("scripts/test")


def test_readme_names_every_script() -> None:
    for script in (ROOT / "scripts").iterdir():
        if script.is_file() and script.stat().st_mode & 0o100:
            assert f"scripts/{script.name}" in README


def test_changelog_has_an_unreleased_section_on_top() -> None:
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "[Unreleased]"


def test_readme_names_every_metric_with_its_meaning_and_no_other() -> None:
    rows = re.findall(r"^\| `(vimbank_\w+)(?:\{[a-z,]+\})?` \| (.+) \|$", README, re.MULTILINE)
    assert dict(rows) == METRICS
