"""HTTP itself: requests, responses, authorization, limits, logs and metrics."""
