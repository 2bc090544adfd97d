"""``celery -A workers.app worker``, ``beat`` and ``flower``: the application, from the environment.

The settings are VIMBank's own (``VIMBANK_REDIS__URL``, ``VIMBANK_STORE__URL`` ...), and so is the level of the logs
(``VIMBANK_LOG__LEVEL``; the command's ``--loglevel`` has no effect).
"""

import sys
from typing import Final

from vimbank.errors import ConfigError
from vimbank.settings import load_settings
from workers.application import create_app

__all__ = ["app"]

try:
    app: Final = create_app(load_settings())
except ConfigError as error:
    print(f"vimbank: {error}", file=sys.stderr)  # noqa: T201 - there is no log before the settings
    raise SystemExit(2) from error
