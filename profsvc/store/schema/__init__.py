"""The base tables and ``v1_`` views of each subject; `catalog` builds the SQL of the views."""
