"""`ensure_indices` builds what is declared and missing, once, and changes no answer."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import ConflictError, RecoveryRequired
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from omnigraph.storage.counters import counting
from omnigraph.storage.handles import IndexKind, IndexSpec
from omnigraph.testing.inside import inside
from omnigraph.upkeep.ensure_indices import ensure_indices
from tests.upkeep.graphs import (
    answers,
    dataset,
    fill,
    handle_of,
    heads,
    indexes,
    is_covered,
    new_library,
    pins,
    reopen,
    sidecars,
)

BUILT = {
    "edge:Wrote": ("id", "src", "dst"),
    "node:Author": ("id", "bio", "face", "level", "slug"),
    "node:Paper": ("id", "doi", "year"),
}


@pytest.mark.accepts("S-080")
def test_everything_declared_is_built_in_one_version_per_table(library: og.Graph) -> None:
    before = pins(library)

    report = library.ensure_indices()

    assert report.built == BUILT
    assert report.pending == ()
    assert pins(library) == {key: version + 1 for key, version in before.items()}
    assert all(is_covered(library, key) for key in before)
    assert heads(library) == pins(library)
    assert sidecars(library) == []


@pytest.mark.accepts("S-080")
def test_a_second_run_does_nothing(library: og.Graph) -> None:
    library.ensure_indices()
    version, before = library.snapshot().manifest_version, pins(library)

    with counting() as counters:
        report = library.ensure_indices()

    assert report.built == {}
    assert counters.text_writes == counters.commits == 0
    assert (library.snapshot().manifest_version, pins(library)) == (version, before)


@pytest.mark.accepts("S-079")
@pytest.mark.parametrize(
    ("type_", "kind"),
    [
        ("String", "Inverted"),
        ("enum(a, b)", "BTree"),
        ("I32", "BTree"),
        ("U64", "BTree"),
        ("F64", "BTree"),
        ("Bool", "BTree"),
        ("Date", "BTree"),
        ("DateTime", "BTree"),
        ("Vector(2)", "IVF_FLAT"),
    ],
)
def test_the_kind_follows_the_type(tmp_path: Path, type_: str, kind: str) -> None:
    values = {
        "String": "x", "enum(a, b)": "a", "I32": 1, "U64": 1, "F64": 1.5, "Bool": True,
        "Date": "2020-01-02", "DateTime": "2020-01-02T00:00:00Z", "Vector(2)": [1.0, 2.0],
    }  # fmt: skip
    graph = new_library(tmp_path / "graph", f"node T {{ k: String @key  v: {type_}? @index }}")
    graph.load([{"type": "T", "data": {"k": "1", "v": values[type_]}}], mode="append")

    graph.ensure_indices()

    found = {each.column: each.kind for each in indexes(graph, "node:T").values()}
    assert found.get("v") == kind
    assert found["id"] == "BTree"


@pytest.mark.accepts("S-078")
def test_staging_moves_no_head(library: og.Graph) -> None:
    tables = inside(library).store.tables
    specs = [IndexSpec("id", IndexKind.BTREE), IndexSpec("bio", IndexKind.INVERTED)]
    before = heads(library)

    staged = tables.indexes.stage_create(handle_of(library, "node:Author"), specs)

    assert staged.transaction is not None
    assert heads(library) == before
    tables.commit_staged(staged.transaction)
    assert heads(library)["node:Author"] == before["node:Author"] + 1


def test_a_vector_column_without_vectors_is_pending_and_says_so(tmp_path: Path) -> None:
    graph = new_library(tmp_path / "graph")
    graph.load([{"type": "Author", "data": {"slug": "a", "name": "A"}}], mode="append")

    report = graph.ensure_indices()

    assert [(each.column, each.reason) for each in report.pending] == [
        ("face", "no row has a value in 'face'")
    ]
    assert "node:Paper" not in report.built, "an empty table is left alone"
    assert graph.ensure_indices().built == {}


@pytest.mark.accepts("S-122")
def test_drift_is_refused_loudly(library: og.Graph) -> None:
    dataset(library, "node:Paper").delete("doi = 'nothing'")

    with pytest.raises(ConflictError, match=r"ahead of manifest version .* run `omnigraph repair`"):
        library.ensure_indices()

    assert sidecars(library) == []


@pytest.mark.accepts("S-122")
def test_ensure_indices_does_not_recover_what_a_dead_writer_left(library: og.Graph) -> None:
    point = Failpoint.MUTATION_POST_FINALIZE_PRE_PUBLISHER
    with arm_failpoints({point: "raise"}), pytest.raises(FailpointError):
        fill(library, 100)

    with pytest.raises(RecoveryRequired, match="pending recovery sidecar"):
        ensure_indices(inside(library).environment(), library.catalog)

    assert len(sidecars(library)) == 1
    library.ensure_indices()  # of a graph, which recovers it first
    assert sidecars(library) == []


@pytest.mark.accepts("S-082")
def test_a_failure_after_the_vector_build_is_recovered_by_an_open(library: og.Graph) -> None:
    before = answers(library)
    point = Failpoint.ENSURE_INDICES_POST_PHASE_B_PRE_MANIFEST_COMMIT
    with arm_failpoints({point: "raise"}), pytest.raises(FailpointError):
        library.ensure_indices()
    assert heads(library) != pins(library)
    assert sidecars(library)[0]["writer_kind"] == "EnsureIndices"

    again = reopen(library)

    assert heads(again) == pins(again)
    assert sidecars(again) == []
    assert [each.kind.value for each in again.recoveries()] == ["RolledForward"]
    assert all(is_covered(again, key) for key in pins(again))
    assert answers(again) == before


def test_no_graph_commit_is_made(library: og.Graph) -> None:
    before = library.commits()

    library.ensure_indices()

    assert library.commits() == before


def test_on_a_branch_only_its_own_tables_are_touched(library: og.Graph) -> None:
    library.create_branch("review")
    fill(library, 50, branch="review")
    main = pins(library)

    report = library.ensure_indices("review")

    assert set(report.built) == set(main)
    assert pins(library) == main
    assert indexes(library, "node:Author") == {}
    assert set(indexes(library, "node:Paper", "review")) == {
        "id_btree", "doi_inverted", "year_btree",
    }  # fmt: skip


def test_a_branch_that_wrote_nothing_builds_nothing(library: og.Graph) -> None:
    library.create_branch("review")

    assert library.ensure_indices("review").built == {}


def test_a_table_of_an_ancestor_branch_is_forked_first(library: og.Graph) -> None:
    library.create_branch("one")
    fill(library, 50, branch="one")
    library.create_branch("two", from_="one")

    library.ensure_indices("two")

    assert library.snapshot("two").entries["node:Paper"].table_branch == "two"
    assert library.snapshot("one").entries["node:Paper"].table_branch == "one"
    assert indexes(library, "node:Paper", "one") == {}
    assert "year_btree" in indexes(library, "node:Paper", "two")


def test_a_concurrent_writer_loses_nothing(library: og.Graph) -> None:
    """Staging holds no lock; what was overtaken is staged again."""
    overtaken: list[int] = []

    def overtake() -> None:
        if len(overtaken) < 2:
            overtaken.append(1)
            fill(reopen(library), 100 * len(overtaken), 3)

    with arm_failpoints({Failpoint.ENSURE_INDICES_POST_STAGE_PRE_COMMIT_BTREE: overtake}):
        library.ensure_indices()

    assert len(overtaken) == 2
    assert handle_of(library, "node:Author").row_count == 18
    assert is_covered(library, "node:Author")
