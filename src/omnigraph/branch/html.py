"""HTML: a diff as one page that works offline, asks for nothing, and runs nothing.

It is written while the changes are read: what is counted comes last in the document, and is shown
first. Every value is escaped, and a content security policy forbids scripts, requests and styles
other than the page's own, so a value that tried would still do nothing.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

from omnigraph.branch.changes import ChangeOp, ChangeSet, EntityChange
from omnigraph.branch.picture import SYMBOLS, draw
from omnigraph.branch.surroundings import Subgraph
from omnigraph.catalog.step_text import describe_step
from omnigraph.html_text import escape_text

CHANGES_MAX = 2_000
_VALUE_CHARACTERS = 400

_STYLE = """
:root { color-scheme: light dark; --ground: #fff; --text: #1f2328; --quiet: #59636e;
  --rule: #d1d9e0; --insert: #1a7f37; --update: #9a6700; --delete: #cf222e; --context: #818b98; }
@media (prefers-color-scheme: dark) { :root { --ground: #0d1117; --text: #f0f6fc;
  --quiet: #9198a1; --rule: #3d444d; --insert: #3fb950; --update: #d29922; --delete: #f85149;
  --context: #656c76; } }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem;
  padding: 0 1rem; background: var(--ground); color: var(--text); }
body { display: flex; flex-direction: column; align-items: stretch; }
h1 { order: -2; } .counts { order: -1; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.quiet { color: var(--quiet); } .insert { --tone: var(--insert); }
.update { --tone: var(--update); } .delete { --tone: var(--delete); }
.context { --tone: var(--context); }
table { border-collapse: collapse; width: 100%; table-layout: fixed; }
th, td { border-bottom: 1px solid var(--rule); padding: .25rem .5rem; text-align: left;
  vertical-align: top; overflow-wrap: anywhere; white-space: pre-wrap; }
th { font-weight: 600; } td.count { color: var(--tone); font-variant-numeric: tabular-nums; }
.before { color: var(--delete); } .after { color: var(--insert); }
details { border: 1px solid var(--rule); border-left: 4px solid var(--tone); border-radius: 6px;
  margin: .4rem 0; padding: .3rem .7rem; } summary { cursor: pointer; overflow-wrap: anywhere; }
summary b { color: var(--tone); font-family: ui-monospace, monospace; }
svg { width: 100%; height: auto; border: 1px solid var(--rule); border-radius: 6px; }
svg circle { fill: var(--ground); stroke: var(--tone); stroke-width: 2.5; }
svg .line { stroke: var(--tone); stroke-width: 1.6; fill: none; }
svg .context .line { stroke-dasharray: 4 3; } svg marker path { fill: var(--quiet); }
svg text { fill: var(--text); font-size: 12px; text-anchor: middle; paint-order: stroke;
  stroke: var(--ground); stroke-width: 3px; }
svg .small { fill: var(--quiet); font-size: 10px; }
svg .symbol { fill: var(--tone); font-size: 14px; font-weight: 700; }
svg .delete text { fill: var(--tone); }
"""


def stream_diff_page(changes: ChangeSet, *, title: str, subgraph: Subgraph) -> Iterator[str]:
    """The page, part by part. `subgraph` is what to draw; see `find_changed_subgraph`."""
    parts = (_schema(changes), _picture(subgraph), _details(changes), _counts(changes, subgraph))
    return stream_page(title, chain.from_iterable(parts))


def stream_page(title: str, body: Iterable[str]) -> Iterator[str]:
    """A page of these parts, which are escaped already."""
    style = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'"
    yield "<!doctype html>\n"
    yield '<html lang="en"><head><meta charset="utf-8">\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{escape_text(policy)}">\n'
    yield '<meta name="referrer" content="no-referrer">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield f"<title>{escape_text(title)}</title><style>{_STYLE}</style></head><body>\n"
    yield f"<h1>{escape_text(title)}</h1>\n"
    for part in body:
        yield f"{part}\n"
    yield "</body></html>\n"


def _counts(changes: ChangeSet, subgraph: Subgraph) -> Iterator[str]:
    """How much differs, and how much of it the page does not show."""
    stats = changes.stats
    where = f" on branch {_value(changes.branch)}" if changes.branch is not None else ""
    yield (
        f'<div class="counts"><p class="quiet">From version {changes.from_version} to '
        f"{changes.to_version}{where}: {stats.total} "
        f"{'change' if stats.total == 1 else 'changes'}.</p>"
    )
    if stats.total:
        yield "<table><tr><th>Type</th><th>+ added</th><th>~ changed</th><th>− removed</th></tr>"
        for each in sorted(changes.table_changes, key=lambda each: each.entity.table_key):
            cells = "".join(
                f'<td class="count {op.value}">{count}</td>'
                for op, count in zip(ChangeOp, each.rows.counts, strict=True)
            )
            yield f"<tr><td>{escape_text(each.entity.table_key)}</td>{cells}</tr>"
        yield "</table>"
    else:
        yield "<p>No row differs.</p>" if changes.schema_steps else "<p>Nothing differs.</p>"
    for word, shown in (("drawn", subgraph.drawn), ("listed", CHANGES_MAX)):
        if stats.total > shown:
            yield f'<p class="quiet">{stats.total - shown} more changes are not {word}.</p>'
    yield "</div>"


def _schema(changes: ChangeSet) -> Iterator[str]:
    """The steps from one schema to the other, as a migration would take them."""
    if changes.schema_steps:
        yield "<h2>The schema</h2><table>"
        for step in changes.schema_steps:
            yield f"<tr><td>{_value(describe_step(step.to_json()))}</td></tr>"
        yield "</table>"


def _picture(subgraph: Subgraph) -> Iterator[str]:
    if not subgraph.nodes:
        return
    yield "<h2>The changed part of the graph</h2>"
    yield draw(subgraph)
    yield (
        '<p class="quiet">+ added, ~ changed, − removed; grey and dashed: not changed, one step '
        "away.</p>"
    )


def _details(changes: ChangeSet) -> Iterator[str]:
    if not changes:
        return
    yield "<h2>Change by change</h2>"
    for change in islice(changes, CHANGES_MAX):
        yield _change(change)


def _change(change: EntityChange) -> str:
    ends = ""
    if change.endpoints is not None:
        source, target = map(_value, change.endpoints)
        ends = f' <span class="quiet">{source} → {target}</span>'
    rows = "".join(
        f"<tr><td>{escape_text(name)}</td>"
        f'<td class="before">{_cell(change.before, change.earlier_name(name))}</td>'
        f'<td class="after">{_cell(change.after, name)}</td></tr>'
        for name in change.properties
        if name != "id"
    )
    # What changed in place is what a reviewer looks for first.
    is_open = " open" if change.op is ChangeOp.UPDATE else ""
    return (
        f'<details class="{change.op.value}"{is_open}><summary><b>{SYMBOLS[change.op]}</b> '
        f"{escape_text(change.type_name)} {_value(change.id)}{ends}</summary>"
        f"<table><tr><th>Property</th><th>Before</th><th>After</th></tr>{rows}</table></details>"
    )


def _cell(image: Any, name: str) -> str:
    if image is None or name not in image:
        return ""
    value = image[name]
    if value is None:
        return '<span class="quiet">null</span>'
    return _value(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _value(text: str) -> str:
    """A value, kept apart from the direction of the text around it."""
    cut = text if len(text) <= _VALUE_CHARACTERS else f"{text[:_VALUE_CHARACTERS]}…"
    more = "" if cut == text else f' <span class="quiet">({len(text)} characters)</span>'
    return f"<bdi>{escape_text(cut)}</bdi>{more}"
