"""Lance errors: the only module that reads error texts of Lance and of the object store.

Lance raises OSError and ValueError with text; the types say almost nothing. Each text matched
here is produced by a real failure in a test, so that an upgrade that changes one is noticed.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.errors import (
    CommitConflict,
    OmnigraphError,
    RowLevelCasContention,
    StorageError,
    StorageFull,
    StoragePermissionDenied,
    TableExists,
    TableNotFound,
    TableVersionNotFound,
)
from omnigraph.nonblocking import may_block
from omnigraph.storage.location import version_file

CAS_CONTENTION = "Too many concurrent writers"
RETRYABLE_CONFLICT = "Retryable commit conflict"
COMMIT_CONFLICT_TYPE = "CommitConflictError"
ALREADY_EXISTS = "Dataset already exists"
NOT_FOUND = "was not found"
# Rust appends the number of the system's error to its text: ENOSPC, EDQUOT; EPERM, EACCES, EROFS.
DISK_FULL = ("(os error 28)", "(os error 122)")
PERMISSION = ("(os error 1)", "(os error 13)", "(os error 30)", "403 Forbidden")

_MISSING_VERSION = re.compile(r"_versions/d?(\d+)\.manifest was not found")
_DISK_FULL_CODES = (errno.ENOSPC, errno.EDQUOT)
_PERMISSION_CODES = (errno.EACCES, errno.EPERM, errno.EROFS)
_RAW = (OSError, ValueError, RuntimeError, NotImplementedError, KeyError, TypeError)


def translate(error: BaseException, *, action: str, location: str) -> OmnigraphError:
    """Return our error for a failure of the store. `action` says what was being done."""
    text = str(error)
    code = error.errno if isinstance(error, OSError) else None
    if code in _DISK_FULL_CODES or any(part in text for part in DISK_FULL):
        return StorageFull(
            f"no space left while {action} at '{location}' — nothing was published; "
            "free some space and run it again"
        )
    if code in _PERMISSION_CODES or any(part in text for part in PERMISSION):
        return StoragePermissionDenied(
            f"access denied while {action} at '{location}' — check the credentials or file modes"
        )
    if CAS_CONTENTION in text:
        return RowLevelCasContention(f"another writer changed the same rows at '{location}' first")
    if RETRYABLE_CONFLICT in text or type(error).__name__ == COMMIT_CONFLICT_TYPE:
        return CommitConflict(
            f"another writer changed the table at '{location}' while {action} — "
            "nothing was committed; refresh and retry"
        )
    if ALREADY_EXISTS in text:
        return TableExists(location)
    if text.startswith("Dataset at path") and NOT_FOUND in text:
        version = _MISSING_VERSION.search(text)
        if version is None:
            return TableNotFound(location)
        return TableVersionNotFound(location, int(version[1]))
    return StorageError(f"the store failed while {action} at '{location}' — see the cause below")


@contextmanager
def lance_errors(action: str, location: object, version: int | None = None) -> Iterator[None]:
    """Turn whatever Lance raises inside the block into ours; the cause stays attached.

    With the `version` that is read, a read that fails because a cleanup has removed it says so.
    """
    may_block()
    try:
        yield
    except OmnigraphError:
        raise
    except _RAW as error:
        raise _translate_read(error, action, location, version) from error
    except BaseException as error:
        # A panic inside Lance arrives as a BaseException of its own.
        if type(error).__name__ != "PanicException":
            raise
        raise _translate_read(error, action, location, version) from error


def _translate_read(
    error: BaseException, action: str, location: object, version: int | None
) -> OmnigraphError:
    place = str(location)
    found = translate(error, action=action, location=place)
    if not version or type(found) is not StorageError or "://" in place:
        return found
    is_there = os.path.exists(f"{place}/{version_file(version)}")
    return found if is_there else TableVersionNotFound(place, version)
