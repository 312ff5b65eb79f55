"""What is kept of fragments is small, however much their manifests say of them."""

from __future__ import annotations

import gc

import lance
import pyarrow as pa

from omnigraph.storage.lance_manifest import fragment_messages
from tests.storage.conftest import People, people

VERSIONS = 8
ROWS = 4_000


def count_bytes(root: object) -> int:
    """How many bytes of byte strings an object holds, in whatever it is made of."""
    seen, left, total = set[int](), [root], 0
    while left:
        each = left.pop()
        if id(each) in seen or isinstance(each, type):
            continue
        seen.add(id(each))
        total += len(each) if isinstance(each, bytes) else 0
        left += gc.get_referents(each)
    return total


def test_of_a_fragment_that_many_versions_wrote_its_facts_are_kept_and_not_its_manifest(
    table: People,
) -> None:
    table.append(0, ROWS)
    said = 0
    for version in range(VERSIONS):
        # Every third row is written again: the rows of what comes of it are no range of numbers.
        again = people(0, ROWS, age=version).take(pa.array(range(version, ROWS, 3)))
        table.commit(table.storage.rows.stage_merge_insert(table.head(), again))
        assert len(table.storage.reads.fragments(table.head())) > 1
        said += max(map(len, fragment_messages(lance.dataset(table.location.uri))))
    assert said > VERSIONS * 1_024
    assert count_bytes(table.storage.reads) < said / 4
