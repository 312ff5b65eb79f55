"""Picture: a small graph as inline SVG. No scripts, no fonts, no links; the same input draws the
same picture.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from omnigraph.branch.changes import ChangeOp
from omnigraph.branch.surroundings import NodeKey, Subgraph
from omnigraph.html_text import escape_text

WIDTH, HEIGHT, MARGIN = 960, 560, 80
_ROUNDS = 240
_LABEL_CHARACTERS = 22

SYMBOLS = {ChangeOp.INSERT: "+", ChangeOp.UPDATE: "~", ChangeOp.DELETE: "−", None: ""}


def draw(graph: Subgraph) -> str:
    """The subgraph, which has nodes, as one `<svg>`."""
    keys = list(graph.nodes)
    points = dict(zip(keys, _layout(graph, keys), strict=True))
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="changed part of the graph">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z"/></marker></defs>',
    ]
    parts += [_edge(e.type_name, e.op, points[e.source], points[e.target]) for e in graph.edges]
    parts += [_node(key, graph.nodes[key], points[key]) for key in keys]
    return "\n".join([*parts, "</svg>"])


def _edge(
    type_name: str, op: ChangeOp | None, start: tuple[float, float], end: tuple[float, float]
) -> str:
    length = math.dist(start, end)
    kind = op.value if op is not None else "context"
    label = f"{SYMBOLS[op]}{type_name}"
    if length < 1:
        x, y = start
        shape = f'<path class="line" d="M{x:.0f} {y - 11:.0f}c-26 -40 26 -40 0 0"/>'
        middle = (x, y - 44)
    else:
        # Stop at the rim of the nodes, so that the tip can be seen.
        dx, dy = (end[0] - start[0]) / length, (end[1] - start[1]) / length
        x1, y1 = start[0] + 12 * dx, start[1] + 12 * dy
        x2, y2 = end[0] - 14 * dx, end[1] - 14 * dy
        shape = (
            f'<line class="line" x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}" '
            'marker-end="url(#tip)"/>'
        )
        middle = ((x1 + x2) / 2, (y1 + y2) / 2 - 4)
    text = (
        f'<text class="small" x="{middle[0]:.0f}" y="{middle[1]:.0f}">{escape_text(label)}</text>'
    )
    return f'<g class="{kind}">{shape}{text}</g>'


def _node(key: NodeKey, op: ChangeOp | None, point: tuple[float, float]) -> str:
    type_name, id_ = key
    x, y = point
    kind = op.value if op is not None else "context"
    short = id_ if len(id_) <= _LABEL_CHARACTERS else f"{id_[: _LABEL_CHARACTERS - 1]}…"
    return (
        f'<g class="{kind}"><title>{escape_text(f"{type_name} {id_}")}</title>'
        f'<circle cx="{x:.0f}" cy="{y:.0f}" r="10"/>'
        f'<text class="symbol" x="{x:.0f}" y="{y + 4:.0f}">{SYMBOLS[op]}</text>'
        f'<text x="{x:.0f}" y="{y + 24:.0f}">{escape_text(short)}</text>'
        f'<text class="small" x="{x:.0f}" y="{y + 37:.0f}">{escape_text(type_name)}</text></g>'
    )


def _layout(graph: Subgraph, keys: Sequence[NodeKey]) -> list[tuple[float, float]]:
    """Push nodes apart and pull edges together, from a fixed start."""
    count = len(keys)
    number = {key: index for index, key in enumerate(keys)}
    turn = 2.399963 * np.arange(count)  # the golden angle: an even spread, no two alike
    at = np.sqrt(np.arange(count) + 0.5)[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    links = np.array(
        [[number[e.source], number[e.target]] for e in graph.edges if e.source != e.target],
        dtype=np.int64,
    ).reshape(-1, 2)
    for step in range(_ROUNDS):
        apart = at[:, None] - at[None]
        squared = (apart**2).sum(axis=2) + 0.01
        force = (apart / squared[..., None]).sum(axis=1)
        pull = at[links[:, 0]] - at[links[:, 1]]
        np.subtract.at(force, links[:, 0], 0.35 * pull)
        np.add.at(force, links[:, 1], 0.35 * pull)
        force -= 0.15 * at
        reach = np.linalg.norm(force, axis=1, keepdims=True) + 1e-9
        at = at + force / reach * np.minimum(reach, 1 - step / _ROUNDS)
    low, high = at.min(axis=0), at.max(axis=0)
    span = np.where(high - low < 1e-6, 1, high - low)
    unit = (at - low) / span if count > 1 else np.full((1, 2), 0.5)
    size = np.array([WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN])
    return [(float(x), float(y)) for x, y in MARGIN + unit * size]
