"""``vimbank store``: migrate and copy."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine
from sqlalchemy.engine import make_url
from sqlalchemy.pool import NullPool

from tests.cli.conftest import Vimbank
from tests.contracts.postgres import new_database
from vimbank.store.tables import SCHEMA_VERSION


@pytest.fixture
def other(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'other.db'}"


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.services)])
def target(request: pytest.FixtureRequest, other: str) -> Iterator[str]:
    if request.param == "sqlite":
        yield other
        return
    with new_database() as url:
        yield url


def url_of(data: Path) -> str:
    return f"sqlite:///{data / 'vimbank.db'}"


@pytest.mark.parametrize("name", ["migrate", "copy"])
def test_each_has_help_with_an_example_and_the_common_options(vimbank: Vimbank, name: str) -> None:
    done = vimbank("store", name, "--help")
    assert done.code == 0
    assert f"Example:\n    vimbank store {name}" in done.out
    for option in ("--json", "--data DIR", "-v, --verbose"):
        assert option in done.out


def test_migrate_makes_a_store_and_is_idempotent(vimbank: Vimbank, data: Path) -> None:
    first = vimbank("store", "migrate", "--json")
    assert (first.code, first.json) == (0, {"former": None, "current": SCHEMA_VERSION, "changed": True})
    assert (data / "vimbank.db").is_file()
    again = vimbank("store", "migrate", "--json")
    assert again.json == {"former": SCHEMA_VERSION, "current": SCHEMA_VERSION, "changed": False}
    assert vimbank("store", "migrate").out == f"schema {SCHEMA_VERSION} is the newest\n"


def test_migrate_elsewhere(vimbank: Vimbank, target: str) -> None:
    assert vimbank("store", "migrate", "--url", target).out == f"from no schema to schema {SCHEMA_VERSION}\n"


def test_migrate_refuses_a_newer_schema(vimbank: Vimbank, data: Path) -> None:
    vimbank("store", "migrate")
    with create_engine(url_of(data), poolclass=NullPool).begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    done = vimbank("store", "migrate", "--json")
    assert done.code == 2
    assert "schema 9999" in done.err
    assert done.json["error"]["type"] == "ConfigError"


def test_a_copy_answers_like_its_source(vimbank: Vimbank, data: Path, target: str) -> None:
    for text in ("tea at five", "coffee at nine"):
        vimbank("add", "--user", "ana", "--bank", "dialog", text)
    done = vimbank("store", "copy", "--from", url_of(data), "--to", target, "--json")
    assert done.code == 0, done.err
    rows = {each["name"]: each["rows"] for each in done.json["tables"]}
    assert (done.json["revision"], done.json["schema"]) == (2, SCHEMA_VERSION)
    assert (rows["memories"], rows["embeddings"], rows["history"]) == (2, 2, 2)
    found = [
        vimbank("search", "--user", "ana", "tea", "--json", **environment).json["results"]
        for environment in ({}, {"VIMBANK_STORE__URL": target})
    ]
    assert found[0]
    assert [(each["id"], each["text"]) for each in found[1]] == [(each["id"], each["text"]) for each in found[0]]


def test_a_copy_is_told_in_a_table(vimbank: Vimbank, data: Path, other: str) -> None:
    vimbank("add", "--user", "ana", "--bank", "dialog", "tea")
    done = vimbank("store", "copy", "--from", url_of(data), "--to", other)
    assert done.out.splitlines()[0].split() == ["table", "rows", "digest"]
    assert done.out.splitlines()[-1].endswith("both stores are at revision 1")
    again = vimbank("store", "copy", "--from", url_of(data), "--to", other)
    assert again.code == 1
    assert "is not empty" in again.err


def test_no_store_to_copy(vimbank: Vimbank, data: Path, other: str, tmp_path: Path) -> None:
    done = vimbank("store", "copy", "--from", f"sqlite:///{tmp_path / 'nowhere.db'}", "--to", other)
    assert done.code == 2
    assert "there is no store at" in done.err
    assert list(tmp_path.glob("*.db")) == []


@pytest.mark.services
def test_passwords_are_never_printed(vimbank: Vimbank, data: Path) -> None:
    vimbank("store", "migrate")
    with new_database() as url:
        secret = make_url(url).set(password="hush-7").render_as_string(hide_password=False)
        vimbank("store", "copy", "--from", url_of(data), "--to", secret)
        vimbank("add", "--user", "ana", "--bank", "dialog", "tea", VIMBANK_STORE__URL=secret)
        again = vimbank("store", "copy", "--from", url_of(data), "--to", secret, "--json")
    assert again.code == 1
    assert "is not empty" in again.err
    nobody = vimbank("store", "migrate", "--url", "postgresql://ana:hush-7@127.0.0.1:1/x", "-v", "--json")
    assert nobody.code == 3
    assert nobody.json["error"]["type"] == "BackendUnavailable"
    assert not any("hush" in text for done in (again, nobody) for text in (done.out, done.err))


def test_the_help_loads_neither_database(data: Path) -> None:
    code = (
        "import sys; from vimbank.cli.main import cli; cli(['--help'], standalone_mode=False); "
        "print(sorted({'sqlalchemy', 'psycopg', 'alembic'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert json.loads(out.splitlines()[-1].replace("'", '"')) == []
