"""``power`` and ``components``: power of runs, heat maps, and what each unit of a device consumes."""
