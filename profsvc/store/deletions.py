"""The base table of what was deleted; a part of `profsvc.store.schema`."""

from profsvc.store.parts import integer, key, table, text

# What an upload was, and its run, from its deletion until its kept bytes are removed for good.
deleted_uploads = table(
    "deleted_uploads",
    key("upload_id"),
    integer("run_id", nullable=False),
    text("project", nullable=False),
    text("run", nullable=False),
    text("run_facts", nullable=False),
    text("file_name", nullable=False),
    text("sha256", nullable=False),
    integer("size_bytes", nullable=False),
    text("format", nullable=False),
    integer("launches", nullable=False),
    integer("samples", nullable=False),
    text("facts", nullable=False),
    text("received_at", nullable=False),
    text("deleted_at", nullable=False),
)
