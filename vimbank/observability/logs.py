"""Set-up of the logs: one line an event, on standard error, as text or JSON, with the request's id.

Standard output belongs to results (case 129). Lines name ids, sizes and times, never the text of a memory or query.
"""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final, Literal

from vimbank.observability.context import REQUEST_ID

__all__ = ["FIELDS_KEY", "LogFormat", "set_up_logging"]

LogFormat = Literal["text", "json"]

FIELDS_KEY: Final = "fields"
"""``logger.info(message, extra={FIELDS_KEY: {...}})`` adds fields to a JSON line."""


def set_up_logging(level: str = "INFO", format: LogFormat = "text") -> None:
    """Send every log of the process to standard error; calling it again replaces what it set up before.

    Args:    level: least severe level shown: DEBUG, INFO, WARNING or ERROR; of libraries WARNING at least.
             format: text or json.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.set_name("vimbank")
    handler.setFormatter(_JsonFormatter() if format == "json" else _TextFormatter())
    root = logging.getLogger()
    for old in [old for old in root.handlers if old.get_name() == "vimbank"]:
        root.removeHandler(old)
    root.addHandler(handler)
    # Of libraries only what matters: their notes on themselves would be the first lines of every short command.
    root.setLevel(level if level == "ERROR" else "WARNING")
    logging.getLogger("vimbank").setLevel(level)


class _TextFormatter(logging.Formatter):
    """``2026-01-31T09:30:00.123Z INFO vimbank.api.access [request id] message``"""

    def format(self, record: logging.LogRecord) -> str:
        request_id = REQUEST_ID.get()
        mark = f" [{request_id}]" if request_id else ""
        # A line break inside a message could pose as another event.
        message = record.getMessage().replace("\r", "\\r").replace("\n", "\\n")
        line = f"{_time(record)} {record.levelname} {record.name}{mark} {message}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class _JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, request_id, message, fields, exception."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if request_id := REQUEST_ID.get():
            line["request_id"] = request_id
        line.update(getattr(record, FIELDS_KEY, {}))
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
