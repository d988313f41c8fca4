"""Files that are read: the pages of their formats, and files of other kinds that only their own programs read."""
