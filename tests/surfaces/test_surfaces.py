"""One suite for every surface: the same calls have the same results and the same refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.http.serving import ADA, DELETE, GRACE, INSERT, KNOWS, PEOPLE, SCHEMA, UPDATE, ndjson
from tests.surfaces.surfaces import Surface

pytestmark = pytest.mark.slow

ROWS = [{"p.slug": "ada", "p.age": 36}, {"p.slug": "grace", "p.age": 45}]
BOTH = f"{PEOPLE}\n{INSERT}"
EVERY_KIND = """
query kinds($a: I32, $b: [I32], $c: Date?, $d: Bool, $e: F64) {
    match { $p: Person { slug: "ada" } }
    return { $p.name as name, $p.age as age, $p.born as born }
}
"""
SHAPES = """
query shapes(
    $least: I32 = 40, $before: DateTime = now() + days(1), $size: I64 = 10,
    $f: { slug: String? }?, $ids: [String]?, $rows: [String] = []
) {
    match {
        $p: Person
        $p.age >= $least and now() < $before
        $f.slug is null or $p.slug = $f.slug
        $ids is null or $p.slug in $ids
    }
    return { $p.slug as slug, $rows as rows }
    order { slug }
    limit $size
}
"""


def ages(surface: Surface, branch: str = "main") -> dict[str, int | None]:
    rows = surface.query(PEOPLE, branch=branch).json["rows"]
    return {row["p.slug"]: row["p.age"] for row in rows}


def head(surface: Surface, branch: str = "main") -> str:
    found: str = surface.commits(branch).json["commits"][0]["graph_commit_id"]
    return found


# Reads


def test_a_query_answers_with_rows_and_where_they_are_from(standing: Surface) -> None:
    answer = standing.query(PEOPLE).json

    assert answer == {
        "query_name": "people",
        "target": {"branch": "main", "snapshot": None},
        "row_count": 2,
        "columns": ["p.slug", "p.age"],
        "rows": ROWS,
        "graph_commit_id": head(standing),
    }


def test_a_query_of_several_is_picked_by_name(standing: Surface) -> None:
    assert standing.query(BOTH, "people").json["rows"] == ROWS
    standing.query(BOTH).refused(400, "the source declares 2 queries — name one of people, add")
    standing.query(BOTH, "poeple").refused(400, "query 'poeple' not found — did you mean `people`?")


def test_a_branch_and_a_snapshot_are_read_as_they_are(surface: Surface) -> None:
    before = head(surface)
    surface.create_branch("dev")
    surface.mutate(UPDATE, params={"slug": "ada", "age": 1}, branch="dev").done()

    assert ages(surface) == {"ada": 36, "grace": 45}
    assert ages(surface, "dev") == {"ada": 1, "grace": 45}
    old = surface.query(PEOPLE, snapshot=before).json
    assert (old["rows"], old["target"]) == (ROWS, {"branch": None, "snapshot": before})


def test_parameters_of_every_kind_are_taken(standing: Surface) -> None:
    params = {"a": 1, "b": [1, 2], "d": True, "e": 0.5}

    assert standing.query(EVERY_KIND, params=params).json["rows"] == [
        {"name": "Ada", "age": 36, "born": None}
    ]


@pytest.mark.parametrize(
    ("params", "rows"),
    [
        (None, [["grace", 0]]),
        ({"least": 1}, [["ada", 0], ["grace", 0]]),
        ({"least": 1, "f": {"slug": "ada"}, "size": 1}, [["ada", 0]]),
        ({"least": 1, "ids": ["ada"], "rows": ["x", "y"]}, [["ada", 2]]),
    ],
)
def test_defaults_lists_and_objects_are_taken(
    standing: Surface, params: Any, rows: list[Any]
) -> None:
    found = standing.query(SHAPES, params=params).json["rows"]

    assert [[row["slug"], len(row["rows"] or [])] for row in found] == rows


def test_a_field_that_is_not_declared_is_named(standing: Surface) -> None:
    standing.query(SHAPES, params={"f": {"slg": "ada"}}).refused(400, "unknown field 'slg'")


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({}, "parameter 'a' not provided — it is declared as I32"),
        ({"a": None, "b": [], "d": True, "e": 1}, "'a'"),
        ({"a": "x", "b": [], "d": True, "e": 1}, "'a'"),
        ({"a": 2**31, "b": [], "d": True, "e": 1}, "'a'"),
        ({"a": 1, "b": 1, "d": True, "e": 1}, "'b'"),
        ({"a": 1, "b": [], "d": 1, "e": 1}, "'d'"),
    ],
)
def test_a_bad_parameter_is_named(standing: Surface, params: Any, text: str) -> None:
    standing.query(EVERY_KIND, params=params).refused(400, text)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("query", "parse error: "),
        ("query q() { match { $p: Persn } return { $p.slug } }", "T1: "),
        ("query q() { match { $p: Person } return { $p.nmae } }", "did you mean `name`?"),
        (DELETE, "is a mutation and was asked to run as a read"),
        ("// none", "no query"),
    ],
)
def test_a_query_that_cannot_run_says_why(standing: Surface, source: str, text: str) -> None:
    standing.query(source, params={"slug": "x"}).refused(400, text)


def test_what_is_not_there_cannot_be_read(standing: Surface) -> None:
    standing.query(PEOPLE, branch="nope").refused(404, "branch 'nope' not found")
    standing.query(PEOPLE, snapshot="nope").refused(404, "commit 'nope' not found")
    standing.snapshot("nope").refused(404, "revision 'nope' not found")
    standing.commits("nope").refused(404, "revision 'nope' not found")
    standing.commit("nope").refused(404, "commit 'nope' not found")
    standing.export("nope").refused(404, "branch 'nope' not found")


# Mutations


def test_a_mutation_is_one_commit_that_it_names(surface: Surface) -> None:
    report = surface.mutate(INSERT, params={"slug": "lin", "age": 30}).json

    assert (report["branch"], report["query_name"]) == ("main", "add")
    assert (report["affected_nodes"], report["affected_edges"]) == (1, 0)
    assert report["actor_id"] is None
    assert report["commit"] == surface.commits().json["commits"][0]
    assert ages(surface) == {"ada": 36, "grace": 45, "lin": 30}


def test_deleting_a_node_deletes_its_edges(surface: Surface) -> None:
    report = surface.mutate(DELETE, params={"slug": "ada"}).json

    assert (report["affected_nodes"], report["affected_edges"]) == (1, 1)
    assert [each for each in surface.export().json if "edge" in each] == []


def test_a_mutation_that_matches_nothing_makes_no_commit(standing: Surface) -> None:
    before = head(standing)

    report = standing.mutate(DELETE, params={"slug": "nobody"}).json

    assert (report["affected_nodes"], report["commit"]) == (0, None)
    assert head(standing) == before


def test_inserts_and_deletes_do_not_mix(standing: Surface) -> None:
    mixed = 'query both() { insert Person { slug: "x" } delete Person where slug = "ada" }'

    standing.mutate(mixed).refused(
        400,
        "mutation 'both' on the same query mixes inserts/updates and deletes; split into "
        "separate mutations: (1) inserts and updates, then (2) deletes",
    )

    assert ages(standing) == {"ada": 36, "grace": 45}


def test_a_mutation_that_cannot_run_changes_nothing(standing: Surface) -> None:
    before = head(standing)

    standing.mutate(PEOPLE).refused(400, "is a read and was asked to run as a mutation")
    standing.mutate(INSERT, params={}).refused(400, "parameter 'slug' not provided")
    standing.mutate(INSERT, params={"slug": "x"}, branch="nope").refused(
        404, "branch 'nope' not found"
    )
    knows = 'query k() { insert Knows { from: "ada", to: "nobody" } }'
    standing.mutate(knows).refused(400, "nobody")

    assert head(standing) == before


def test_a_condition_holds_or_nothing_happens(surface: Surface) -> None:
    first = head(surface)
    grow = {"slug": "ada", "age": 37}

    surface.mutate(UPDATE, params=grow, if_commit=first).done()
    lost = surface.mutate(UPDATE, params={**grow, "age": 99}, if_commit=first).refused(
        412, f"precondition failed: expected head {first} but it is {head(surface)}"
    )

    assert ages(surface)["ada"] == 37
    if lost.details:
        assert lost.details["precondition_failure"] == {
            "expected": first,
            "actual": head(surface),
        }


# Loads


def test_a_merge_load_inserts_and_replaces(surface: Surface) -> None:
    older = {"type": "Person", "data": {"slug": "ada", "age": 40}}
    new = {"type": "Person", "data": {"slug": "lin"}}

    report = surface.load(ndjson([older, new]), "merge").json

    assert report["tables"] == [{"table_key": "node:Person", "rows_loaded": 2}]
    assert (report["nodes_loaded"], report["edges_loaded"], report["total_entities"]) == (2, 0, 2)
    assert (report["branch"], report["mode"], report["branch_created"]) == ("main", "merge", False)
    assert report["commit"]["graph_commit_id"] == head(surface)
    assert ages(surface) == {"ada": 40, "grace": 45, "lin": None}


def test_an_overwrite_replaces_the_types_it_meets(surface: Surface) -> None:
    surface.load(ndjson([ADA, GRACE, KNOWS]), "overwrite").done()
    surface.load(ndjson([{"type": "Company", "data": {"slug": "new"}}]), "overwrite").done()

    assert ages(surface) == {"ada": 36, "grace": 45}
    companies = [each["data"]["slug"] for each in surface.export(types=["Company"]).json]
    assert companies == ["new"]


def test_an_append_never_replaces(standing: Surface) -> None:
    refused = standing.load(ndjson([ADA]), "append").refused(
        409, "key conflict: 'ada' already exists in 'node:Person'"
    )

    assert ages(standing) == {"ada": 36, "grace": 45}
    assert refused.details.get("code", "conflict") == "conflict"


def test_a_load_needs_its_branch_or_a_base_for_it(surface: Surface) -> None:
    data = ndjson([{"type": "Person", "data": {"slug": "lin"}}])

    surface.load(data, "merge", branch="dev").refused(404, "branch 'dev' not found")
    assert surface.branches().json == {"branches": ["main"]}
    report = surface.load(data, "merge", branch="dev", base="main").json

    assert (report["branch"], report["base_branch"], report["branch_created"]) == (
        "dev",
        "main",
        True,
    )
    assert set(ages(surface, "dev")) - set(ages(surface)) == {"lin"}


@pytest.mark.parametrize(
    ("record", "text"),
    [
        ({"type": "Persn", "data": {"slug": "x"}}, 'unknown node type "Persn"'),
        ({"type": "Person", "data": {"name": "x"}}, "data:2"),
        ({"type": "Person", "data": {"slug": "x", "age": "old"}}, "data:2"),
        ({"type": "Person", "data": {"slug": "x", "born": "soon"}}, "data:2"),
        ({"edge": "Knows", "from": "ada", "to": "nobody"}, "nobody"),
        ({"nothing": 1}, "2"),
    ],
)
def test_a_bad_record_is_named_and_nothing_is_loaded(
    standing: Surface, record: dict[str, Any], text: str
) -> None:
    good = {"type": "Person", "data": {"slug": "lin"}}

    standing.load(ndjson([good, record]), "merge").refused(400, text)

    assert ages(standing) == {"ada": 36, "grace": 45}


def test_an_unknown_load_mode_is_refused(standing: Surface) -> None:
    answer = standing.load(ndjson([ADA]), "replace")

    assert answer.error is not None
    assert all(mode in answer.error for mode in ("overwrite", "append", "merge"))


# Exports


def test_an_export_loads_back_to_the_same(surface: Surface) -> None:
    before = surface.export().json

    surface.load("".join(f"{json.dumps(each)}\n" for each in before), "overwrite").done()

    assert surface.export().json == before
    assert [each.get("edge") or each.get("type") for each in before] == [
        "Knows",
        "Company",
        "Person",
        "Person",
    ]


def test_an_export_may_be_of_some_types(standing: Surface) -> None:
    assert [each["data"]["slug"] for each in standing.export(types=["Company"]).json] == ["acme"]
    standing.export(types=["Persn"]).refused(400, "Persn")


# Branches


def test_branches_come_and_go(surface: Surface) -> None:
    made = surface.create_branch("review/ada").json

    assert (made["name"], made["from"], made["actor_id"]) == ("review/ada", "main", None)
    assert surface.branches().json == {"branches": ["main", "review/ada"]}
    assert surface.delete_branch("review/ada").json["name"] == "review/ada"
    assert surface.branches().json == {"branches": ["main"]}


def test_a_commit_keeps_the_message_and_metadata_of_its_writer(surface: Surface) -> None:
    person = {"slug": "lin", "age": 30}

    made = surface.mutate(INSERT, params=person, message="Hire Lin", meta="ticket=T=1").json

    commit = made["commit"]
    assert (commit["message"], commit["metadata"]) == ("Hire Lin", {"ticket": "T=1"})
    assert surface.commit(commit["graph_commit_id"]).json == commit
    assert surface.log(limit=1).json["commits"] == [commit]
    older = surface.log().json["commits"][-1]
    assert (older["message"], older["metadata"]) == (None, {})


def test_a_note_that_is_too_long_writes_nothing(standing: Surface) -> None:
    before = standing.commits().json
    long = "x" * 8_193

    standing.mutate(INSERT, params={"slug": "x"}, message=long).refused(413, "limit is 8192")
    standing.mutate(INSERT, params={"slug": "x"}, message=" ").refused(400, "message is empty")

    assert standing.commits().json == before


def test_checks_are_applied_run_and_hold_merges_back(surface: Surface, tmp_path: Path) -> None:
    folder = tmp_path / "checks"
    folder.mkdir()
    (folder / "people.gq").write_text(
        'query strangers() { match { $p: Person { slug: "stranger" } } return { $p.slug } }'
    )

    done = surface.apply_checks(folder).json
    surface.create_branch("review")
    surface.mutate(INSERT, params={"slug": "stranger"}, branch="review").done()

    assert (done["added"], done["removed"]) == (["strangers"], [])
    assert surface.apply_checks(folder).json["commit_id"] is None
    assert [each["name"] for each in surface.checks().json["checks"]] == ["strangers"]
    assert surface.run_checks().json == {"failures": []}
    surface.merge("review").refused(409, "'strangers' returns 1 rows instead of no rows")


def test_tags_come_and_go_and_branches_start_there(surface: Surface) -> None:
    made = surface.create_tag("team/v1", message="first").json
    again = surface.create_tag("team/v1").json

    assert made == again
    assert (made["name"], made["branch"], made["message"]) == ("team/v1", "main", "first")
    assert surface.tags().json == {"tags": [made]}
    assert surface.create_branch("past", "tag:team/v1").json["from"] == "tag:team/v1"
    surface.create_branch("other", "team/v1~99").refused(404, "before")
    surface.create_tag("team/v1", "nope").refused(404, "revision 'nope' not found")
    surface.create_tag("a b").refused(400, "is not a tag name")
    assert surface.delete_tag("team/v1").json["name"] == "team/v1"
    surface.delete_tag("team/v1").refused(404, "tag 'team/v1' not found")
    assert surface.tags().json == {"tags": []}


def test_a_branch_that_cannot_be_made_says_why(surface: Surface) -> None:
    surface.create_branch("dev").done()

    surface.create_branch("main").refused(400, "main")
    surface.create_branch("../out").refused(400, "is not a branch name")
    surface.create_branch("__schema_apply_lock__").refused(400, "is a name of the engine")
    surface.create_branch("__mine").refused(400, "is a name of the engine")
    surface.create_branch("new", "nope").refused(404, "revision 'nope' not found")
    surface.create_branch("dev").refused(409, "branch 'dev' already exists")
    surface.create_branch("dev/x").refused(409, "dev")

    assert set(surface.branches().json["branches"]) == {"main", "dev"}


def test_a_branch_goes_back_and_says_what_it_drops(surface: Surface) -> None:
    surface.create_branch("dev").done()
    before = surface.export("dev").json
    for slug in ("kim", "lin"):
        surface.mutate(INSERT, params={"slug": slug, "age": 3}, branch="dev").done()

    previewed = surface.reset_branch("dev", "dev~2", preview=True).json
    done = surface.reset_branch("dev", "dev~2").json

    assert (done["branch"], done["commits_dropped"], done["is_preview"]) == ("dev", 2, False)
    assert {**previewed, "is_preview": False} == done
    assert surface.export("dev").json == before
    surface.create_branch("kid", "dev").done()
    surface.mutate(INSERT, params={"slug": "kim", "age": 3}, branch="kid").done()
    surface.merge("kid", "dev").done()
    surface.reset_branch("kid", "kid~1").refused(409, "branch 'kid' is in use: 'dev'")
    surface.reset_branch("main", "main~1").refused(400, "'main' cannot be reset")
    surface.reset_branch("dev", "nope").refused(404, "nope")


def test_a_branch_that_cannot_go_says_why(standing: Surface) -> None:
    standing.delete_branch("main").refused(400, "cannot delete branch 'main'")
    standing.delete_branch("nope").refused(404, "branch 'nope' not found")


def test_a_merge_brings_a_branch_in_and_again_changes_nothing(surface: Surface) -> None:
    surface.create_branch("dev").done()
    surface.mutate(INSERT, params={"slug": "lin", "age": 30}, branch="dev").done()

    merged = surface.merge("dev").json
    again = surface.merge("dev").json

    assert (merged["source"], merged["target"]) == ("dev", "main")
    assert merged["outcome"] == "fast_forward"
    assert again["outcome"] == "already_up_to_date"
    assert ages(surface)["lin"] == 30


def test_both_sides_of_a_merge_are_kept(surface: Surface) -> None:
    surface.create_branch("dev").done()
    surface.mutate(INSERT, params={"slug": "lin", "age": 30}, branch="dev").done()
    surface.mutate(UPDATE, params={"slug": "ada", "age": 37}).done()

    merged = surface.merge("dev", delete=True).json

    assert (merged["outcome"], merged["branch_deleted"]) == ("merged", True)
    assert ages(surface) == {"ada": 37, "grace": 45, "lin": 30}
    assert surface.branches().json == {"branches": ["main"]}
    assert surface.commits().json["commits"][0]["merged_parent_commit_id"] is not None


def test_a_conflict_is_reported_and_the_target_is_unchanged(surface: Surface) -> None:
    surface.create_branch("dev").done()
    surface.mutate(UPDATE, params={"slug": "ada", "age": 1}, branch="dev").done()
    surface.mutate(UPDATE, params={"slug": "ada", "age": 2}).done()
    before = head(surface)

    refused = surface.merge("dev").refused(
        409, "merge conflicts: node:Person 'ada' divergent_update"
    )

    assert (head(surface), ages(surface)["ada"]) == (before, 2)
    if refused.details:
        [conflict] = refused.details["merge_conflicts"]
        assert (conflict["table_key"], conflict["row_id"]) == ("node:Person", "ada")
        assert (conflict["kind"], conflict["entity_id"]) == ("divergent_update", "ada")
        assert (conflict["ours"]["age"], conflict["theirs"]["age"]) == (2, 1)


def test_a_merge_is_previewed_then_resolved_choice_by_choice(surface: Surface) -> None:
    """The whole review of a branch, without the disk of the graph."""
    surface.create_branch("dev").done()
    surface.mutate(UPDATE, params={"slug": "ada", "age": 1}, branch="dev").done()
    surface.mutate(INSERT, params={"slug": "lin", "age": 3}, branch="dev").done()
    surface.mutate(UPDATE, params={"slug": "ada", "age": 2}).done()
    before = head(surface)

    differs = surface.diff("main", "dev").json
    lines = surface.diff_lines("main", "dev").json
    page = surface.diff_html("main", "dev").json
    conflicting = surface.preview_merge("dev").json
    settled = surface.preview_merge("dev", resolve="theirs").json

    assert differs["stats"] == {
        "inserts": 1,
        "updates": 1,
        "deletes": 0,
        "types_affected": ["Person"],
    }
    assert lines == differs["changes"]
    updated = next(each for each in lines if each["op"] == "update")
    assert (updated["changed"], updated["before"]["age"], updated["after"]["age"]) == (
        ["age"],
        2,
        1,
    )
    assert "<html" in page
    assert "lin" in page
    [conflict] = conflicting["conflicts"]
    sides = conflict["base"]["age"], conflict["ours"]["age"], conflict["theirs"]["age"]
    assert (conflict["entity_id"], sides) == ("ada", (36, 2, 1))
    assert settled["conflicts"] == []
    assert settled["changes"]["stats"]["updates"] == 1
    assert (head(surface), ages(surface)["ada"]) == (before, 2), "a preview writes nothing"

    surface.merge_resolved("dev", [{"table_key": "node:Person"}]).refused(
        400, "cannot resolve with"
    )
    choice = {"table_key": "node:Person", "row_id": "ada", "take": {"age": "mine"}}
    surface.merge_resolved("dev", [choice]).refused(400, "cannot resolve with 'mine'")
    choice["take"] = {"age": "theirs"}
    merged = surface.merge_resolved("dev", [choice]).json
    assert merged["outcome"] == "merged"
    assert ages(surface) == {"ada": 1, "grace": 45, "lin": 3}
    drawn = surface.log().json["commits"]
    assert drawn[0]["merged_parent_commit_id"] is not None
    assert "dev" in {each["manifest_branch"] for each in drawn}
    assert len(surface.log(limit=1).json["commits"]) == 1
    history = surface.history("Person", "ada").json
    assert history["changes"][0]["commit"]["manifest_branch"] == "dev"
    assert history["changes"][0]["through"] == drawn[0]["graph_commit_id"]
    age = surface.blame("Person", "ada").json["properties"]["age"]
    assert (age["value"], age["through"]) == (1, drawn[0]["graph_commit_id"])
    [lost] = age["lost"]
    told = lost["value"], lost["kept"], lost["branch"], lost["merge_id"]
    assert told == (2, "theirs", "main", drawn[0]["graph_commit_id"])


def test_a_log_tells_the_commits_that_changed_a_type_or_an_entity_and_how(surface: Surface) -> None:
    surface.mutate(INSERT, params={"slug": "lin", "age": 3}, message="Hire Lin").done()
    surface.create_branch("dev").done()
    grown = {"slug": "ada", "age": 40}
    made = surface.mutate(UPDATE, params=grown, branch="dev", message="A birthday").json["commit"]
    acme = ndjson([{"type": "Company", "data": {"slug": "apex"}}])
    surface.load(acme, "append").done()
    surface.merge("dev").done()

    def ids(**asked: Any) -> list[str]:
        return [each["graph_commit_id"] for each in surface.log(**asked).json["commits"]]

    merge, company, update, insert, load, _ = ids()
    assert update == made["graph_commit_id"]
    assert ids(type="Person") == [update, insert, load], "not the merge: it left what dev has"
    assert ids(type="Person", limit=1) == [update]
    assert ids(type="Person", after=update) == [insert, load]
    assert ids(type="Person", id="ada") == [update, load]
    assert ids(type="Company") == [company, load]
    assert ids(message="BIRTHDAY") == [update]
    assert ids(actor="nobody") == []
    on_line = surface.commits(type="Person").json["commits"]
    assert [each["graph_commit_id"] for each in on_line] == [merge, insert, load]
    recent = surface.log(since="2000-01-01T00:00:00Z", until="2001-01-01T00:00:00Z").json
    assert recent == {"commits": []}

    [patch] = surface.log(type="Person", detail="patch", limit=1).json["commits"]
    [record] = patch["changes"]
    values = [record[side]["properties"]["age"] for side in ("before", "after")]
    assert (record["id"], record["op"], values) == ("ada", "update", [36, 40])
    counts = {"table_key": "node:Person", "inserts": 0, "updates": 1, "deletes": 0}
    assert (patch["stat"], patch["is_cut"], patch["message"]) == ([counts], False, "A birthday")
    stats = surface.commits(detail="stat", limit=5).json["commits"]
    assert stats[0]["stat"] == [counts], "the merge, against its first parent"
    cut = surface.log(detail="patch", changes=2).json["commits"][-2]
    assert (cut["graph_commit_id"], len(cut["changes"]), cut["is_cut"]) == (load, 2, True)


def test_bisect_finds_the_commit_that_broke_an_assertion(surface: Surface) -> None:
    wrong = "query wrong() { match { $p: Person  $p.age > 100 } return { $p.slug } }"
    good = surface.log(limit=1).json["commits"][0]["graph_commit_id"]
    made = [
        surface.mutate(UPDATE, params={"slug": "ada", "age": age}).json["commit"]
        for age in (40, 50, 140, 150, 160)
    ]

    assert surface.bisect(wrong, good).json == made[2]
    surface.bisect(wrong, "main", "main~1").refused(400, "is not before")
    surface.bisect(wrong, "main~1").refused(400, "the check does not hold at")
    surface.bisect(wrong, good, "main~4").refused(400, "the check holds at")
    surface.bisect(wrong, "nope").refused(404, "nope")
    surface.bisect("query q() {", good).refused(400, "expected")


def test_a_log_that_asks_for_what_cannot_be_is_refused(standing: Surface) -> None:
    standing.log(type="Nope").refused(400, "Nope")
    standing.log(id="ada").refused(400, "`id` is given without `type`")
    standing.log(type="Person", id="nope").refused(404, "was never on branch 'main'")
    standing.log(after="nope").refused(404, "nope")
    standing.log(since="tomorrow").refused(400, "tomorrow")
    standing.commits("nope", type="Person").refused(404, "revision 'nope' not found")


def test_comparisons_of_what_is_not_there_are_refused(standing: Surface) -> None:
    standing.diff("nope").refused(404, "revision 'nope' not found")
    standing.diff("main", types=["Nope"]).refused(400, "there is no type 'Nope'")
    standing.preview_merge("nope").refused(404, "branch 'nope' not found")
    standing.log("nope").refused(404, "branch 'nope' not found")
    for ask in (standing.history, standing.blame):
        ask("Person", "nope").refused(404, "node:Person 'nope' was never on branch 'main'")
        ask("Nope", "ada").refused(400, "unknown type 'Nope'")
        ask("Person", "ada", "nope").refused(404, "branch 'nope' not found")


def test_a_read_is_explained(standing: Surface) -> None:
    planned = standing.explain(PEOPLE).json
    analyzed = standing.explain(PEOPLE, analyze=True).json

    assert "Person" in planned["plan"]
    assert planned["stages"] == []
    assert analyzed["row_count"] == 2
    assert analyzed["stages"]
    standing.explain("query q() {").refused(400, "parse error")


def test_a_merge_of_nothing_says_so(surface: Surface) -> None:
    surface.merge("nope").refused(404, "branch 'nope' not found")
    surface.create_branch("dev").done()
    surface.merge("dev", "nope").refused(404, "branch 'nope' not found")


# History and schema


def test_commits_are_listed_newest_first_and_shown_one_by_one(surface: Surface) -> None:
    surface.mutate(UPDATE, params={"slug": "ada", "age": 1}).done()

    listed = surface.commits().json["commits"]

    versions = [each["manifest_version"] for each in listed]
    assert versions == sorted(versions, reverse=True)
    assert listed[0]["parent_commit_id"] == listed[1]["graph_commit_id"]
    for each in listed:
        assert surface.commit(each["graph_commit_id"]).json == each


def test_a_snapshot_pins_every_table_in_both_vocabularies(standing: Surface) -> None:
    shown = standing.snapshot().json

    counts = {each["table_key"]: each["row_count"] for each in shown["tables"]}
    assert counts == {"edge:Knows": 1, "edge:WorksAt": 0, "node:Company": 1, "node:Person": 2}
    assert list(counts) == sorted(counts)
    assert [each["entity_count"] for each in shown["datasets"]] == list(counts.values())
    assert (shown["branch"], shown["graph_branch"]) == ("main", "main")


def test_the_schema_is_as_it_was_written(standing: Surface) -> None:
    assert standing.schema().json == {"schema_source": SCHEMA}


def test_a_schema_change_is_applied_step_by_step(surface: Surface) -> None:
    wider = SCHEMA.replace("age: I32?", "age: I32?  mail: String?")

    applied = surface.apply_schema(wider).json
    again = surface.apply_schema(wider).json

    assert (applied["supported"], applied["applied"], applied["step_count"]) == (True, True, 1)
    assert applied["steps"][0]["kind"] == "add_property"
    assert applied["manifest_version"] == surface.snapshot().json["manifest_version"]
    assert (again["applied"], again["steps"]) == (False, [])
    assert surface.schema().json == {"schema_source": wider}


def test_a_schema_change_that_cannot_be_says_why(surface: Surface) -> None:
    surface.apply_schema(SCHEMA.replace("age: I32?", "age: String?")).refused(400, "[OG-")
    surface.apply_schema("node person { }").refused(400, "parse error: ")
    surface.create_branch("dev").done()
    surface.apply_schema(SCHEMA.replace("  born: Date?", ""), allow_data_loss=True).refused(
        409, "branch 'dev' has rows that this change would remove for good"
    )
    surface.apply_schema(SCHEMA, branch="nope").refused(404, "nope")

    assert surface.schema().json == {"schema_source": SCHEMA}


def test_a_branch_has_a_schema_of_its_own(surface: Surface) -> None:
    wider = SCHEMA.replace("age: I32?", "age: I32?  mail: String?")
    surface.create_branch("dev").done()

    assert surface.apply_schema(wider, branch="dev").json["applied"]

    assert surface.schema("dev").json == {"schema_source": wider}
    assert surface.schema().json == surface.schema("main").json == {"schema_source": SCHEMA}
    surface.schema("nope").refused(404, "nope")


def test_a_drop_says_what_it_takes(surface: Surface) -> None:
    smaller = SCHEMA.replace("  born: Date?", "")

    dropped = surface.apply_schema(smaller, allow_data_loss=True).json

    assert [(each["kind"], each["mode"]) for each in dropped["steps"]] == [
        ("drop_property", "hard")
    ]


def test_a_snapshot_is_read_in_its_own_schema_or_in_that_of_today(surface: Surface) -> None:
    before = head(surface)
    surface.apply_schema(SCHEMA.replace("age: I32?", 'years: I32? @rename_from("age")')).done()
    today = PEOPLE.replace("$p.age", "$p.years")

    assert surface.query(PEOPLE, snapshot=before).json["rows"] == ROWS
    assert surface.query(today, snapshot=before).json["rows"][0] == {"p.slug": "ada", "p.years": 36}
    assert surface.query(today, snapshot=before, schema_of="current").json["row_count"] == 2
    surface.query(PEOPLE, snapshot=before, schema_of="current").refused(400, "no property `age`")


def test_upkeep_that_makes_no_sense_is_refused_in_the_same_words(standing: Surface) -> None:
    standing.upkeep("ensure_indices", branch="nope").refused(404, "branch 'nope' not found")
    standing.upkeep("cleanup", older_than="soon").refused(400, "soon")
