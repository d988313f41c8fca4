"""The HTTP service: `app.create_app` makes the application, `server.serve` runs it."""
