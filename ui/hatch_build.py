"""The hook that builds the workbench into a wheel. An editable install leaves that to `make ui`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SKIP = "OMNIGRAPH_SKIP_WORKBENCH"
"""Set it to make a wheel without the workbench, where no packages of npm can be had."""


class WorkbenchHook(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or os.environ.get(SKIP):
            return
        sys.path.insert(0, str(Path(self.root) / "ui"))
        from build import build  # type: ignore[import-not-found]

        build()
