"""The texts of memories that a report names by id, as a table quotes them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from vimbank.cli.render import first_line
from vimbank.service import MemoryService

__all__ = ["quotes"]

_SHOWN_CHARS: Final = 60


def quotes(service: MemoryService, named: Iterable[tuple[str, str]]) -> Mapping[tuple[str, str], str]:
    """First lines by (tenant, id), read once a tenant; "" of a memory that is gone.

    Args:    named: tenant and id, in any order, also more than once.
    """
    ids: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for tenant, name in named:
        ids[tenant][name] = None
    found = {
        (tenant, memory.id): first_line(memory.text, _SHOWN_CHARS)
        for tenant, names in ids.items()
        for memory in service.store.get(tenant, list(names))
    }
    return {(tenant, name): found.get((tenant, name), "") for tenant, names in ids.items() for name in names}
