"""Parts: which documents of an index a version has, and where they stand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from omnigraph.index.addressed import Files, make_addresses
from omnigraph.index.arrays import IntArray
from omnigraph.index.layout import Layout
from omnigraph.index.merge_texts import merge_text_indexes
from omnigraph.index.parts import Choice, choose_whole, cover, place_part
from omnigraph.index.text_index import ADDRESS, TextIndex, build_text_index
from omnigraph.storage.handles import Fragment


def index_of(file: str, first: int, count: int) -> TextIndex:
    """An index of one fragment, whose rows have ids in reverse order."""
    rows = pa.table(
        {
            "id": [f"n{99 - first - row:02}" for row in range(count)],
            "body": [f"word{first + row}" for row in range(count)],
            ADDRESS: make_addresses(0, np.arange(count)),
        }
    )
    return build_text_index(rows, "body", [(file,)], "none")


def layout_of(sizes: dict[str, int], deleted: dict[str, list[int]]) -> Layout:
    fragments: dict[Files, Fragment] = {}
    starts: dict[Files, int] = {}
    place = 0
    for number, (file, rows) in enumerate(sizes.items()):
        live = rows - len(deleted.get(file, ()))
        fragments[(file,)] = Fragment(number, (file,), live, rows)
        starts[(file,)] = place
        place += live
    gone: dict[Files, IntArray] = {(file,): np.array(rows) for file, rows in deleted.items()}
    return Layout(fragments, starts, gone, {})


def both() -> TextIndex:
    parts = [index_of("f", 0, 5), index_of("g", 5, 4)]
    return merge_text_indexes([(each, each.fragments) for each in parts])


def test_positions_count_the_rows_that_are_left() -> None:
    layout = layout_of({"e": 3, "g": 4, "f": 5}, {"f": [0, 3], "g": [1]})

    part = place_part(choose_whole(both()), layout)

    live = part.keep_live(np.arange(9))
    assert part.rows == len(live) == 6
    found = {part.index.ids.to_list()[document]: document for document in live}
    assert sorted(found) == [f"n{99 - row}" for row in (8, 7, 5, 4, 2, 1)]
    positions = {name: int(part.positions(np.array([at]))[0]) for name, at in found.items()}
    # e has positions 0 to 2; g has rows 5, 7, 8 of all; f has rows 1, 2, 4.
    assert positions == {"n94": 3, "n92": 4, "n91": 5, "n98": 6, "n97": 7, "n95": 8}


def test_a_fragment_that_a_version_lost_has_no_documents_left() -> None:
    part = place_part(Choice(both(), frozenset([("g",)])), layout_of({"g": 4, "h": 2}, {"g": [0]}))

    live = part.keep_live(np.arange(9))

    assert part.rows == 3
    assert [part.index.ids.to_list()[each] for each in live] == ["n91", "n92", "n93"]
    assert sorted(part.positions(live).tolist()) == [0, 1, 2]


def test_a_version_is_covered_by_the_largest_indexes_that_it_has_half_of() -> None:
    merged, small, other = both(), index_of("g", 5, 4), index_of("h", 9, 8)

    def names(layout: Layout) -> tuple[list[set[Files]], list[Files]]:
        chosen, missing = cover(layout, [small, merged, other])
        return [set(each.chosen) for each in chosen], missing

    assert names(layout_of({"f": 5, "g": 4, "i": 1}, {})) == ([{("f",), ("g",)}], [("i",)])
    assert names(layout_of({"f": 5, "h": 8}, {})) == ([{("f",)}, {("h",)}], [])
    assert names(layout_of({"g": 4}, {})) == ([{("g",)}], [])
    assert cover(layout_of({"g": 4}, {}), [small, merged])[0][0].index is small
