"""Base tables and views of what files contain: launches, events, metrics, sensors and source."""
