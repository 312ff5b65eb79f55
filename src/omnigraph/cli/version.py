"""`omnigraph version` and `--version`."""

from __future__ import annotations

from omnigraph.cli.call import Call
from omnigraph.cli.command import command
from omnigraph.cli.flags import Capability
from omnigraph.cli.output import print_result
from omnigraph.version import INTERNAL_SCHEMA_VERSION, __version__


def print_version(as_json: bool) -> None:
    value = {"version": __version__, "internal_schema_version": INTERNAL_SCHEMA_VERSION}
    lines = (f"omnigraph {__version__}", f"internal-schema {INTERNAL_SCHEMA_VERSION}")
    print_result(as_json, value, lines)


@command("version", Capability.LOCAL)
def version(call: Call) -> None:
    """Print the version of the package and of the storage format."""
    print_version(call.as_json)
