"""A schema applied to a graph with data: kept, renamed, nulled or gone, just as the plan says."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import ConflictError, MigrationError, NotFoundError, OmnigraphError
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from omnigraph.manifest.branch_names import SCHEMA_APPLY_LOCK
from omnigraph.storage.counters import counting
from omnigraph.testing.inside import inside
from omnigraph.write.schema_lock import LOCK_REF
from tests.storage.blobs import read_whole
from tests.upkeep.graphs import (
    SCHEMA,
    dataset,
    fill,
    heads,
    new_library,
    photos,
    pins,
    reopen,
    rows,
    sidecars,
    versions,
)

CASES = Path(__file__).parents[1] / "conformance" / "language.jsonl"
PLANS: list[dict[str, Any]] = [
    case for line in CASES.read_text().splitlines() if (case := json.loads(line))["kind"] == "plan"
]
STAGING = ("_schema.pg.staging", "_schema.ir.json.staging", "__schema_state.json.staging")


def changed(*edits: tuple[str, str], schema: str = SCHEMA) -> str:
    for old, new in edits:
        assert old in schema
        schema = schema.replace(old, new)
    return schema


def staging_files(graph: og.Graph) -> list[str]:
    return [name for name in STAGING if (Path(graph.uri) / name).exists()]


def is_whole(graph: og.Graph) -> None:
    """Nothing of an unfinished change is left, and the graph is sound."""
    assert heads(graph) == pins(graph)
    assert sidecars(graph) == []
    assert staging_files(graph) == []
    assert not (Path(graph.uri) / LOCK_REF).exists()
    assert graph.verify().errors == ()


# The conformance cases, applied for real


def populated(path: Path, schema: str) -> og.Graph:
    """Three rows in every node type and two in every edge type of a case's schema."""
    graph = new_library(path, schema)
    records: list[dict[str, Any]] = []
    for node in graph.catalog.nodes.values():
        for number in range(3):
            data = {
                each.name: sample(each, number)
                for each in node.properties.values()
                if not (each.type.nullable and number == 2)
            }
            records.append({"type": node.name, "data": data})
    graph.load(records, mode="append")
    ends = {
        name: [row["id"] for row in rows(graph, f"node:{name}")] for name in graph.catalog.nodes
    }
    edges = [
        {
            "edge": edge.name,
            "from": ends[edge.source][number],
            "to": ends[edge.target][number],
            "data": {each.name: sample(each, number) for each in edge.properties.values()},
        }
        for edge in graph.catalog.edges.values()
        for number in range(2)
    ]
    if edges:
        graph.load(edges, mode="append")
    return graph


def sample(property_: Any, number: int) -> Any:
    type_ = property_.type
    if type_.is_list:
        return []
    if type_.is_enum:
        return type_.variants[number % len(type_.variants)]
    if type_.dimension:
        return [float(number)] * type_.dimension
    return {"String": f"s{number}", "Bool": True, "Date": "2020-01-01"}.get(
        type_.scalar.value, number
    )


def expected_tables(graph: og.Graph, plan: Any) -> dict[str, list[dict[str, Any]]]:
    """Every table as the steps say it will be, from the rows as they are now."""
    tables = {key: rows(graph, key) for key in pins(graph)}
    steps: list[Any] = [each.to_json() for each in plan.steps]
    for step in steps:
        match step:
            case {"kind": "add_type", "type_kind": kind, "name": name} if kind != "interface":
                tables[f"{kind}:{name}"] = []
            case {"kind": "rename_type", "type_kind": kind, "from": old, "to": new}:
                tables[f"{kind}:{new}"] = tables.pop(f"{kind}:{old}")
            case {"kind": "drop_type", "type_kind": kind, "name": name}:
                del tables[f"{kind}:{name}"]
            case {"kind": "add_property", "type_kind": kind, "type_name": name}:
                for row in tables.get(f"{kind}:{name}", []):
                    row[step["property_name"]] = None
            case {"kind": "rename_property", "type_kind": kind, "type_name": name}:
                for row in tables.get(f"{kind}:{name}", []):
                    row[step["to"]] = row.pop(step["from"])
            case {"kind": "drop_property", "type_kind": kind, "type_name": name}:
                for row in tables.get(f"{kind}:{name}", []):
                    del row[step["property_name"]]
    return tables


