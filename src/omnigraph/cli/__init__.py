"""The command line: commands over the library, one file per noun.

In: arguments. Out: results on stdout, remarks and errors on stderr, an exit code. `app.py` builds
the command tree of the modules that `commands.py` names, `output.py` prints, the other files hold
the commands.
"""

from omnigraph.collection import pause_collection

with pause_collection():
    from omnigraph.cli.app import main

__all__ = ["main"]
