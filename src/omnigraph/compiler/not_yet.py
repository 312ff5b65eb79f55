"""What the grammar reads and no other part knows yet: refused by name, before any work."""

from __future__ import annotations

from omnigraph.errors import BadRequestError


def not_yet(construct: str) -> BadRequestError:
    """The error for a construct that is specified and not built."""
    return BadRequestError(f"not supported yet: {construct}")