@pytest.mark.parametrize("case", PLANS, ids=lambda case: case["id"])
def test_a_conformance_plan_does_to_data_what_it_says(case: dict[str, Any], tmp_path: Path) -> None:
    graph = populated(tmp_path / "graph", case["schema"])
    before = {key: rows(graph, key) for key in pins(graph)}
    version, schema = graph.snapshot().manifest_version, graph.schema

    if "error" in case or not graph.plan_schema(case["desired"]).supported:
        with pytest.raises(OmnigraphError):
            graph.apply_schema(case["desired"])
        assert {key: rows(graph, key) for key in pins(graph)} == before
        assert (graph.snapshot().manifest_version, graph.schema) == (version, schema)
        is_whole(graph)
        return
    expected = expected_tables(graph, graph.plan_schema(case["desired"]))

    result = graph.apply_schema(case["desired"])

    assert result.applied is bool(case["expect"]["steps"])
    again = reopen(graph)
    for handle in (graph, again):
        assert {key: rows(handle, key) for key in pins(handle)} == expected
        is_whole(handle)
    assert again.schema == (case["desired"] if result.applied else case["schema"])
    assert {
        key: rows(graph, key, version=version) for key in graph.snapshot_at_version(version).entries
    } == before


# What a change does


RENAMED = changed(
    ("node Author {", 'node Writer @rename_from("Author") {'),
    ("    name: String\n", '    full_name: String @rename_from("name")\n    email: String?\n'),
    ("edge Wrote: Author", "edge Wrote: Writer"),
)


def test_a_rename_keeps_ids_values_blobs_and_edges(library: og.Graph) -> None:
    before, bytes_before = rows(library, "node:Author"), photos(library)

    library.apply_schema(RENAMED, actor="ada")

    after = rows(library, "node:Writer")
    for row in before:
        row["full_name"], row["email"] = row.pop("name"), None
    assert after == before
    tables = inside(library).store.tables
    found = library.query(
        "query q() { match { $w: Writer  $w wrote $p } return { $w.full_name, $p.doi } }"
    ).rows()
    assert len(found) == 6
    assert library.commits()[0].actor == "ada"
    snapshot = library.snapshot().entries["node:Writer"]
    location = tables.root.table(snapshot.table_path)
    opened = tables.open_at(location, snapshot.version, incarnation=snapshot.transaction_uuid)
    blobs = {
        each: read_whole(tables.reads.open_blob(opened, "photo", entity_id=each))
        for each in bytes_before
    }
    assert blobs == bytes_before


def test_a_new_type_and_a_new_enum_word_are_usable_at_once(library: og.Graph) -> None:
    library.apply_schema(
        changed(("enum(junior, senior)", "enum(emeritus, junior, senior)"))
        + "node Venue { name: String @key }\nedge At: Paper -> Venue"
    )

    library.mutate(
        'query q() { insert Venue { name: "V" }  insert At { from: "p000", to: "V" } '
        'insert Author { slug: "new", name: "N", level: "emeritus" } }'
    )

    assert len(rows(library, "edge:At")) == 1
    is_whole(library)


@pytest.mark.parametrize(
    "desired",
    [
        changed(("enum(junior, senior)", "enum(emeritus, junior, senior)")),
        changed(("    age: I32?", "    age: I32? @index")),
        changed(("node Paper {", 'node Paper @description("printed matter") {')),
        SCHEMA + "interface Named { name: String }",
    ],
    ids=["enum", "index", "description", "interface"],
)
def test_a_metadata_change_touches_no_table(library: og.Graph, desired: str) -> None:
    before = pins(library)

    with counting() as counters, arm_failpoints({Failpoint.RECOVERY_SIDECAR_WRITE: "raise"}):
        result = library.apply_schema(desired)

    assert result.applied
    assert result.commit_id == library.commits()[0].commit_id
    assert (pins(library), counters.commits) == (before, 0)
    assert library.schema == reopen(library).schema == desired
    is_whole(library)


def test_no_change_is_no_change(library: og.Graph) -> None:
    version = library.snapshot().manifest_version

    result = library.apply_schema("// the same\n" + SCHEMA)

    assert (result.applied, result.manifest_version) == (False, version)
    assert library.schema == SCHEMA


