"""Results to text, HTML and files; no queries, no sums."""
