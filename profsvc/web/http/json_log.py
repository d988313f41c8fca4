"""Logging as JSON, one object per line, so that input cannot forge log lines."""

import json
import logging
import sys
from datetime import UTC, datetime

LOG = logging.getLogger("profsvc.web")


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of ASCII JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the JSON of a record."""
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def log_to_stderr(level: int = logging.INFO) -> None:
    """Log the service and its server to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    for name in ("profsvc", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level if name == "profsvc" else logging.WARNING)
