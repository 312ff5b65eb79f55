"""An id index finds every id where it stands, and no other."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.index import id_index
from omnigraph.index.id_index import build_id_index


@pytest.mark.parametrize("base", [1, int(id_index._BASE)])
def test_ids_are_found_in_every_part_even_if_their_hashes_are_equal(
    base: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With powers of 1, texts of the same letters have one hash."""
    monkeypatch.setattr(id_index, "_BASE", np.uint64(base))
    random = np.random.default_rng(1)
    texts = list({"".join(random.choice(list("abcé"), random.integers(0, 6))) for _ in range(300)})
    known, unknown = texts[:200], texts[200:]
    index = build_id_index(pa.array(known[:120]))
    for first, last in ((120, 121), (121, 122), (122, 160), (160, 200)):
        index = index.append(pa.array(known[first:last]))

    found = index.find(pa.array([*unknown, *known, known[0]]), pa.array(known))

    expected = [-1] * len(unknown) + list(range(len(known))) + [0]
    assert found.tolist() == expected
    assert len(index.shared) <= 3


def test_rows_that_come_one_by_one_are_sorted_a_few_times_each() -> None:
    """A part is merged when it is as long as the one before it, so that parts are few."""
    index = build_id_index(pa.array([str(each) for each in range(1_000)]))
    for each in range(1_000, 1_200):
        index = index.append(pa.array([str(each)]))

    lengths = [len(part.hashes) for part in index.shared]
    assert lengths == sorted(lengths, reverse=True)
    assert sum(lengths) == 1_200
    assert len(lengths) <= 9
