"""Bytes to batches of tidy tables; one file a format; nothing is computed here.

A reader is a module with

* ``NAME``: its name, as in ``--format NAME``;
* ``PAGE``: help shown by ``profsvc formats NAME``: which command makes such a file, what is taken from it, an example;
* ``sniff(head: bytes) -> bool``: does it know a file that begins with these (decompressed) bytes;
* ``read(stream: BinaryIO) -> Iterator[Batch]``: the whole file, streaming; memory does not grow with the file.

``READERS`` is the whole registry. To add a format, add its file, its name here, and a fixture with its truth.
"""
