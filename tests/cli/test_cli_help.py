"""The help, the exit codes and the settings of the command."""

import json
from pathlib import Path

import click
import pytest

from tests.cli.conftest import Vimbank
from vimbank.cli.configuration import MASK
from vimbank.cli.failures import EXIT_CODES, exit_code
from vimbank.cli.main import COMMANDS, cli
from vimbank.errors import BackendError, BackendUnavailable, ConfigError, InvalidInput, NotFound, VimbankError


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_and_the_common_options(vimbank: Vimbank, name: str) -> None:
    done = vimbank(name, "--help")
    assert done.code == 0
    assert f"Example:\n    {'' if name in ('config', 'reindex') else 'vimbank ' + name}" in done.out
    for option in ("--json", "--data DIR", "-v, --verbose"):
        assert option in done.out


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_tells_what_the_command_is_called(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.name == name


def test_every_command_on_memories_takes_the_tenant() -> None:
    """The others look after the whole folder."""
    loaded = {name: cli.get_command(click.Context(cli), name) for name in COMMANDS}
    loaded = {name: each for name, each in loaded.items() if not isinstance(each, click.Group)}
    without = {
        name for name, each in loaded.items() if each and "--tenant" not in {o for p in each.params for o in p.opts}
    }
    assert without == {"serve", "reindex", "config", "curve"}


def test_the_help_lists_every_command(vimbank: Vimbank) -> None:
    out = vimbank("--help").out
    assert [line.split()[0] for line in out.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()] == list(
        COMMANDS
    )


def test_an_unknown_command_is_a_usage_error(vimbank: Vimbank) -> None:
    assert vimbank("forget").code == 2


def test_every_error_has_an_exit_code() -> None:
    errors = {kind for kind in _tree(VimbankError) if kind.__module__ == "vimbank.errors"}
    assert errors - {VimbankError, BackendError} <= set(EXIT_CODES)
    assert exit_code(NotFound("x")) == 1
    assert exit_code(InvalidInput.of("a", "b")) == 2
    assert exit_code(ConfigError("x")) == 2
    assert exit_code(BackendUnavailable("store", "x")) == 3
    assert exit_code(VimbankError("x")) == 1


def _tree(kind: type[VimbankError]) -> set[type[VimbankError]]:
    return {kind}.union(*(_tree(each) for each in kind.__subclasses__()))


def test_config_prints_value_default_and_meaning(vimbank: Vimbank) -> None:
    done = vimbank("config", "--json", VIMBANK_INDEX__K1="0.9", VIMBANK_BANKS__DIALOG__HALF_LIFE_DAYS="14")
    settings = done.json["settings"]
    assert settings["VIMBANK_INDEX__K1"] == {"value": 0.9, "default": 1.2, "description": "BM25 term saturation."}
    assert settings["VIMBANK_BANKS__DIALOG__HALF_LIFE_DAYS"]["value"] == 14
    assert settings["VIMBANK_BANKS__DIALOG__HALF_LIFE_DAYS"]["default"] == 7
    text = vimbank("config", VIMBANK_INDEX__K1="0.9").out
    line = next(line for line in text.splitlines() if line.startswith("VIMBANK_INDEX__K1 "))
    assert line.split(maxsplit=3) == ["VIMBANK_INDEX__K1", "0.9", "1.2", "BM25 term saturation."]


def test_config_masks_secrets(vimbank: Vimbank) -> None:
    keys = json.dumps([{"key": "hush-1", "tenant": "acme", "role": "read"}])
    done = vimbank(
        "config",
        "--json",
        VIMBANK_API__KEYS=keys,
        VIMBANK_ENCODER__API_KEY="hush-2",
        VIMBANK_STORE__URL="postgresql://vim:hush-3@db/vim",
    )
    assert "hush" not in done.out
    assert done.json["settings"]["VIMBANK_API__KEYS"]["value"] == [{"key": MASK, "tenant": "acme", "role": "read"}]
    assert done.json["settings"]["VIMBANK_STORE__URL"]["value"] == f"postgresql://vim:{MASK}@db/vim"


@pytest.mark.parametrize(
    ("variable", "value"),
    [("VIMBANK_INDEX__K1", "-1"), ("VIMBANK_ENCODR__KIND", "onnx"), ("VIMBANK_STORE__NONSENSE", "1")],
)
def test_a_wrong_setting_stops_the_command_and_is_named(vimbank: Vimbank, variable: str, value: str) -> None:
    done = vimbank("stats", **{variable: value})
    assert done.code == 2
    assert variable in done.err


def test_data_and_verbose_come_before_the_environment(vimbank: Vimbank, tmp_path: Path) -> None:
    settings = vimbank("config", "--json", "--data", str(tmp_path / "other"), "-v").json["settings"]
    assert settings["VIMBANK_DATA_DIR"]["value"] == str(tmp_path / "other")
    assert settings["VIMBANK_LOG__LEVEL"]["value"] == "DEBUG"
