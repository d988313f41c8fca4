"""Prometheus metrics of the service. Labels have few values: never a kernel, a host, a user or a path."""

from pathlib import Path
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

BUCKETS_S = (0.005, 0.02, 0.05, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 120.0)


class Metrics:
    """The metrics of one service in their own registry.

    With a ``folder`` they are those of one of several processes, each of which keeps its values in files there.
    """

    def __init__(self, folder: Path | None = None) -> None:
        """Create all metrics with the value 0."""
        self.registry = registry = CollectorRegistry()
        self._folder = folder
        self.requests = Counter(
            "profsvc_requests", "Requests answered", ["route", "method", "status"], registry=registry
        )
        self.request_seconds = Histogram(
            "profsvc_request_seconds",
            "Time to the end of the response",
            ["route"],
            buckets=BUCKETS_S,
            registry=registry,
        )
        self.uploads = Counter(
            "profsvc_uploads", "Uploads: stored, known, checked, refused, failed", ["result"], registry=registry
        )
        self.upload_bytes = Counter("profsvc_upload_bytes", "Bytes of uploads received", registry=registry)
        self.parse_seconds = Histogram(
            "profsvc_parse_seconds", "Time to read, store and analyse a file", buckets=BUCKETS_S, registry=registry
        )
        self.sql_seconds = Histogram("profsvc_sql_seconds", "Time of users' SQL", buckets=BUCKETS_S, registry=registry)
        self.sql_refused = Counter("profsvc_sql_refused", "SQL that was rejected, wrong or stopped", registry=registry)

        def gauge(name: str, says: str, mode: Literal["livesum", "mostrecent"] = "mostrecent") -> Gauge:
            return Gauge(name, says, registry=registry, multiprocess_mode=mode)

        self.receiving = gauge("profsvc_uploads_receiving", "Uploads being received", "livesum")
        self.queue_depth = gauge("profsvc_queue_depth", "Uploads being parsed or waiting", "livesum")
        self.free_bytes = gauge("profsvc_free_bytes", "Free bytes in the folder of uploads")
        self.spool_bytes = gauge("profsvc_spool_bytes", "Bytes in the spool")
        self.db_up = gauge("profsvc_db_up", "1 if the store is reachable")
        self.replica_used = gauge("profsvc_replica_used", "1 if the replica answers what only reads")
        self.schema_behind = gauge("profsvc_schema_behind", "1 if the store needs a migration")

    def text(self) -> bytes:
        """Return all metrics in the Prometheus text format, those of all processes together."""
        registry = self.registry
        if self._folder is not None:
            registry = CollectorRegistry()
            MultiProcessCollector(registry, str(self._folder))  # type: ignore[no-untyped-call]
        return generate_latest(registry)
