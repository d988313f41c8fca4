"""Commands that bring data into the store: demo, upload, ingest, record, characterize."""
