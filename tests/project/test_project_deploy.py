"""Dockerfile, compose file and scripts, by every means that needs no container engine.

The compose file is held to the Compose specification's schema, the Dockerfile to hadolint, the scripts to shellcheck;
each service's environment must make valid Settings, and each command must be one that its program understands.
"""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, get_args

import click
import pytest
import yaml
from pydantic import BaseModel

import vimbank
from tests.project.tree import ROOT
from vimbank.api.auth import Keyring
from vimbank.api.server import _GRACE_S
from vimbank.cli.main import cli
from vimbank.domain.jobs import QueueName
from vimbank.settings import Settings, load_settings

BIN: Final = Path(sys.executable).parent
COMPOSE: Final = ROOT / "docker-compose.yml"
DOCKERFILE: Final = ROOT / "Dockerfile"
EXAMPLE: Final = ROOT / "deploy" / "example.env"
SCRIPTS: Final = sorted(
    path for path in (*(ROOT / "scripts").iterdir(), ROOT / ".ci" / "run") if path.suffix in ("", ".sh")
)
SECRETS: Final = {
    "VIMBANK_API__KEYS": '[{"key": "k-1", "role": "admin"}]',
    **{f"{name}_PASSWORD": "s3cret" for name in ("POSTGRES", "REDIS", "ELASTIC", "FLOWER")},
}
OWN: Final = ("api", "worker", "beat", "flower")
# Programs that the official images are known to hold, beside a shell; Alpine's has BusyBox.
TOOLS: Final = {
    "vimbank": {"python", "celery"},
    "elasticsearch": {"curl"},
    "redis": {"redis-cli", "grep"},
    "postgres": {"pg_isready"},
}
# ${NAME:?what to do}, ${NAME:-default}; $$ is a dollar sign.
_VARIABLE = re.compile(r"\$(?:(\$)|\{([A-Z_]+)(?::([-?])([^}]*))?\})")


def interpolate(value: Any, given: Mapping[str, str]) -> Any:
    """What Compose makes of the variables of a value. Raises LookupError for a required one that is not given."""
    if isinstance(value, dict):
        return {name: interpolate(each, given) for name, each in value.items()}
    if isinstance(value, list):
        return [interpolate(each, given) for each in value]
    if not isinstance(value, str):
        return value

    def replaced(found: re.Match[str]) -> str:
        dollar, name, sign, rest = found.groups()
        if dollar:
            return "$"
        if given.get(name):
            return given[name]
        if sign == "-":
            return str(rest)
        raise LookupError(f"{name}: {rest}")

    return _VARIABLE.sub(replaced, value)


RAW: Final[dict[str, Any]] = yaml.safe_load(COMPOSE.read_text())
FILE: Final[dict[str, Any]] = interpolate(RAW, SECRETS)
SERVICES: Final[dict[str, dict[str, Any]]] = FILE["services"]


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions, each with its arguments on one line."""
    text = re.sub(r"^\s*#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in text.splitlines() if line.strip()]


def image_environment() -> dict[str, str]:
    """The variables that the final stage of the Dockerfile sets."""
    last = max(index for index, (name, _) in enumerate(instructions()) if name == "FROM")
    given = [rest for name, rest in instructions()[last:] if name == "ENV"]
    return dict(word.split("=", 1) for rest in given for word in shlex.split(rest))


def environment_of(service: str) -> dict[str, str]:
    own = {name: str(value) for name, value in SERVICES[service].get("environment", {}).items()}
    return image_environment() | own if service in OWN else own


def seconds(duration: str) -> float:
    units = {"s": 1, "m": 60, "h": 3600}
    return sum(float(number) * units[unit] for number, unit in re.findall(r"(\d+)([smh])", duration))


def megabytes(size: str) -> float:
    return float(size[:-1]) * {"m": 1, "g": 1024}[size[-1]]


def tool(name: str) -> Path:
    """A checking tool of the tests' environment; a skip where there is no build of it for this processor."""
    if not (BIN / name).exists():
        pytest.skip(f"{name} is not installed; the extra dev brings it for Linux on x86_64")
    return BIN / name


# -- the compose file --


