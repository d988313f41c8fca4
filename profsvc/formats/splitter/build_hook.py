"""Makes the compiled splitter a part of wheels and of editable installations; without a compiler it is left out."""

import runpy
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class SplitterHook(BuildHookInterface[Any]):
    """Compile the module before the files of a wheel are gathered."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile it, and name the platform of the wheel."""
        if self.target_name != "wheel":
            return
        # The package cannot be imported here, since what it needs is not installed.
        build = runpy.run_path(str(Path(__file__).with_name("build.py")))
        target: Path = build["TARGET"]
        target.unlink(missing_ok=True)
        if reason := build["compile_module"]():
            self.app.display_warning(f"The compiled splitter is left out, so long exports are read slower: {reason}.")
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
        build_data["artifacts"].append(target.relative_to(self.root).as_posix())
