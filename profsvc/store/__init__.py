"""The store: the only place with SQL.

``open_store`` returns the engine that every function here takes. ``write_upload`` stores files and ``save_results``
stores results. Queries are the functions of `profsvc.store.queries` and, for SQL of users, ``query`` and ``export``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
