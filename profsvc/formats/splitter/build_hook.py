"""Makes the compiled modules a part of wheels and of editable installations; without a compiler they are left out."""

import runpy
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompilingHook(BuildHookInterface[Any]):
    """Compile the modules before the files of a wheel are gathered."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile them, and name the platform of the wheel."""
        if self.target_name != "wheel":
            return
        # The package cannot be imported here, since what it needs is not installed.
        build = runpy.run_path(str(Path(__file__).with_name("build.py")))
        for source in build["SOURCES"]:
            target: Path = build["target_of"](source)
            target.unlink(missing_ok=True)
            if reason := build["compile_module"](source, target):
                self.app.display_warning(f"{target.name} is left out, so long exports take longer: {reason}.")
                continue
            build_data["pure_python"] = False
            build_data["tag"] = f"cp311-abi3-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
            build_data["artifacts"].append(target.relative_to(self.root).as_posix())
