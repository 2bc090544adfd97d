"""config: every setting with its value, default and meaning; secrets masked."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

import click
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from vimbank.cli.command import Call, command
from vimbank.cli.render import table
from vimbank.domain.banks import DEFAULT_POLICIES, BankPolicy
from vimbank.domain.lifecycle import DEFAULT_LIFECYCLES, LifecyclePolicy
from vimbank.domain.records import plain
from vimbank.settings import BankSettings, LifecycleSettings, Settings, variable_name

__all__ = ["SettingRow", "bank_rows", "config", "markdown_tables", "setting_rows"]

MASK: Final = "********"
_URL_PASSWORD: Final = re.compile(r"(://[^/@:]*:)[^@]*@")
_BANKS_FIELD: Final = "banks"
_LIFECYCLE_FIELD: Final = "lifecycle"


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting: its environment variable, the value in force, its default, and what it means."""

    name: str
    value: Any
    default: Any
    description: str
    choices: tuple[str, ...] = ()


def setting_rows(settings: Settings) -> list[SettingRow]:
    """Every setting in the order of the class, without the banks' policies."""
    return list(_rows((), settings, Settings.model_construct()))


def bank_rows(settings: Settings) -> list[SettingRow]:
    """The policy of every bank, field by field: the override in force, and the built-in value as default."""
    names = [*DEFAULT_POLICIES, *(name for name in settings.banks if name not in DEFAULT_POLICIES)]
    return [row for name in names for row in _policy_rows(name, settings.banks.get(name, BankSettings()))]


def _policy_rows(bank: str, overrides: BankSettings) -> Iterator[SettingRow]:
    yield from _override_rows((_BANKS_FIELD, bank), overrides, DEFAULT_POLICIES.get(bank, BankPolicy()))
    builtin = DEFAULT_LIFECYCLES.get(bank, LifecyclePolicy())
    yield from _override_rows((_BANKS_FIELD, bank, _LIFECYCLE_FIELD), overrides.lifecycle, builtin)


def _override_rows(
    path: tuple[str, ...], overrides: BaseModel, builtin: BankPolicy | LifecyclePolicy
) -> Iterator[SettingRow]:
    for name, info in type(overrides).model_fields.items():
        if name == _LIFECYCLE_FIELD:
            continue
        given, default = getattr(overrides, name), getattr(builtin, name)
        value = default if given is None else given
        yield SettingRow(variable_name(*path, name), value, default, info.description or "", _choices(info))


def _rows(path: tuple[str, ...], model: BaseModel, defaults: BaseModel) -> Iterator[SettingRow]:
    for name, info in type(model).model_fields.items():
        value, default = getattr(model, name), getattr(defaults, name)
        if isinstance(value, BaseModel):
            yield from _rows((*path, name), value, default)
        elif name != _BANKS_FIELD:
            yield SettingRow(
                variable_name(*path, name), _shown(value), _shown(default), info.description or "", _choices(info)
            )


def _shown(value: Any) -> Any:
    if isinstance(value, SecretStr):
        return MASK
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, BaseModel):
        return {name: _shown(item) for name, item in value}
    if isinstance(value, tuple):
        return [_shown(item) for item in value]
    if isinstance(value, str):
        return _URL_PASSWORD.sub(rf"\g<1>{MASK}@", value)
    return plain(value)


def _choices(info: FieldInfo) -> tuple[str, ...]:
    """The words of a Literal, also of an optional one."""
    annotation: Any = info.annotation
    for part in get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,):
        if get_origin(part) is Literal:
            return get_args(part)
    return ()


def markdown_tables(settings: Settings) -> str:
    """README's two tables: the settings with their defaults, and the banks' built-in policies."""
    lines = ["| setting | default | meaning |", "|---|---|---|"]
    for row in setting_rows(settings):
        choices = f" One of {', '.join(f'`{choice}`' for choice in row.choices)}." if row.choices else ""
        lines.append(f"| `{row.name}` | {_markdown_value(row.default)} | {row.description}{choices} |")
    banks = list(DEFAULT_POLICIES)
    lines += ["", f"| `VIMBANK_BANKS__<BANK>__…` | {' | '.join(banks)} | meaning |", f"|---{'|---' * len(banks)}|---|"]
    for each in fields(BankPolicy):
        values = (_markdown_value(plain(getattr(DEFAULT_POLICIES[bank], each.name))) for bank in banks)
        description = BankSettings.model_fields[each.name].description
        lines.append(f"| `{each.name.upper()}` | {' | '.join(values)} | {description} |")
    for part in fields(LifecyclePolicy):
        values = (_markdown_value(plain(getattr(DEFAULT_LIFECYCLES[bank], part.name))) for bank in banks)
        description = LifecycleSettings.model_fields[part.name].description
        lines.append(f"| `{_LIFECYCLE_FIELD.upper()}__{part.name.upper()}` | {' | '.join(values)} | {description} |")
    return "\n".join(lines)


def _markdown_value(value: Any) -> str:
    return "unset" if value is None or value == [] else f"`{_text(value)}`"


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _records(rows: list[SettingRow]) -> Mapping[str, Any]:
    return {row.name: {"value": row.value, "default": row.default, "description": row.description} for row in rows}


@command("config", example="VIMBANK_ENCODER__THREADS=4 vimbank config", tenant=False)
@click.option("--markdown", is_flag=True, help="The tables of README.md: names, defaults, meanings.")
def config(call: Call, markdown: bool) -> None:
    """Print every setting: name, value in force, default, meaning. Secrets are masked."""
    settings = call.settings()
    if markdown:
        click.echo(markdown_tables(settings))
        return
    rows = [*setting_rows(settings), *bank_rows(settings)]
    shown = table(
        [(row.name, _text(row.value), _text(row.default), row.description) for row in rows],
        heading=("setting", "value", "default", "meaning"),
    )
    call.answer({"settings": _records(rows)}, shown)
