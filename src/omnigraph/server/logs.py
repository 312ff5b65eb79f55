"""Logs: one JSON object per line on stderr. No header, body, query text or token is ever logged."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Any

import orjson

LEVEL_VARIABLE = "OMNIGRAPH_LOG_LEVEL"
LOGGERS = ("omnigraph", "uvicorn")


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON; `facts` given with a record become members of it."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= getattr(record, "facts", {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()


def log_to_stderr(level: str) -> None:
    """Send our logs and uvicorn's to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(level.upper())
    # Requests are logged by observe.py.
    logging.getLogger("uvicorn.access").disabled = True
