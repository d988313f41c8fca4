"""Base tables and views of what analyses compute, and of reports and findings."""
