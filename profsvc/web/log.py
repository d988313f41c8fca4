"""Log lines as JSON, one a line: what a file or a client said cannot begin a line of its own."""

import json
import logging
import sys
from datetime import UTC, datetime

LOG = logging.getLogger("profsvc.web")


class Lines(logging.Formatter):
    """Turns a record into one line of JSON, in ASCII."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        said = {
            "time": datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            said["traceback"] = self.formatException(record.exc_info)
        return json.dumps(said, default=str)


def to_stderr(level: int = logging.INFO) -> None:
    """Write what the service and its server say to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines())
    for name in ("profsvc", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level if name == "profsvc" else logging.WARNING)
