"""Workbench: the page that a browser gets and its files, as they were built into the package.

`ui/` has the sources and `ui/build.py` builds them into the directory `workbench/` beside this
file. Each file is there three times: plain, and compressed with gzip and with Brotli. Names of
files carry a hash of their content, so a browser may keep them for good; only the page itself is
asked for again. It contains its style, so that the first paint waits for one answer: the policy
names the hash of that style. Nothing here depends on a graph, so none of it needs a permission.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from omnigraph.dataclass import dataclass

DIRECTORY: Final = Path(__file__).parent / "workbench"
PAGE: Final = "index.html"
FILES: Final = "workbench"
"""Where the page looks for its files: a path beside it, and the directory they are built into."""
MEDIA: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
ENCODINGS: Final = {"br": ".br", "gzip": ".gz"}
"""The encodings that a browser may ask for, the smallest first, and how their files end."""

SECURITY_HEADERS: Final = {
    # Nothing inline but the style of the page, nothing from another host, no page of another host
    # around it. Trusted types make the browser itself refuse to turn a text into markup or code.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; worker-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types workbench",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_STYLE: Final = re.compile(rb"<style>(.*?)</style>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Asset:
    """One file, in every encoding that it was built in; `identity` is the plain one."""

    media: str
    etag: str
    bodies: Mapping[str, bytes]
    policy: str = SECURITY_HEADERS["Content-Security-Policy"]

    def choose(self, accepted: str) -> tuple[str, bytes]:
        """The smallest encoding that an `Accept-Encoding` header allows, and its bytes."""
        wanted = {
            part.partition(";")[0].strip().lower()
            for part in accepted.split(",")
            if part.replace(" ", "").partition(";q=")[2] not in ("0", "0.0", "0.00", "0.000")
        }
        found = next((each for each in ENCODINGS if each in wanted and each in self.bodies), None)
        encoding = found or "identity"
        return encoding, self.bodies[encoding]


@cache
def read_assets(directory: Path = DIRECTORY) -> Mapping[str, Asset]:
    """Every file of the workbench by name; none where it was not built."""
    if not (directory / PAGE).is_file():
        return {}
    files = [path for path in (directory / FILES).iterdir() if path.suffix in MEDIA]
    return {path.name: _read_asset(path) for path in (directory / PAGE, *files)}


def _read_asset(path: Path) -> Asset:
    plain = path.read_bytes()
    bodies = {"identity": plain}
    for encoding, ending in ENCODINGS.items():
        packed = path.with_name(path.name + ending)
        if packed.is_file():
            bodies[encoding] = packed.read_bytes()
    etag = f'"{sha256(plain).hexdigest()[:32]}"'
    return Asset(MEDIA[path.suffix], etag, bodies, _allow_styles(plain))


def _allow_styles(page: bytes) -> str:
    """The policy, with the style that a page contains and no other."""
    digests = [b64encode(sha256(each).digest()).decode() for each in _STYLE.findall(page)]
    allowed = " ".join(["style-src 'self'", *(f"'sha256-{each}'" for each in digests)])
    return SECURITY_HEADERS["Content-Security-Policy"].replace("style-src 'self'", allowed)
