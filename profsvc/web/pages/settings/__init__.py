"""The settings of the service in the browser: tokens, schedules, channels and storage."""
