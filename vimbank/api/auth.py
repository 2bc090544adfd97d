"""Who calls, and what they may: keys lead to a tenant and a role.

The tenant comes from the key alone; no field of a request can name another one. Requests without a valid key are
turned away before their body is read.
"""

import hashlib
import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Final, TypeAlias

from fastapi import Security
from fastapi.openapi.models import HTTPBearer as HTTPBearerModel
from fastapi.security.base import SecurityBase
from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from vimbank.api.errors import ForbiddenError, http_problem, problem_response
from vimbank.errors import ConfigError
from vimbank.settings import ApiSettings

__all__ = ["Admin", "Authentication", "Caller", "Keyring", "Operator", "Reader", "Role", "Writer", "is_loopback"]

OPEN_PATHS: Final = frozenset({"/", "/docs", "/openapi.json", "/health/live", "/health/ready"})
"""Answered without a key: they tell nothing of any memory."""

_CALLER_KEY: Final = "vimbank.caller"


class Role(IntEnum):
    """What a key may do; each role includes those below it.

    An administrator has one tenant; an operator looks after the server, whose jobs work on all tenants.
    """

    READ = 1
    WRITE = 2
    ADMIN = 3
    OPERATOR = 4


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose request it is, and what it may do."""

    tenant: str
    role: Role

    @property
    def actor(self) -> str:
        """How history names this caller."""
        return f"api:{self.role.name.lower()}"

    def require(self, role: Role) -> None:
        """Raises ForbiddenError where the caller's role is below ``role``."""
        if self.role < role:
            raise ForbiddenError(
                f"needs a key with the role {role.name.lower()}, this one has {self.role.name.lower()}"
            )


class Keyring:
    """The keys of a server, by their SHA-256: how long a lookup takes tells nothing of how much of a key was right."""

    def __init__(self, callers: Mapping[bytes, Caller], anonymous: Caller | None = None) -> None:
        self._callers = callers
        self._anonymous = anonymous

    @classmethod
    def of(cls, settings: ApiSettings) -> "Keyring":
        """The keyring that settings ask for.

        Raises:  ConfigError: no key, unless anonymous access is allowed and the server listens on loopback only
                 (case 67); a blank key; one key given twice.
        """
        if not settings.keys:
            _check_anonymous(settings)
            return cls({}, Caller("default", Role.OPERATOR))
        callers: dict[bytes, Caller] = {}
        for entry in settings.keys:
            secret = entry.key.get_secret_value()
            if not secret.strip() or secret != secret.strip():
                raise ConfigError("api.keys: a key must not be blank, nor begin or end with a blank")
            digest = _digest(secret.encode())
            if digest in callers:
                raise ConfigError(f"api.keys: two entries have the same key (tenant {entry.tenant!r})")
            callers[digest] = Caller(entry.tenant, Role[entry.role.upper()])
        return cls(callers)

    def identify(self, headers: Iterable[tuple[bytes, bytes]]) -> Caller | None:
        """The caller that ``Authorization: Bearer KEY`` or ``X-API-Key: KEY`` names; None: nobody known."""
        if self._anonymous is not None:
            return self._anonymous
        sent = _sent_key(headers)
        return None if sent is None else self._callers.get(_digest(sent))


class Authentication:
    """ASGI middleware: 401 without a valid key, before anything of the request is looked at."""

    def __init__(self, app: ASGIApp, keyring: Keyring) -> None:
        self._app = app
        self._keyring = keyring

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        caller = self._keyring.identify(scope["headers"])
        if caller is None:
            answer = http_problem(401, "send a key as «Authorization: Bearer KEY» or «X-API-Key: KEY»")
            refusal = problem_response(answer, {"WWW-Authenticate": 'Bearer realm="vimbank"'})
            await refusal(scope, receive, send)
            return
        scope[_CALLER_KEY] = caller
        await self._app(scope, receive, send)


class Needs(SecurityBase):
    """Dependency: the caller, if its role allows the route; 403 otherwise."""

    def __init__(self, role: Role) -> None:
        self.role = role
        self.model = HTTPBearerModel(description="An API key of the settings; `X-API-Key: KEY` works as well.")
        self.scheme_name = "key"

    async def __call__(self, request: Request) -> Caller:
        caller = _caller_of(request)
        caller.require(self.role)
        return caller


Reader: TypeAlias = Annotated[Caller, Security(Needs(Role.READ))]
Writer: TypeAlias = Annotated[Caller, Security(Needs(Role.WRITE))]
Admin: TypeAlias = Annotated[Caller, Security(Needs(Role.ADMIN))]
Operator: TypeAlias = Annotated[Caller, Security(Needs(Role.OPERATOR))]


def is_loopback(host: str) -> bool:
    """Whether a server that listens on ``host`` can be reached from its own machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _check_anonymous(settings: ApiSettings) -> None:
    if not settings.allow_anonymous:
        raise ConfigError(
            'no API key is set: set VIMBANK_API__KEYS=\'[{"key": "…"}]\', or, on loopback only, '
            "VIMBANK_API__ALLOW_ANONYMOUS=true"
        )
    if not is_loopback(settings.host):
        raise ConfigError(
            f"without API keys the server listens on loopback only, not on {settings.host}: "
            "set VIMBANK_API__KEYS or VIMBANK_API__HOST=127.0.0.1"
        )


def _caller_of(connection: HTTPConnection) -> Caller:
    caller = connection.scope[_CALLER_KEY]
    assert isinstance(caller, Caller)
    return caller


def _sent_key(headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    sent: bytes | None = None
    for name, value in headers:
        if name == b"authorization" and value[:7].lower() == b"bearer ":
            return value[7:].strip()
        if name == b"x-api-key":
            sent = value.strip()
    return sent


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()
