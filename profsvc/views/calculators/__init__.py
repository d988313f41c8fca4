"""Models that answer from a few numbers, a table or a description: each module declares its `Calculator`.

From one declaration come a command, ``/v1/models/NAME``, the page ``/models/NAME`` and an entry of the documentation.
The folders are those of `profsvc.formulas`. The command line reads every declaration for its help: a module imports
formulas inside of ``answer`` only.
"""