@pytest.mark.accepts("S-083")
@pytest.mark.parametrize("is_filled", [True, False])
def test_a_rewrite_is_one_staged_overwrite(tmp_path: Path, is_filled: bool) -> None:
    """Rows that get a value are written anew, all of them at once."""
    graph = new_library(tmp_path / "graph")
    if is_filled:
        fill(graph)
    before = pins(graph)

    with counting() as counters:
        edit = ("node Paper { doi", 'node Paper { venue: String @default("none")  doi')
        graph.apply_schema(changed(edit))

    assert counters.stages == {"overwrite": 1}
    assert counters.commits == 1
    assert pins(graph) == before | {"node:Paper": before["node:Paper"] + 1}
    assert {row["venue"] for row in rows(graph, "node:Paper")} <= {"none"}
    made = dataset(graph, "node:Paper").read_transaction(pins(graph)["node:Paper"])
    assert made is not None
    assert type(made.operation).__name__ == "Overwrite"
    assert "omnigraph.operation_id" in (made.transaction_properties or {})


DROPPED = changed(
    ("    age: I32?\n", ""),
    ("edge Wrote: Author -> Paper { pos: I32? }\n", ""),
)


def test_a_soft_drop_leaves_the_past_readable(library: og.Graph) -> None:
    version = library.snapshot().manifest_version
    ages, written = rows(library, "node:Author"), rows(library, "edge:Wrote")

    library.apply_schema(DROPPED)

    assert "age" not in rows(library, "node:Author")[0]
    assert "edge:Wrote" not in pins(library)
    assert rows(library, "node:Author", version=version) == ages
    assert rows(library, "edge:Wrote", version=version) == written
    is_whole(library)


def test_a_hard_drop_makes_the_past_unreachable(library: og.Graph) -> None:
    version = library.snapshot().manifest_version
    path = library.snapshot().entries["edge:Wrote"].table_path

    result = library.apply_schema(DROPPED, allow_data_loss=True)

    assert {step.to_json()["mode"] for step in result.steps} == {"hard"}
    assert versions(library, "node:Author") == [pins(library)["node:Author"]]
    with pytest.raises(NotFoundError):
        rows(library, "node:Author", version=version)
    with pytest.raises(NotFoundError):
        rows(library, "edge:Wrote", version=version)
    left = [each for each in (Path(library.uri) / path / "data").glob("*") if each.is_file()]
    assert left == []
    assert len(rows(library, "node:Author")) == 12
    is_whole(library)


@pytest.mark.parametrize("allow_data_loss", [False, True])
def test_a_name_used_again_is_a_new_thing(library: og.Graph, allow_data_loss: bool) -> None:
    edge = "edge Wrote: Author -> Paper { pos: I32? }\n"
    version = library.snapshot().manifest_version
    for _ in range(3):
        library.apply_schema(changed((edge, "")), allow_data_loss=allow_data_loss)
        library.apply_schema(changed((edge, "edge Wrote: Author -> Paper { since: Date? }\n")))
        assert rows(library, "edge:Wrote") == rows(reopen(library), "edge:Wrote") == []
        library.mutate('query q() { insert Wrote { from: "a001", to: "p000" } }')
        assert [row["src"] for row in rows(reopen(library), "edge:Wrote")] == ["a001"]
    if not allow_data_loss:
        assert len(rows(library, "edge:Wrote", version=version)) == 6
    is_whole(library)


def test_a_type_can_be_renamed_away_and_back(library: og.Graph) -> None:
    before = rows(library, "node:Author")
    back = changed(
        ("node Author {", 'node Author @rename_from("Writer") {'),
        ("    name: String\n", '    name: String @rename_from("full_name")\n'),
    )

    library.apply_schema(RENAMED)
    library.apply_schema(back)

    assert rows(library, "node:Author") == before
    is_whole(library)


