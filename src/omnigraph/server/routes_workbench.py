"""Operations that serve the workbench: its page, and the files that the page consists of."""

from __future__ import annotations

from starlette.responses import Response

from omnigraph.errors import NotFoundError
from omnigraph.server.call import Call
from omnigraph.server.workbench import PAGE, SECURITY_HEADERS, Asset, read_assets
from omnigraph.version import __version__

_FOR_GOOD = "public, max-age=31536000, immutable"
_ASK_AGAIN = "no-cache"

_HOME = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Omnigraph</title></head>
<body><h1>Omnigraph {__version__}</h1>
<p>This is the HTTP API of a graph. It is described by <a href="openapi.json">openapi.json</a>;
<a href="healthz">healthz</a> says that it is up, <a href="metrics">metrics</a> what it does.</p>
<p>The workbench is not built here: in a checkout, <code>make ui</code> builds it, and the next
start of the server finds it. Installed packages contain it.</p>
<p>From a terminal: <code>omnigraph query --server ADDRESS …</code>. Agents connect to
<code>mcp</code>.</p></body></html>
"""


async def home(call: Call) -> Response:
    """The workbench, for a person who opens the address in a browser."""
    page = read_assets().get(PAGE)
    if page is None:
        return Response(_HOME, headers=SECURITY_HEADERS, media_type="text/html")
    return _send(call, page, _ASK_AGAIN)


async def get_asset(call: Call) -> Response:
    """A file of the workbench."""
    name = call.request.path_params["name"]
    asset = read_assets().get(name)
    if asset is None or name == PAGE:
        raise NotFoundError(f"the workbench has no file '{name[:80]}' — reload the page")
    return _send(call, asset, _FOR_GOOD)


def _send(call: Call, asset: Asset, caching: str) -> Response:
    headers = {
        **SECURITY_HEADERS,
        "Content-Security-Policy": asset.policy,
        "ETag": asset.etag,
        "Cache-Control": caching,
        "Vary": "Accept-Encoding",
    }
    if call.request.headers.get("if-none-match") == asset.etag:
        return Response(None, 304, headers)
    encoding, body = asset.choose(call.request.headers.get("accept-encoding", ""))
    if encoding != "identity":
        headers["Content-Encoding"] = encoding
    return Response(body, headers={**headers, "Content-Type": asset.media})
