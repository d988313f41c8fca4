"""Archives: closed months as Parquet files, and back.

A month becomes one Parquet file per view, for people and DuckDB, and one per base table below ``store``, for
`profsvc.store.maintenance.archive.restoring`. The files are read back and compared with what was written before a row
leaves the store. Rows leave and return in groups of whole runs, each in one transaction, so an interruption loses
nothing and the next call goes on.
"""
