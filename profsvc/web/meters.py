"""What the service counts, for Prometheus. Labels are few and known: never a kernel, a host, a user or a path."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.005, 0.02, 0.05, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 120.0)


class Meters:
    """The meters of one service, in a registry of their own."""

    def __init__(self) -> None:
        """Make them all, at 0."""
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "profsvc_requests", "Requests answered", ["route", "method", "status"], registry=registry
        )
        self.request_seconds = Histogram(
            "profsvc_request_seconds", "Time to the end of an answer", ["route"], buckets=SECONDS, registry=registry
        )
        self.uploads = Counter(
            "profsvc_uploads", "Uploads: stored, known, checked, refused, failed", ["result"], registry=registry
        )
        self.upload_bytes = Counter("profsvc_upload_bytes", "Bytes of uploads received", registry=registry)
        self.parse_seconds = Histogram(
            "profsvc_parse_seconds", "Time to read, store and analyse a file", buckets=SECONDS, registry=registry
        )
        self.sql_seconds = Histogram("profsvc_sql_seconds", "Time of users' SQL", buckets=SECONDS, registry=registry)
        self.sql_refused = Counter("profsvc_sql_refused", "SQL that was refused, wrong or stopped", registry=registry)
        self.receiving = Gauge("profsvc_uploads_receiving", "Uploads whose bytes are coming in", registry=registry)
        self.queue_depth = Gauge("profsvc_queue_depth", "Uploads being read, or waiting for it", registry=registry)
        self.free_bytes = Gauge("profsvc_free_bytes", "Free bytes where uploads are kept", registry=registry)
        self.spool_bytes = Gauge("profsvc_spool_bytes", "Named bytes on their way in", registry=registry)
        self.db_up = Gauge("profsvc_db_up", "1 if the store answers", registry=registry)
        self.schema_behind = Gauge("profsvc_schema_behind", "1 if the store has another schema", registry=registry)

    def text(self) -> bytes:
        """Return them as Prometheus reads them."""
        return generate_latest(self.registry)
