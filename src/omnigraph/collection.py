"""Collection: the garbage collector stays out of the way while modules are loaded.

Loading makes hundreds of thousands of objects that stay. The collector looks at all of them again
and again and finds nothing: a tenth of what a short program takes.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pause_collection() -> Iterator[None]:
    """Collect nothing while the block runs, in any thread."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
