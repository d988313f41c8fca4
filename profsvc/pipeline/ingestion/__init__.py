"""A file on its way into the store: read, checked, stored, and read again."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
