"""Readers of file formats: bytes to batches of tidy tables, without computing anything.

A reader is a module with

* ``NAME``: its name, as in ``--format NAME``;
* ``sniff(head: bytes) -> bool``: whether a file that begins with these decompressed bytes has this format;
* ``read(stream: BinaryIO) -> Iterator[Batch]``: reads a file in bounded memory;
* ``WHOLE_FILE = True``, optional: ``sniff`` needs the whole file, because a table of another format may follow.

``READERS`` in `profsvc.formats.reading` is the registry. To add a format, add its module, list it there,
write its page in ``data/files/formats.toml``, and add a fixture with its expected content.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
