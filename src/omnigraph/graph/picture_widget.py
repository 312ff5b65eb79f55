"""Picture widget: a subgraph that can be dragged, zoomed and clicked, by the renderer of `ui/`.

`ui/build.py` builds the renderer into `picture_files/` beside this file. A notebook gets it as an
anywidget, where that package is installed; a page has it inside, with its data. In the page the
content security policy allows that one script and no request, and values are data, never markup.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.catalog.labels import choose_label
from omnigraph.html_text import escape_text

if TYPE_CHECKING:
    from omnigraph.graph.subgraph import Subgraph

DIRECTORY = Path(__file__).parent / "picture_files"


@cache
def read_renderer(directory: Path = DIRECTORY) -> tuple[str, str] | None:
    """The script and the style of the renderer; None in a checkout where it was not built."""
    script, style = directory / "widget.js", directory / "widget.css"
    if not script.is_file() or not style.is_file():
        return None
    return script.read_text(encoding="utf-8"), style.read_text(encoding="utf-8")


def make_widget(subgraph: Subgraph) -> Any:
    """The subgraph as an anywidget; None without that package or without the renderer."""
    renderer = read_renderer()
    if renderer is None:
        return None
    try:
        import anywidget
        import traitlets
    except ImportError:
        return None
    script, style = renderer
    made = type(
        "PictureWidget",
        (anywidget.AnyWidget,),
        {"_esm": script, "_css": style, "data": traitlets.Dict().tag(sync=True)},
    )
    return made(data=to_data(subgraph))


def make_live_page(title: str, subgraph: Subgraph) -> str | None:
    """One page with the renderer and the data inside; None where the renderer was not built."""
    renderer = read_renderer()
    if renderer is None:
        return None
    script, style = (f"\n{text.strip()}\n" for text in renderer)
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "worker-src blob:; base-uri 'none'; form-action 'none'"
    )
    # Inside a script element only `<` could end the text: JSON has another way to write it.
    data = json.dumps(to_data(subgraph), ensure_ascii=False).replace("<", "\\u003c")
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en" data-omnigraph-page><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{escape_text(policy)}">',
            '<meta name="referrer" content="no-referrer">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape_text(title)}</title><style>{style}</style></head><body>",
            '<div id="picture"></div>',
            f'<script type="application/json" id="data">{data}</script>',
            f'<script type="module">{script}</script>',
            "</body></html>\n",
        ]
    )


def to_data(subgraph: Subgraph) -> dict[str, Any]:
    """What the renderer draws; edges name their ends by their places in the list of nodes."""
    places = {key: place for place, key in enumerate(subgraph.nodes)}
    return {
        "nodes": [
            {"type": type_, "id": id_, "label": choose_label(card, id_), "properties": dict(card)}
            for (type_, id_), card in subgraph.nodes.items()
        ],
        "edges": [
            [each.type, each.id, places[each.source], places[each.target]]
            for each in subgraph.edges
        ],
        "note": "there are more in the graph" if subgraph.is_cut else "",
    }


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
