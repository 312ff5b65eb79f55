"""Version numbers: of the package, and of the format a graph is stored in."""

__version__ = "0.1.0"

INTERNAL_SCHEMA_VERSION = 5
"""The newest manifest format that is read. A graph with a newer stamp is refused."""