def test_a_past_version_is_read_in_the_columns_of_today(library: og.Graph) -> None:
    """What was not there then is null; a type that was not there has no rows."""
    version = library.snapshot().manifest_version
    library.apply_schema(
        changed(("node Paper { doi: String @key", "node Paper { doi: String @key  pages: I32?"))
        + "node Venue { name: String @key }"
    )
    library.mutate('query q() { update Paper set { pages: 7 } where doi = "p000" }')

    assert library.query(
        "query q() { match { $p: Paper } return { $p.doi, $p.pages } }", version=version
    ).rows() == [{"p.doi": "p000", "p.pages": None}]
    assert (
        library.query(
            "query q() { match { $p: Paper  $p.pages = 7 } return { $p.doi } }", version=version
        ).rows()
        == []
    )
    assert library.query(
        "query q() { match { $p: Paper } return { count($p.pages) as n, sum($p.year) as s } }",
        version=version,
    ).rows() == [{"n": 0, "s": 2000.0}]
    venues = "query q() { match { $v: Venue } return { $v.name } }"
    assert library.query(venues, version=version).rows() == []
    assert library.query("query q() { match { $p: Paper } return { $p.pages } }").rows() == [
        {"p.pages": 7}
    ]


# What is refused


def test_an_unsupported_change_says_its_code_and_does_nothing(library: og.Graph) -> None:
    version = library.snapshot().manifest_version

    with pytest.raises(MigrationError) as refused:
        library.apply_schema(changed(("    age: I32?", "    age: [I32]?")))

    assert refused.value.code == "OG-MF-106"
    assert library.snapshot().manifest_version == version
    is_whole(library)


def test_while_a_change_runs_everything_else_that_writes_is_refused(library: og.Graph) -> None:
    other = reopen(library)
    refused: dict[str, str] = {}

    def look() -> None:
        tries: dict[str, Any] = {
            "mutate": lambda: other.mutate('query q() { delete Paper where doi = "p000" }'),
            "load": lambda: fill(other, 100),
            "create": lambda: other.create_branch("review"),
            "ensure": other.ensure_indices,
            "optimize": other.optimize,
            "cleanup": lambda: other.cleanup(keep=1),
            "repair": other.repair,
        }
        for name, run in tries.items():
            with pytest.raises(ConflictError, match="schema change is in progress") as error:
                run()
            refused[name] = str(error.value)
        assert other.branches() == ["main"], "the lock is no branch"
        assert len(other.query("query q() { match { $a: Author } return { $a.slug } }")) == 12

    def look_from_outside() -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(look).result()

    with arm_failpoints({Failpoint.SCHEMA_APPLY_BEFORE_STAGING_WRITE: look_from_outside}):
        library.apply_schema(RENAMED)

    assert len(refused) == 7
    is_whole(library)


def test_the_lock_of_a_dead_schema_change_is_removed(library: og.Graph) -> None:
    version = inside(library).store.manifest.latest_version()
    inside(library).store.manifest.create_branch(SCHEMA_APPLY_LOCK, source=None, version=version)

    fill(library, 100)

    is_whole(library)


def test_drift_is_refused_before_anything_moves(library: og.Graph) -> None:
    dataset(library, "node:Author").delete("slug = 'nothing'")

    with pytest.raises(ConflictError, match="run `omnigraph repair`"):
        library.apply_schema(RENAMED)

    assert sidecars(library) == []
    assert library.schema == SCHEMA


# Other handles


def test_another_handle_goes_on_with_the_new_schema(library: og.Graph) -> None:
    other = reopen(library)
    reader = reopen(library, mode="r")
    assert "name" in rows(other, "node:Author")[0]

    library.apply_schema(RENAMED)

    query = "query q() { match { $w: Writer } return { $w.full_name } }"
    assert len(other.query(query)) == len(reader.query(query)) == 12
    other.mutate('query q() { insert Writer { slug: "x", full_name: "X" } }')
    assert len(library.query(query)) == 13


def test_a_write_that_was_checked_before_the_change_is_checked_again(library: og.Graph) -> None:
    """The writer is past its checks when the schema changes under it."""
    other = reopen(library)
    changed_once: list[bool] = []

    def change() -> None:
        if not changed_once:
            changed_once.append(True)
            other.apply_schema(changed(("    age: I32?\n", "")))

    source = 'query q() { update Author set { age: 7 } where slug = "a001" }'
    with (
        arm_failpoints(
            {Failpoint.COMMIT_AFTER_STAGE: "count", Failpoint.RECOVERY_SIDECAR_LIST: change}
        ),
        pytest.raises(OmnigraphError, match="age"),
    ):
        library.mutate(source)

    assert "age" not in rows(library, "node:Author")[0]
    is_whole(library)


