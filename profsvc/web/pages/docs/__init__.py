"""The documentation in the browser, and the pages of the API."""
