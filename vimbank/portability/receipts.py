"""Receipts of erasures: what went, when and at whose word, in digests that tell nothing of what was said.

A receipt is kept outside what was erased. ``salt`` is its own, so the same text has another digest in each receipt;
who has a receipt and a guess can still test the guess, which is what ``check`` does.
"""

import hashlib
import hmac
import json
import os
import secrets
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from vimbank.domain.models import Scope
from vimbank.domain.times import format_time
from vimbank.errors import InvalidInput

__all__ = ["FORMAT", "Receipt", "load_receipt", "new_salt", "receipt_from", "save_receipt", "seal"]

FORMAT: Final = 1
_LARGEST: Final = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """One erasure.

    ``user``, ``session``, ``agent``: salted digests of the scope, None where it was not narrowed. ``revision`` and
    ``last_number``: the store's when it was done; what came later is no trace. ``counts``: rows by kind. ``contents``,
    ``ids``: salted digests of texts and ids. ``remote``: each index outside the process, and that it holds none of it.
    ``digest``: SHA-256 of all other fields.
    """

    receipt: int
    id: str
    store: str
    by: str
    at: str
    tenant: str
    user: str
    session: str | None
    agent: str | None
    revision: int
    last_number: int
    counts: Mapping[str, int]
    remote: Mapping[str, str]
    salt: str
    contents: Sequence[str]
    ids: Sequence[str]
    digest: str = ""

    def of(self, value: str) -> str:
        """The salted digest of a text, id or name: 32 hexadecimal digits of HMAC-SHA-256."""
        return salted(self.salt, value)

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def new_salt() -> str:
    """32 random hexadecimal digits."""
    return secrets.token_hex(16)


def salted(salt: str, value: str) -> str:
    """See ``Receipt.of``."""
    return hmac.digest(bytes.fromhex(salt), value.encode(), "sha256").hex()[:32]


def seal(
    scope: Scope,
    *,
    salt: str,
    store: str,
    by: str,
    at: datetime,
    revision: int,
    last_number: int,
    counts: Mapping[str, int],
    remote: Mapping[str, str],
    contents: Sequence[str],
    ids: Sequence[str],
) -> Receipt:
    """The receipt of an erasure that is done; ``contents`` and ``ids`` are digests by this salt."""

    def of(value: str | None) -> str | None:
        return None if value is None else salted(salt, value)

    values: dict[str, Any] = {
        "receipt": FORMAT,
        "id": uuid.uuid4().hex,
        "store": store,
        "by": by,
        "at": format_time(at),
        "tenant": scope.tenant,
        "user": salted(salt, scope.user_id),
        "session": of(scope.session_id),
        "agent": of(scope.agent_id),
        "revision": revision,
        "last_number": last_number,
        "counts": dict(counts),
        "remote": dict(remote),
        "salt": salt,
        "contents": sorted(contents),
        "ids": sorted(ids),
    }
    return Receipt(**values, digest=_digest(values))


def receipt_from(value: object) -> Receipt:
    """The receipt of ``Receipt.record``. Raises InvalidInput (``receipt``): not one, or changed since."""
    names = {each.name for each in fields(Receipt)}
    if not isinstance(value, dict) or set(value) != names or value["receipt"] != FORMAT:
        raise InvalidInput.of("receipt", "is not the receipt of an erasure")
    if value["digest"] != _digest({name: item for name, item in value.items() if name != "digest"}):
        raise InvalidInput.of("receipt", "was changed: its digest does not fit")
    return Receipt(**value)


def load_receipt(path: Path) -> Receipt:
    """The receipt in a file. Raises InvalidInput (``receipt``)."""
    try:
        if path.stat().st_size > _LARGEST:
            raise InvalidInput.of("receipt", "is too large to be one")
        return receipt_from(json.loads(path.read_bytes()))
    except OSError as exc:
        raise InvalidInput.of("receipt", f"cannot be read: {exc.strerror}") from exc
    except ValueError as exc:
        if isinstance(exc, InvalidInput):
            raise
        raise InvalidInput.of("receipt", f"is not JSON: {exc}") from exc


def save_receipt(receipt: Receipt, folder: Path) -> Path:
    """Write the receipt, durably, under its time and id; where it lies."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{receipt.at[:19].replace(':', '')}-{receipt.id}.json"
    with path.open("x") as file:
        json.dump(receipt.record(), file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    return path


def _digest(values: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
