"""Commands of the service and its clients: ``serve``, ``token``, ``schedule``, ``watch`` and ``sync``."""