@pytest.mark.parametrize("moved", [0, 1, 2])
def test_between_publish_and_files_readers_see_the_new_schema(
    library: og.Graph, moved: int
) -> None:
    """The change dies after its publish, with none, one or two of its files in place."""
    other = reopen(library)
    point = Failpoint.SCHEMA_APPLY_AFTER_MANIFEST_COMMIT
    nth = "raise"
    if moved:
        point, nth = Failpoint.SCHEMA_APPLY_AFTER_FILE_PROMOTED, f"raise@{moved}"
    with arm_failpoints({point: nth}), pytest.raises(FailpointError):
        library.apply_schema(RENAMED)

    query = "query q() { match { $w: Writer } return { $w.full_name } }"
    assert len(other.query(query)) == len(reopen(library, mode="r").query(query)) == 12
    assert len(staging_files(library)) == 3 - moved
    is_whole(reopen(library))
    assert len(other.query(query)) == 12


# Recovery in one process


@pytest.mark.accepts("S-100")
@pytest.mark.parametrize("by", ["open", "refresh", "apply"])
def test_without_its_files_it_is_undone(library: og.Graph, by: str) -> None:
    before = {key: rows(library, key) for key in pins(library)}
    point = Failpoint.SCHEMA_APPLY_BEFORE_STAGING_WRITE
    with arm_failpoints({point: "raise"}), pytest.raises(FailpointError):
        library.apply_schema(changed(("    age: I32?\n", "")))

    match by:
        case "open":
            library = reopen(library)
        case "refresh":
            library.refresh()
        case _:
            assert not library.apply_schema(SCHEMA).applied

    assert {key: rows(library, key) for key in pins(library)} == before
    assert [each.kind.value for each in library.recoveries()] == ["RolledBack"]
    assert library.schema == SCHEMA
    is_whole(library)


@pytest.mark.accepts("S-100")
@pytest.mark.parametrize("by", ["open", "refresh", "write"])
def test_with_its_files_it_is_finished(library: og.Graph, by: str) -> None:
    desired = changed(("    age: I32?\n", "    email: String?\n"))
    point = Failpoint.SCHEMA_APPLY_AFTER_STAGING_WRITE
    with arm_failpoints({point: "raise"}), pytest.raises(FailpointError):
        library.apply_schema(desired, actor="ada")

    match by:
        case "open":
            library = reopen(library)
        case "refresh":
            library.refresh()
        case _:
            library.mutate('query q() { insert Author { slug: "z", name: "Z", email: "z@z" } }')

    assert library.schema == desired
    assert "age" not in rows(library, "node:Author")[0]
    (record,) = library.recoveries()
    assert (record.kind.value, record.for_actor) == ("RolledForward", "ada")
    assert "ada" in [commit.actor for commit in library.commits()[:3]]
    is_whole(library)


@pytest.mark.accepts("S-103")
def test_repeated_failures_converge(library: og.Graph) -> None:
    before = rows(library, "node:Author")
    for _ in range(3):
        with (
            arm_failpoints({Failpoint.SCHEMA_APPLY_BEFORE_STAGING_WRITE: "raise"}),
            pytest.raises(FailpointError),
        ):
            library.apply_schema(RENAMED)
        library = reopen(library)
        assert rows(library, "node:Author") == before
        is_whole(library)

    assert library.apply_schema(RENAMED).applied
    assert len(rows(library, "node:Writer")) == 12
    is_whole(library)


@pytest.mark.accepts("S-117")
def test_a_failed_write_is_recovered_before_the_schema_change(library: og.Graph) -> None:
    """The heal at the entry publishes them under their own commit; then the schema changes."""
    point = Failpoint.MUTATION_POST_FINALIZE_PRE_PUBLISHER
    with arm_failpoints({point: "raise"}), pytest.raises(FailpointError):
        library.mutate('query q() { insert Author { slug: "z", name: "Z" } }', actor="zoe")

    library.apply_schema(RENAMED)

    assert "z" in [row["id"] for row in rows(library, "node:Writer")]
    (record,) = library.recoveries()
    assert (record.kind.value, record.for_actor) == ("RolledForward", "zoe")
    assert "zoe" in [commit.actor for commit in library.commits()]
    is_whole(library)
