"""The service: the store over HTTP. `create_app` makes the application, `serve` runs it."""
