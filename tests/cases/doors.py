"""The entry points behind one set of verbs, so that a case is written once and holds for Python, REST and CLI.

Every verb takes and gives plain JSON values in the names of the REST API; a refusal is ``Refused``, with what kind of
refusal it was and the fields it named.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from click.testing import CliRunner
from fastapi.testclient import TestClient

from vimbank import MemoryService
from vimbank.api.app import create_app
from vimbank.cli.main import cli
from vimbank.domain.filters import parse
from vimbank.domain.models import ListQuery, MemoryDraft, MemoryPatch, MemoryState, Query, Scope, Signal
from vimbank.domain.records import history_record, job_record, memory_record, page_record, plain, recall_record
from vimbank.domain.times import parse_time
from vimbank.errors import Conflict, InvalidInput, NotFound, VimbankError
from vimbank.portability.erase import erase
from vimbank.settings import Settings
from vimbank.wiring import open_service
from vimbank.wiring.jobs import open_jobs
from vimbank.wiring.portability import open_eraser

__all__ = ["DOORS", "Door", "Refused", "settings"]

TENANT = "default"
_TIMES = ("created_at", "event_at", "valid_from", "valid_to", "expires_at", "as_of")


class Refused(Exception):
    """The door said no: ``kind`` is ``invalid``, ``not_found`` or ``conflict``; ``fields`` are those it named."""

    def __init__(self, kind: str, fields: Sequence[str] = ()) -> None:
        self.kind = kind
        self.fields = tuple(fields)
        super().__init__(f"{kind} {', '.join(fields)}".strip())


class Door(Protocol):
    """One entry point, opened on a data folder.

    ``move``: ``archive``, ``restore``, ``suppress`` or ``unsuppress``; ``run``: start a job, have it run, its result.
    """

    def add(self, text: str, **fields: Any) -> dict[str, Any]: ...
    def get(self, id: str) -> dict[str, Any]: ...
    def listing(self, **params: Any) -> dict[str, Any]: ...
    def search(self, query: str, **fields: Any) -> list[dict[str, Any]]: ...
    def update(self, id: str, **fields: Any) -> dict[str, Any]: ...
    def delete(self, id: str) -> None: ...
    def delete_all(self, **scope: Any) -> int: ...
    def history(self, id: str) -> list[dict[str, Any]]: ...
    def feedback(self, id: str, signal: str) -> None: ...
    def move(self, id: str, verb: str) -> dict[str, Any]: ...
    def erase(self, user_id: str, **narrower: str) -> dict[str, Any]: ...
    def run(self, job: str, **params: Any) -> dict[str, Any]: ...
    def close(self) -> None: ...


def settings(folder: Path, **more: Any) -> Settings:
    """Settings of a test: the hashing encoder, in a folder of its own."""
    return Settings.model_validate(
        {"data_dir": folder, "encoder": {"kind": "hashing"}, "api": {"allow_anonymous": True}, **more}
    )


def _times(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: parse_time(value, name) if name in _TIMES else value for name, value in fields.items()}


def _filtered(fields: dict[str, Any]) -> dict[str, Any]:
    if fields.get("filter") is not None:
        fields = {**fields, "filter": parse(fields["filter"])}
    return fields


class PythonDoor:
    """``MemoryService`` in process."""

    def __init__(self, folder: Path, encoder: str = "hashing") -> None:
        configured = settings(folder, encoder={"kind": encoder})
        self._service: MemoryService = open_service(configured)
        self._jobs = open_jobs(configured, self._service)

    def add(self, text: str, **fields: Any) -> dict[str, Any]:
        fields = {"user_id": "alice", "bank": "knowledge", **fields}
        result = self._do(lambda: self._service.add(MemoryDraft(tenant=TENANT, text=text, **_times(fields))))
        return {"id": result.id, "revision": result.revision, "duplicate": result.duplicate}

    def get(self, id: str) -> dict[str, Any]:
        return plain(memory_record(self._do(lambda: self._service.get(TENANT, id))))  # type: ignore[no-any-return]

    def listing(self, **params: Any) -> dict[str, Any]:
        if "state" in params:
            params["state"] = None if params["state"] == "any" else MemoryState(params["state"])
        return plain(page_record(self._do(lambda: self._service.list(ListQuery(tenant=TENANT, **_filtered(params))))))  # type: ignore[no-any-return]

    def search(self, query: str, **fields: Any) -> list[dict[str, Any]]:
        fields = {"user_id": "alice", **fields}
        request = self._do(lambda: Query(tenant=TENANT, text=query, **_times(_filtered(fields))))
        return plain(recall_record(self._do(lambda: self._service.search(request)))["results"])  # type: ignore[no-any-return]

    def update(self, id: str, **fields: Any) -> dict[str, Any]:
        return plain(memory_record(self._do(lambda: self._service.update(TENANT, id, MemoryPatch(**_times(fields))))))  # type: ignore[no-any-return]

    def delete(self, id: str) -> None:
        self._do(lambda: self._service.delete(TENANT, id))

    def delete_all(self, **scope: Any) -> int:
        return self._do(lambda: self._service.delete_all(Scope(TENANT, **{"user_id": "", **scope})))  # type: ignore[no-any-return]

    def history(self, id: str) -> list[dict[str, Any]]:
        return plain(history_record(id, self._do(lambda: self._service.history(TENANT, id)))["items"])  # type: ignore[no-any-return]

    def feedback(self, id: str, signal: str) -> None:
        self._do(lambda: self._service.feedback(TENANT, id, Signal(signal)))

    def move(self, id: str, verb: str) -> dict[str, Any]:
        return plain(memory_record(self._do(lambda: getattr(self._service, verb)(TENANT, id))))  # type: ignore[no-any-return]

    def erase(self, user_id: str, **narrower: str) -> dict[str, Any]:
        scope = Scope(TENANT, user_id, None, narrower.get("agent_id"), narrower.get("session_id"))
        return self._do(lambda: erase(self._service, open_eraser(self._service), scope, actor="test")).record()  # type: ignore[no-any-return]

    def run(self, job: str, **params: Any) -> dict[str, Any]:
        started = self._do(lambda: self._jobs.start(job, params))
        self._do(lambda: self._jobs.run(started.id))
        return _result(plain(job_record(self._jobs.get(started.id))))

    def close(self) -> None:
        self._jobs.close()
        self._service.close()

    @staticmethod
    def _do(call: Callable[[], Any]) -> Any:
        try:
            return call()
        except VimbankError as error:
            raise _refusal(error) from error


class RestDoor:
    """The REST API, through the ASGI application."""

    def __init__(self, folder: Path, encoder: str = "hashing") -> None:
        configured = settings(folder, encoder={"kind": encoder})
        self._service = open_service(configured)
        self._jobs = open_jobs(configured, self._service)
        self._client = TestClient(create_app(self._service, configured, self._jobs), raise_server_exceptions=False)

    def add(self, text: str, **fields: Any) -> dict[str, Any]:
        body = {"user_id": "alice", "bank": "knowledge", "text": text, **fields}
        return self._call("POST", "/v1/memories", body)  # type: ignore[no-any-return]

    def get(self, id: str) -> dict[str, Any]:
        return self._call("GET", self._path(id))  # type: ignore[no-any-return]

    def listing(self, **params: Any) -> dict[str, Any]:
        if "filter" in params:
            params["filter"] = json.dumps(params["filter"])
        return self._call("GET", "/v1/memories", params=params)  # type: ignore[no-any-return]

    def search(self, query: str, **fields: Any) -> list[dict[str, Any]]:
        return self._call("POST", "/v1/search", {"user_id": "alice", "query": query, **fields})["results"]  # type: ignore[no-any-return]

    def update(self, id: str, **fields: Any) -> dict[str, Any]:
        return self._call("PATCH", self._path(id), fields)  # type: ignore[no-any-return]

    def delete(self, id: str) -> None:
        self._call("DELETE", self._path(id))

    def delete_all(self, **scope: Any) -> int:
        return self._call("DELETE", "/v1/memories", params=scope)["deleted"]  # type: ignore[no-any-return]

    def history(self, id: str) -> list[dict[str, Any]]:
        return self._call("GET", f"{self._path(id)}/history")["items"]  # type: ignore[no-any-return]

    def feedback(self, id: str, signal: str) -> None:
        self._call("POST", "/v1/feedback", {"id": id, "signal": signal})

    def move(self, id: str, verb: str) -> dict[str, Any]:
        return self._call("POST", f"{self._path(id)}/{verb}")  # type: ignore[no-any-return]

    def erase(self, user_id: str, **narrower: str) -> dict[str, Any]:
        return self._call("DELETE", f"/v1/users/{quote(user_id, safe='')}", params=narrower)  # type: ignore[no-any-return]

    def run(self, job: str, **params: Any) -> dict[str, Any]:
        started = self._call("POST", "/v1/jobs", {"name": job, "params": params})
        self._jobs.run(started["id"])  # nothing else here takes it up
        return _result(self._call("GET", f"/v1/jobs/{started['id']}"))

    def close(self) -> None:
        self._client.close()
        self._jobs.close()
        self._service.close()

    @staticmethod
    def _path(id: str) -> str:
        return f"/v1/memories/{quote(id, safe='', errors='surrogatepass')}"

    def _call(self, method: str, path: str, body: Any = None, params: Any = None) -> Any:
        # ASCII JSON: a lone surrogate travels as its escape, as a client in another language would send it.
        content = None if body is None else json.dumps(body).encode()
        answer = self._client.request(
            method, path, content=content, params=params, headers={"Content-Type": "application/json"}
        )
        if answer.status_code >= 500:
            raise AssertionError(f"{method} {path} answered {answer.status_code}: {answer.text[:300]}")
        if answer.status_code >= 400:
            kind = {404: "not_found", 405: "not_found", 409: "conflict"}.get(answer.status_code, "invalid")
            raise Refused(kind, [error["field"] for error in answer.json().get("errors", ())])
        return answer.json() if answer.content else None


class CliDoor:
    """The ``vimbank`` command with ``--json``, each call opening the data folder anew."""

    def __init__(self, folder: Path, encoder: str = "hashing") -> None:
        self._folder = folder
        self._encoder = encoder

    def add(self, text: str, **fields: Any) -> dict[str, Any]:
        fields = {"user_id": "alice", "bank": "knowledge", **fields}
        pinned = ["--pinned"] if fields.pop("pinned", False) else []
        return self._run("add", *self._options(fields), *pinned, "--", text)  # type: ignore[no-any-return]

    def get(self, id: str) -> dict[str, Any]:
        return self._run("get", "--", id)  # type: ignore[no-any-return]

    def listing(self, **params: Any) -> dict[str, Any]:
        return self._run("list", *self._options(params))  # type: ignore[no-any-return]

    def search(self, query: str, **fields: Any) -> list[dict[str, Any]]:
        fields = {"user_id": "alice", **fields}
        flags = [f"--bank={bank}" for bank in fields.pop("banks", ())]
        if fields.pop("explain", False):
            flags.append("--explain")
        if not fields.pop("reinforce", True):
            flags.append("--no-reinforce")
        return self._run("search", *self._options(fields), *flags, "--", query)["results"]  # type: ignore[no-any-return]

    def update(self, id: str, **fields: Any) -> dict[str, Any]:
        return self._run("update", *self._options(fields), "--", id)  # type: ignore[no-any-return]

    def delete(self, id: str) -> None:
        self._run("delete", "--", id)

    def delete_all(self, **scope: Any) -> int:
        return self._run("delete", *self._options(scope))["deleted"]  # type: ignore[no-any-return]

    def history(self, id: str) -> list[dict[str, Any]]:
        return self._run("history", "--", id)["items"]  # type: ignore[no-any-return]

    def feedback(self, id: str, signal: str) -> None:
        self._run("feedback", id, signal)

    def move(self, id: str, verb: str) -> dict[str, Any]:
        return self._run(verb, "--", id)  # type: ignore[no-any-return]

    def erase(self, user_id: str, **narrower: str) -> dict[str, Any]:
        return self._run("erase", *self._options({"user_id": user_id, **narrower}), "--yes")  # type: ignore[no-any-return]

    def run(self, job: str, **params: Any) -> dict[str, Any]:
        words = [f"--param={name}={json.dumps(value)}" for name, value in params.items()]
        return _result(self._run("jobs", "start", job, *words))

    def close(self) -> None:
        pass

    @staticmethod
    def _options(fields: dict[str, Any]) -> list[str]:
        short = {"user_id": "user", "session_id": "session", "agent_id": "agent"}
        return [
            f"--{short.get(name, name.replace('_', '-'))}={json.dumps(value) if isinstance(value, dict) else value}"
            for name, value in fields.items()
        ]

    def _run(self, *words: str) -> Any:
        environment = {"VIMBANK_DATA_DIR": str(self._folder), "VIMBANK_ENCODER__KIND": self._encoder}
        result = CliRunner().invoke(cli, _asking_for_json(words), env=environment)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        if result.exit_code == 0:
            return json.loads(result.stdout)
        try:
            answer = json.loads(result.stdout)
        except json.JSONDecodeError:
            answer = {}  # a usage error: the command line itself was wrong
        kind = answer.get("error", {}).get("type", "InvalidInput" if result.exit_code == 2 else "NotFound")
        names = [error["field"] for error in answer.get("error", {}).get("errors", ())]
        raise Refused({"NotFound": "not_found", "Conflict": "conflict"}.get(kind, "invalid"), names)


def _asking_for_json(words: Sequence[str]) -> list[str]:
    """The words of a command, or of one of a group, with ``--json`` behind its name."""
    length = 2 if words[0] in ("jobs", "store", "es") else 1
    return [*words[:length], "--json", *words[length:]]


def _result(job: dict[str, Any]) -> dict[str, Any]:
    assert job["state"] == "succeeded", job
    return job["result"]  # type: ignore[no-any-return]


def _refusal(error: VimbankError) -> Refused:
    if isinstance(error, InvalidInput):
        return Refused("invalid", [each.field for each in error.errors])
    if isinstance(error, NotFound):
        return Refused("not_found")
    if isinstance(error, Conflict):
        return Refused("conflict")
    raise error


DOORS: dict[str, Callable[..., Door]] = {"python": PythonDoor, "rest": RestDoor, "cli": CliDoor}
