"""The command line: commands over the library, one file per noun.

In: arguments. Out: results on stdout, remarks and errors on stderr, an exit code. `app.py` builds
the command tree, `output.py` prints, the other files hold the commands.
"""

from omnigraph.cli.app import main

__all__ = ["main"]
