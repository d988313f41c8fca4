"""The launches of a run on its page: the table with filters, and the causes that cost most."""
