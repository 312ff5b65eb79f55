"""Derived files are sealed: a flipped byte in a mapped array would be a wrong answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from omnigraph.index.adjacency import Relation
from omnigraph.index.derived import DerivedStore, RelationName
from omnigraph.index.runs import Csr


def test_a_flipped_byte_in_any_derived_file_is_named(tmp_path: Path) -> None:
    store = DerivedStore(tmp_path, is_writable=True)
    csr = Csr(np.array([0, 1, 3]), np.array([1, 0, 1], dtype=np.uint32), None)
    back = Csr(np.array([0, 1, 3]), np.array([0, 1, 1], dtype=np.uint32), None)
    store.save(RelationName("knows", ((1, "a"),)), Relation(csr, back))

    assert store.find_damage() == {}
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 1
    for path in files:
        whole = path.read_bytes()
        for place in range(len(whole)):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            assert store.find_damage(), (path, place)
        path.write_bytes(whole)
    assert store.find_damage() == {}
