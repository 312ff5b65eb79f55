"""Numbers of ids that are found by hash are those of the ids, also when hashes are shared."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.pipeline import numbering
from omnigraph.pipeline.hashes import hash_texts

IDS = [f"p{number}" for number in range(0, 2_000, 2)]


def find(ids: list[str], texts: list[str]) -> list[int]:
    found = numbering.number_ids(pa.array(ids, pa.utf8())).find(pa.array(texts, pa.utf8()))
    return list(found.tolist())


@pytest.mark.parametrize("ids", [[], ["one"], IDS], ids=["none", "one", "many"])
def test_each_id_has_the_number_of_its_place(ids: list[str]) -> None:
    assert find(ids, ids[::-1]) == list(range(len(ids)))[::-1]


@pytest.mark.parametrize("ids", [[], ["one"], IDS], ids=["none", "one", "many"])
def test_what_is_no_id_has_no_number(ids: list[str]) -> None:
    assert set(find(ids, [f"p{number}" for number in range(1, 2_000, 2)])) == {numbering.NO_NUMBER}


@pytest.mark.parametrize("values", [1, 7, 900])
def test_ids_that_share_a_hash_keep_their_numbers(
    values: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few hashes for many ids, among them the greatest there is."""
    few = np.iinfo(np.uint64).max - np.arange(values, dtype=np.uint64)
    monkeypatch.setattr(numbering, "hash_texts", lambda texts: few[hash_texts(texts) % values])

    assert find(IDS, IDS) == list(range(len(IDS)))


def test_an_id_that_shares_no_hash_is_compared_by_it_alone() -> None:
    """No id travels to tasks as text unless another has its hash."""
    assert len(numbering.number_ids(pa.array(IDS)).shared) == 0
