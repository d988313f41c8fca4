"""Prometheus metrics of the service. Labels have few values: never a kernel, a host, a user or a path."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

BUCKETS_S = (0.005, 0.02, 0.05, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 120.0)


class Metrics:
    """The metrics of one service in their own registry."""

    def __init__(self) -> None:
        """Create all metrics with the value 0."""
        self.registry = registry = CollectorRegistry()
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
        self.receiving = Gauge("profsvc_uploads_receiving", "Uploads being received", registry=registry)
        self.queue_depth = Gauge("profsvc_queue_depth", "Uploads being parsed or waiting", registry=registry)
        self.free_bytes = Gauge("profsvc_free_bytes", "Free bytes in the folder of uploads", registry=registry)
        self.spool_bytes = Gauge("profsvc_spool_bytes", "Bytes in the spool", registry=registry)
        self.db_up = Gauge("profsvc_db_up", "1 if the store is reachable", registry=registry)
        self.schema_behind = Gauge("profsvc_schema_behind", "1 if the store needs a migration", registry=registry)

    def text(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        return generate_latest(self.registry)
