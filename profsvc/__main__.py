"""``python -m profsvc``."""

from profsvc.cli import main

main()
