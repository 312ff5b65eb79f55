"""Chart: figures of several systems as bars in an SVG, on a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from benchmarks.harness import Figure

_LEFT, _WIDTH, _ROW, _GAP = 190, 520, 15, 14
_COLOURS = ("#2b6cb0", "#dd6b20", "#38a169", "#805ad5", "#718096", "#d53f8c")


def draw_chart(title: str, unit: str, figures: Sequence[Figure]) -> str:
    """Bars by name, one per system, with the spread as a line across each end."""
    shown = [each for each in figures if each.unit == unit and each.value > 0]
    subjects = list(dict.fromkeys(each.subject for each in shown))
    scale = _Scale([value for each in shown for value in (each.value, each.least, each.most)])
    parts = [_text(8, 20, title, "bold"), _text(8, 38, f"{unit}, less is better, log scale")]
    parts += _legend(subjects)
    y = 74.0
    for name in dict.fromkeys(each.name for each in shown):
        parts.append(_text(8, y + 11, name))
        for each in (each for each in shown if each.name == name):
            parts += _bar(each, y, scale, _COLOURS[subjects.index(each.subject) % len(_COLOURS)])
            y += _ROW
        y += _GAP
    size = f'width="{_LEFT + _WIDTH + 90}" height="{y:.0f}"'
    style = 'font-family="sans-serif" font-size="12"'
    return "\n".join(
        [f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>', *parts, "</svg>", ""]
    )


class _Scale:
    """Where a value is, in pixels from the left of the bars."""

    def __init__(self, values: Sequence[float | None]) -> None:
        known = [value for value in values if value is not None and value > 0] or [1.0]
        self._low = math.floor(math.log10(min(known)))
        self._high = max(math.ceil(math.log10(max(known))), self._low + 1)

    def place(self, value: float | None) -> float:
        if value is None or value <= 0:
            return 0.0
        return _WIDTH * (math.log10(value) - self._low) / (self._high - self._low)


def _bar(figure: Figure, y: float, scale: _Scale, colour: str) -> list[str]:
    end = max(1.0, scale.place(figure.value))
    parts = [f'<rect x="{_LEFT}" y="{y}" width="{end:.1f}" height="{_ROW - 3}" fill="{colour}"/>']
    if figure.least is not None and figure.most is not None:
        low, high = _LEFT + scale.place(figure.least), _LEFT + scale.place(figure.most)
        middle = y + (_ROW - 3) / 2
        parts.append(
            f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{middle}" y2="{middle}" stroke="black"/>'
        )
    return [*parts, _text(_LEFT + end + 6, y + 10, f"{figure.value:.3g}")]


def _legend(subjects: Sequence[str]) -> list[str]:
    parts = []
    x = 8
    for number, subject in enumerate(subjects):
        colour = _COLOURS[number % len(_COLOURS)]
        parts.append(f'<rect x="{x}" y="48" width="10" height="10" fill="{colour}"/>')
        parts.append(_text(x + 14, 57, subject or "omnigraph"))
        x += 34 + 7 * len(subject)
    return parts


def _text(x: float, y: float, text: str, weight: str = "normal") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" font-weight="{weight}">{escape(text)}</text>'
