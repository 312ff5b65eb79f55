"""Full text: the text indexes that together cover one version of a table.

The numbers of relevance are sums over the parts: an answer is the same whatever the parts are.
"""

from __future__ import annotations

from functools import cached_property

from omnigraph.dataclass import dataclass
from omnigraph.index.arrays import AnyArray, IntArray
from omnigraph.index.layout import Layout
from omnigraph.index.parts import Part
from omnigraph.index.text_files import TextColumn
from omnigraph.index.text_index import TextIndex


@dataclass(frozen=True, eq=False)
class FullText:
    """The parts of one version, the largest first."""

    parts: tuple[Part[TextIndex], ...]
    layout: Layout
    column: TextColumn

    @cached_property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    @cached_property
    def mean_length(self) -> float:
        """How many tokens a text has."""
        return sum(map(_count_tokens, self.parts)) / max(self.rows, 1)

    @property
    def nbytes(self) -> int:
        return self.layout.nbytes + sum(part.nbytes for part in self.parts)

    @property
    def shared(self) -> tuple[TextIndex, ...]:
        """What other versions have too; see `Sized`."""
        return tuple(part.index for part in self.parts)


def _count_tokens(part: Part[TextIndex]) -> int:
    return part.index.total_length - int(part.index.lengths.at(part.dead).sum())


def counts_of_stem(part: Part[TextIndex], stem: str) -> tuple[IntArray, AnyArray]:
    """The documents of a version that have the stem, each once, and how often they have it."""
    documents, counts = part.index.counts_of_stem(stem)
    if part.is_live is None:
        return documents, counts
    live = part.is_live[documents]
    return documents[live], counts[live]
