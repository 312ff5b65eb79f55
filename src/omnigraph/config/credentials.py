"""Credentials: the tokens of servers, in a file that only its owner can read.

    [prod]
    token = ...

One section per server. The file is made with mode 0600 and rewritten as a whole, by a rename; every
other line of it stays as it was. A file that others can read is refused, not used.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from pathlib import Path

from omnigraph.errors import BadRequestError, ConfigError

_SECTION = re.compile(r"\s*\[(?P<name>[^\]]*)\]\s*")
_TOKEN = re.compile(r"\s*token\s*=\s*(?P<token>.*?)\s*")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def read_token(path: Path, server: str) -> str | None:
    """The token of a server, None when the file has none.

    Raises:
        ConfigError: The file can be read by others, or cannot be read at all.
    """
    section = None
    for number, line in enumerate(_lines(path), start=1):
        header = _SECTION.fullmatch(line)
        if header is not None:
            section = header["name"].strip()
        elif section == server and (found := _TOKEN.fullmatch(line)) is not None:
            return found["token"] or None
        elif section is None and line.strip() and not line.lstrip().startswith(("#", ";")):
            raise ConfigError(f"{path}:{number}: expected a [server] section first")
    return None


def write_token(path: Path, server: str, token: str) -> None:
    """Keep a server's token, in place of the one before.

    Raises:
        BadRequestError: The name or the token cannot be in such a file.
    """
    if not _NAME.fullmatch(server):
        raise BadRequestError(f"'{server}' is not a server name — use letters, digits, . _ and -")
    if not token or not token.isprintable() or any(each.isspace() for each in token):
        raise BadRequestError("a token is one word without spaces or control characters")
    kept = _without(_lines(path), server)
    if kept and kept[-1].strip():
        kept.append("")
    _replace(path, [*kept, f"[{server}]", f"token = {token}"])


def remove_token(path: Path, server: str) -> bool:
    """Forget a server's token; False when there was none."""
    lines = _lines(path)
    kept = _without(lines, server)
    if kept == lines:
        return False
    _replace(path, kept)
    return True


def _lines(path: Path) -> list[str]:
    try:
        with path.open(encoding="utf-8") as file:
            mode = os.fstat(file.fileno()).st_mode
            if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
                raise ConfigError(
                    f"'{path}' can be read by others (mode {stat.S_IMODE(mode):o}) — "
                    f"run `chmod 600 {path}`, and think of its tokens as known"
                )
            return file.read().splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ConfigError(f"cannot read '{path}': {reason}") from None


def _without(lines: list[str], server: str) -> list[str]:
    """The lines without a server's section; comments above the next section stay with it."""
    kept: list[str] = []
    is_inside = False
    for line in lines:
        header = _SECTION.fullmatch(line)
        if header is not None:
            is_inside = header["name"].strip() == server
        if not is_inside or line.lstrip().startswith(("#", ";")):
            kept.append(line)
    return kept


def _replace(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # mkstemp makes a file of mode 0600 before anything is in it.
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".credentials-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in lines))
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
