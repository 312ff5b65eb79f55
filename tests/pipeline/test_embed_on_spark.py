"""Embedding runs on executors, and makes there what it makes in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from tests.graph.test_embedding import SCHEMA, SOUP, doc, is_local, vectors


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_executors_embed_like_this_process(tmp_path: Path, spark: Any) -> None:
    with og.init(tmp_path / "graph", schema=SCHEMA, spark=spark) as graph:
        records = [doc(f"d{number}", f"{SOUP} {number}") for number in range(4)]
        graph.load(records[:2], mode="append", engine="spark", embed=False)
        loaded = graph.load(records[2:], mode="append", engine="spark")
        result = graph.embed(engine="spark")

        assert (loaded.engine, loaded.rows_embedded) == ("spark", 2)
        assert (result.engine, result.rows_embedded) == ("spark", 2)
        for number in range(4):
            assert is_local(vectors(graph)[f"d{number}"], f"{SOUP} {number}")