def test_compose_file_is_valid_by_the_schema_of_the_specification() -> None:
    done = subprocess.run(
        [BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", COMPOSE],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_compose_file_has_the_services_and_what_they_mount() -> None:
    assert set(SERVICES) == {*OWN, "elasticsearch", "redis", "postgres"}
    mounted = {each.partition(":")[0] for service in SERVICES.values() for each in service.get("volumes", [])}
    assert mounted == set(FILE["volumes"])
    assert {each["source"] for service in SERVICES.values() for each in service.get("configs", [])} == set(
        FILE["configs"]
    )


@pytest.mark.parametrize("service", RAW["services"])
def test_service_restarts_ends_in_order_and_is_bounded(service: str) -> None:
    described = SERVICES[service]
    assert described["restart"] == "unless-stopped"
    assert seconds(described["stop_grace_period"]) >= 15
    assert megabytes(described["mem_limit"]) <= 2048
    assert all(port.startswith("127.0.0.1:") for port in described.get("ports", []))
    assert described["logging"]["options"]["max-size"]


def test_everything_together_fits_a_laptop() -> None:
    assert sum(megabytes(service["mem_limit"]) for service in SERVICES.values()) <= 8 * 1024


@pytest.mark.parametrize("service", RAW["services"])
def test_service_waits_for_healthy_ones(service: str) -> None:
    for other, wait in SERVICES[service].get("depends_on", {}).items():
        assert wait == {"condition": "service_healthy"}
        own = SERVICES[other].get("healthcheck", {})
        assert not own.get("disable")
        assert own.get("test") or (other in OWN and "HEALTHCHECK" in dict(instructions()))


@pytest.mark.parametrize("service", RAW["services"])
def test_images_are_official_and_pinned(service: str) -> None:
    name, _, tag = RAW["services"][service]["image"].partition(":")
    assert re.fullmatch(r"[a-z]+", name), "an official image, named without a host"
    assert re.fullmatch(r"\d+\.\d+(\.\d+)?(-[a-z]+)?", tag)
    if service in OWN:
        assert (name, tag) == ("vimbank", vimbank.__version__)


def test_nothing_secret_is_written_down_and_every_secret_is_required() -> None:
    text = COMPOSE.read_text()
    values = re.findall(r"^\s*(\w*(?:PASSWORD|KEYS|AUTH|requirepass)\w*)[: ]\s*(.+)$", text, re.MULTILINE)
    assert len(values) >= 7
    assert [name for name, value in values if not re.search(r"\$\{[A-Z_]+:\?[^}]+\}$", value)] == []
    assert re.findall(r"://[^/\s]*:(?!\$)[^/\s@]+@", text) == []
    for name in SECRETS:
        with pytest.raises(LookupError, match=name):
            interpolate(RAW, {other: value for other, value in SECRETS.items() if other != name})


def test_the_example_names_what_the_compose_file_asks_for_and_holds_no_value() -> None:
    asked = {name: sign for _, name, sign, _ in _VARIABLE.findall(COMPOSE.read_text()) if name}
    lines = EXAMPLE.read_text().splitlines()
    assert {line for line in lines if line and not line.startswith("#")} == {
        f"{name}=" for name, sign in asked.items() if sign == "?"
    }
    optional = dict(re.findall(r"^# ([A-Z_]+)=([^'\n]*)$", EXAMPLE.read_text(), re.MULTILINE))
    defaults = {name: rest for _, name, sign, rest in _VARIABLE.findall(COMPOSE.read_text()) if sign == "-"}
    assert optional == defaults
    assert "/.env" in (ROOT / ".gitignore").read_text().split()


# -- settings --


def names_of(model: type[BaseModel], prefix: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        rooms = [each for each in (field.annotation, *get_args(field.annotation)) if isinstance(each, type)]
        nested = next((each for each in rooms if issubclass(each, BaseModel)), None)
        here = f"{prefix}{name}".upper()
        if nested is None or name == "keys":
            yield here
        elif name == "banks":
            yield from (f"{here}__<BANK>__{inner}".upper() for inner in nested.model_fields)
        else:
            yield here
            yield from names_of(nested, f"{here}__")


@pytest.mark.parametrize(
    "path",
    [COMPOSE, DOCKERFILE, *(ROOT / "deploy").rglob("*.*"), *(ROOT / "docs").rglob("*.md"), *SCRIPTS],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_every_variable_named_is_a_setting(path: Path) -> None:
    known = set(names_of(Settings, "VIMBANK_"))
    named = set(re.findall(r"\bVIMBANK_(?!TEST_)[A-Z0-9_]*[A-Z0-9]\b", path.read_text()))
    assert named <= known


@pytest.mark.parametrize("service", OWN)
def test_settings_are_made_from_the_service_s_environment(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment_of(service).items():
        monkeypatch.setenv(name, value)
    settings = load_settings()
    assert settings.redis.url is not None
    assert settings.redis.url.get_secret_value() == "redis://:s3cret@redis:6379/0"
    assert settings.jobs.runner == "celery"
    if service in ("api", "worker"):
        assert settings.store.url == "postgresql+psycopg://vimbank:s3cret@postgres:5432/vimbank"
        assert (settings.index.sparse, settings.elasticsearch.url) == ("elasticsearch", "http://elasticsearch:9200")
        assert settings.elasticsearch.password is not None
        assert any(each.endswith(f":{settings.data_dir}") for each in SERVICES[service]["volumes"])
        # Beside the indexes stand the model and the libraries: 320 MB of a server that was just started.
        processes = 1 if service == "api" else int(option(SERVICES[service]["command"], "--concurrency"))
        assert processes * (settings.index.memory_mb + 400) <= megabytes(SERVICES[service]["mem_limit"])
    else:
        assert settings.store.url is None, "no more than it needs"


def test_the_api_of_the_compose_file_asks_for_keys_and_listens_to_its_port(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment_of("api").items():
        monkeypatch.setenv(name, value)
    settings = load_settings()
    Keyring.of(settings.api)  # which refuses to listen on all addresses without keys
    assert settings.api.host == "0.0.0.0"
    assert SERVICES["api"]["ports"] == [f"127.0.0.1:8080:{settings.api.port}"]
    assert ("EXPOSE", str(settings.api.port)) in instructions()


# -- commands --


def option(command: list[str], name: str) -> str:
    return command[command.index(name) + 1]


def entrypoint() -> list[str]:
    return list(json.loads(dict(instructions())["ENTRYPOINT"]))


@pytest.mark.parametrize("service", OWN)
def test_every_command_is_understood_by_its_program(service: str, tmp_path: Path) -> None:
    """``--help`` behind it: a command or an option that does not exist is refused before the help is printed."""
    words: list[str] = [*SERVICES[service].get("entrypoint", entrypoint()), *SERVICES[service]["command"]]
    done = subprocess.run(
        [BIN / words[0], *words[1:], "--help"],
        env=os.environ | {name: value for name, value in environment_of(service).items() if name != "PATH"}
        | {"VIMBANK_DATA_DIR": str(tmp_path)},
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Usage:" in done.stdout


def test_the_worker_takes_every_queue_here_and_in_the_stack() -> None:
    queues = set(get_args(QueueName))
    assert set(option(SERVICES["worker"]["command"], "--queues").split(",")) == queues
    found = re.search(r"^queues=(.*)$", (ROOT / "scripts" / "stack").read_text(), re.MULTILINE)
    assert found is not None
    assert set(found[1].split(",")) == queues


def test_the_api_has_time_to_end_in_order() -> None:
    assert seconds(SERVICES["api"]["stop_grace_period"]) > _GRACE_S


@pytest.mark.parametrize("service", RAW["services"])
def test_health_checks_use_programs_of_the_image(service: str) -> None:
    kind, *words = SERVICES[service].get("healthcheck", {}).get("test", ["NONE"])
    if kind == "CMD-SHELL":
        words = shlex.split(words[0])
    programs = {words[0], *(after for word, after in pairwise(words) if word == "|")} if words else set()
    assert programs <= TOOLS[SERVICES[service]["image"].partition(":")[0]]
    for script in (word for word in words if word.endswith(".py")):
        assert any(name == "COPY" and rest.split()[-1] == script for name, rest in instructions())


def test_redis_keeps_its_queue() -> None:
    directives = dict(line.split(maxsplit=1) for line in FILE["configs"]["redis"]["content"].splitlines())
    assert directives["appendonly"] == "yes"
    assert directives["maxmemory-policy"] == "noeviction"
    assert directives["requirepass"] == "s3cret"


def test_a_real_redis_takes_its_configuration(tmp_path: Path) -> None:
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed")
    (tmp_path / "redis.conf").write_text(FILE["configs"]["redis"]["content"])
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    command = [SERVICES["redis"]["command"][0], tmp_path / "redis.conf", "--port", port, "--bind", "127.0.0.1"]
    server = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
    shell = ["sh", "-c", SERVICES["redis"]["healthcheck"]["test"][1].replace("redis-cli", f"redis-cli -p {port}")]
    known = os.environ | SERVICES["redis"]["environment"]
    try:
        deadline = time.monotonic() + 10
        while subprocess.run(shell, env=known, capture_output=True, check=False).returncode != 0:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert subprocess.run(shell, capture_output=True, check=False).returncode != 0, "without the password"
    finally:
        server.terminate()
        server.wait(10)


def test_what_the_guide_types_is_understood() -> None:
    """Every ``vimbank`` line of it; the group of a command parses first."""
    lines = re.findall(r"(?:^\$ |`)(vimbank [a-z][^`\n]*)", (ROOT / "docs" / "deployment.md").read_text(), re.MULTILINE)
    assert len(lines) >= 5
    for line in lines:
        words = shlex.split(line)[1:]
        command: click.Command = cli
        context = click.Context(cli)
        while isinstance(command, click.Group):
            name = words.pop(0)
            found = command.get_command(context, name)
            assert found is not None, line
            command = found
        with command.make_context(name, words):
            pass


# -- the image --


def test_hadolint_has_nothing_to_say() -> None:
    done = subprocess.run([tool("hadolint"), DOCKERFILE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_runs_as_nobody_special_with_exec_forms_and_a_health_check() -> None:
    given = dict(instructions())
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", given["USER"])
    for name in ("ENTRYPOINT", "CMD"):
        assert all(isinstance(word, str) for word in json.loads(given[name]))
    check = given["HEALTHCHECK"]
    assert json.loads(check[check.index("CMD ") + 4 :])[0] == "python"
    assert given["VOLUME"] == image_environment()["VIMBANK_DATA_DIR"] == given["WORKDIR"]


def test_base_images_are_slim_pinned_and_new_enough() -> None:
    found = re.search(r"^ARG PYTHON_VERSION=(\d+)\.(\d+)\.\d+-slim-\w+$", DOCKERFILE.read_text(), re.MULTILINE)
    assert found is not None
    assert (int(found[1]), int(found[2])) >= (3, 11)
    assert {rest.split()[0] for name, rest in instructions() if name == "FROM"} == {"python:${PYTHON_VERSION}"}


def test_every_build_argument_is_explained() -> None:
    head = DOCKERFILE.read_text().partition("\nARG")[0]
    for name, rest in instructions():
        if name == "ARG":
            assert f"#   {rest.partition('=')[0]} " in head


def test_what_is_copied_is_there_and_not_ignored() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    allowed = {line[1:] for line in ignored if line.startswith("!")}
    copied = {
        source
        for name, rest in instructions()
        if name == "COPY" and not rest.startswith("--from=")
        for source in rest.split()[:-1]
    }
    assert "*" in ignored
    assert copied == allowed
    assert [source for source in copied if not (ROOT / source).exists()] == []


@contextmanager
def answering(status: int) -> Iterator[str]:
    """The address of a server that answers every request so."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/health/live"
        finally:
            server.shutdown()
            thread.join()


def probe(url: str) -> int:
    return subprocess.run([sys.executable, ROOT / "deploy" / "healthcheck.py", url], check=False).returncode


def test_the_health_check_tells_a_server_that_answers_from_others() -> None:
    with answering(200) as url:
        assert probe(url) == 0
    assert probe(url) == 1
    with answering(503) as url:
        assert probe(url) == 1


# -- scripts --


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_shellcheck_has_nothing_to_say(path: Path) -> None:
    if path.suffix == "" and not path.read_text().startswith("#!/usr/bin/env bash"):
        return
    done = subprocess.run(
        [tool("shellcheck"), "--external-sources", "--source-path=SCRIPTDIR", path],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(shutil.which("docker") is None, reason="there is no docker command")
def test_docker_compose_reads_the_file_as_it_is_meant() -> None:
    """Needs the compose plugin and no engine."""
    if subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode != 0:
        pytest.skip("the docker command here has no compose plugin")
    done = subprocess.run(
        ["docker", "compose", "--file", COMPOSE, "config", "--format", "json"],
        env=os.environ | SECRETS, capture_output=True, text=True, check=True,
    )  # fmt: skip
    read = json.loads(done.stdout)["services"]
    assert {name: read[name].get("command") for name in OWN} == {name: SERVICES[name]["command"] for name in OWN}
    for name in OWN:
        assert read[name]["environment"] == {key: str(value) for key, value in SERVICES[name]["environment"].items()}
