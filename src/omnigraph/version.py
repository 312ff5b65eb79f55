"""Version numbers: of the package, and of the format a graph is stored in."""

__version__ = "0.1.0"

INTERNAL_SCHEMA_VERSION = 4
"""The stamp of the manifest format. A graph with a newer one is refused, an older one migrated."""
