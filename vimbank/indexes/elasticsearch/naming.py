"""How partitions and banks are called in Elasticsearch. Every name can be read back, none can be taken for another."""

import re
from functools import lru_cache
from hashlib import sha256
from typing import Final
from urllib.parse import quote

from vimbank.domain.models import Partition
from vimbank.errors import ConfigError

__all__ = ["bank_alias", "encoded_bank", "partition_key"]

_PLAIN: Final = re.compile(rb"[a-z0-9_]")
_MOST_KEY_CHARS: Final = 200
_KEPT_KEY_CHARS: Final = 100
_MOST_BYTES: Final = 200  # of an index name's 255; the rest is for versions


@lru_cache(maxsize=4_096)  # asked for twice a document
def partition_key(partition: Partition) -> str:
    """``tenant/user/bank``, each percent-encoded: the keyword that every search filters by, and the routing.

    A comma, which would part one routing from the next, is encoded, as is a slash inside a name (case 45). A key that
    would be too long for the first line of a request is cut, and told apart by its hash behind a ``!``, which no other
    key contains.
    """
    key = "/".join(quote(part, safe="") for part in (partition.tenant, partition.user_id, partition.bank))
    if len(key) <= _MOST_KEY_CHARS:
        return key
    return f"{key[:_KEPT_KEY_CHARS]}!{sha256(key.encode()).hexdigest()}"


def encoded_bank(bank: str) -> str:
    """The bank's name in the letters of an index name: every other byte as ``.`` and two hexadecimal digits."""
    raw = bank.encode()
    return "".join(chr(byte) if _PLAIN.match(raw[at : at + 1]) else f".{byte:02x}" for at, byte in enumerate(raw))


def bank_alias(prefix: str, bank: str) -> str:
    """``{prefix}-{bank}``, under which a bank's index is searched and written.

    Raises:  ConfigError: longer than the name of an index may be.
    """
    alias = f"{prefix}-{encoded_bank(bank)}"
    if len(alias) > _MOST_BYTES:
        raise ConfigError(f"the name of the bank {bank[:40]!r} is too long for Elasticsearch")
    return alias
