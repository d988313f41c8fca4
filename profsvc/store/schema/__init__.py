"""The base tables and ``v1_`` views of each subject, side by side.

``contents`` has those of what files contain, and ``results`` those of what is computed from them. `catalog` builds the
SQL of the views, `tables` the base tables.
"""

from profsvc.store.schema import sources as sources  # before every module that makes views
