"""The words and numbers in rows of the views, and what each means."""
