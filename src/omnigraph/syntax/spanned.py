"""Spanned: what every tree node has in common, the span it was written at."""

from __future__ import annotations

from dataclasses import field

from omnigraph.dataclass import dataclass
from omnigraph.source_text import NO_SPAN, Span


@dataclass(frozen=True, slots=True)
class Spanned:
    """A tree node. Its span takes no part in equality: equal trees may be written differently."""

    span: Span = field(default=NO_SPAN, compare=False, repr=False, kw_only=True)
