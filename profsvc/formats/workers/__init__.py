"""Jobs that read untrusted files in a worker process (`profsvc.workers`)."""
