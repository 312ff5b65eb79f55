"""Loading: every shape of input, every mode, every engine; one commit or nothing."""

from __future__ import annotations

import base64
import gzip
import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequestError, BranchNotFound, KeyConflict
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from omnigraph.write.bad_rows import BadRowsError
from tests.pipeline.conftest import Loads, heads_of, knows, person, unclaimed_files


def lines(*records: Any) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def rates(source: str, target: str, stars: int) -> dict[str, Any]:
    return {"edge": "Rates", "from": source, "to": target, "data": {"stars": stars}}


PEOPLE = [person(f"p{number}", age=number) for number in range(9)]
NEWCOMERS = [person(f"new{number}") for number in range(9)]
RING = [knows(f"p{number}", f"p{(number + 1) % 9}") for number in range(9)]


# Shapes of input


@pytest.mark.accepts("S-056", "S-057", "S-058")
def test_records_may_come_in_any_order_among_comments_and_blank_lines(loads: Loads) -> None:
    """Edges may stand before their nodes; `//` lines and blank lines are nothing."""
    text = lines(knows("ada", "lin", since="2020-02-03")) + "\n// people\n  // more\n"
    text += lines(person("ada", age=36), person("lin"))

    result = loads.load(text, mode="overwrite")

    assert result.tables == {"edge:Knows": 1, "node:Person": 2}
    assert loads.ids("Person") == ["ada", "lin"]
    (edge,) = loads.rows("Knows")
    assert (edge["src"], edge["dst"], str(edge["since"])) == ("ada", "lin", "2020-02-03")


@pytest.mark.parametrize("name", ["plain.jsonl", "plain.ndjson", "plain.json", "packed.jsonl.gz"])
def test_a_file_is_read_whatever_it_is_called(loads: Loads, name: str) -> None:
    text = lines(*PEOPLE, *RING).encode()
    path = loads.file(name, gzip.compress(text) if name.endswith(".gz") else text)

    result = loads.load(path)

    assert result.tables == {"edge:Knows": 9, "node:Person": 9}
    assert {row["name"]: row["age"] for row in loads.rows("Person")} == {
        f"p{number}": number for number in range(9)
    }


@pytest.mark.parametrize("shape", ["pretty", "array", "pretty array", "side by side", "gz pretty"])
def test_records_need_not_keep_to_lines(loads: Loads, shape: str) -> None:
    """Pretty-printed records, arrays of records, several records on a line."""
    records = [*PEOPLE, *RING]
    match shape:
        case "array":
            text = json.dumps(records)
        case "pretty array":
            text = json.dumps(records, indent=2)
        case "side by side":
            text = " ".join(json.dumps(record) for record in records)
        case _:
            text = "\n".join(json.dumps(record, indent=2) for record in records)
    is_packed = shape.startswith("gz")
    data = gzip.compress(text.encode()) if is_packed else text.encode()
    path = loads.file("data.json.gz" if is_packed else "data.json", data)

    result = loads.load(path)

    assert result.tables == {"edge:Knows": 9, "node:Person": 9}


def test_a_pretty_record_in_the_middle_of_lines_is_found(loads: Loads) -> None:
    """A file that starts with a record a line may go on otherwise, across any range."""
    text = lines(*PEOPLE[:5]) + json.dumps(PEOPLE[5], indent=4) + "\n" + lines(*PEOPLE[6:])
    path = loads.file("mixed.jsonl", text)

    assert loads.load(path).tables == {"node:Person": 9}


def test_several_files_are_one_load(loads: Loads) -> None:
    for number in range(3):
        loads.file(f"part{number}.jsonl", lines(*PEOPLE[number * 3 : number * 3 + 3]))
    edges = loads.file("ring.json", json.dumps(RING))
    before = loads.graph.snapshot().manifest_version

    by_glob = loads.load(str(loads.directory / "part*.jsonl"))
    by_list = loads.load([edges])

    assert by_glob.tables == {"node:Person": 9}
    assert by_list.tables == {"edge:Knows": 9}
    assert loads.graph.snapshot().manifest_version == before + 2


def test_line_ends_and_byte_order_marks_of_other_systems_are_fine(loads: Loads) -> None:
    text = lines(*PEOPLE).replace("\n", "\r\n")
    path = loads.file("windows.jsonl", b"\xef\xbb\xbf" + text.encode())

    assert loads.load(path).tables == {"node:Person": 9}


def test_an_iterable_of_records_is_an_input(loads: Loads) -> None:
    assert loads.load(iter([*PEOPLE, *RING])).tables == {"edge:Knows": 9, "node:Person": 9}


def test_nothing_to_load_makes_no_commit(loads: Loads) -> None:
    before = loads.graph.snapshot().manifest_version

    assert loads.load("").commit_id is None
    assert loads.load([]).commit_id is None
    assert loads.load("// nothing here\n").tables == {}
    assert loads.graph.snapshot().manifest_version == before


def test_unknown_members_of_the_envelope_are_refused_and_data_may_be_missing(loads: Loads) -> None:
    flat = lines({"type": "Team", "data": {"name": "a"}, "x": 1}) + lines(person("p"))
    with pytest.raises(BadRowsError, match='no member "x" — properties belong under `data`'):
        loads.load(flat)
    loads.load(flat, ignore_members=True)
    loads.load(lines({"edge": "memberof", "from": "p", "to": "a"}))

    assert [(row["src"], row["dst"]) for row in loads.rows("MemberOf")] == [("p", "a")]


@pytest.mark.accepts("S-060")
def test_a_blob_is_base64_and_bad_base64_is_named(loads: Loads) -> None:
    photo = base64.b64encode(b"\x00photo\xff").decode()
    loads.load(lines(person("ada", photo=f"base64:{photo}"), person("lin", photo=None)))

    with pytest.raises(BadRowsError, match="invalid base64 payload"):
        loads.load(lines(person("bob", photo="base64:@@@")))

    assert {row["id"]: row["photo"] for row in loads.rows("Person")} == {
        "ada": b"\x00photo\xff",
        "lin": None,
    }


def test_a_file_that_is_not_there_says_so(loads: Loads) -> None:
    with pytest.raises(BadRequestError, match=r"absent.jsonl': no such file"):
        loads.load(loads.directory / "absent.jsonl")


def test_what_is_no_regular_file_is_refused(loads: Loads) -> None:
    """A device has no end and no size, and a pipe can be read only once."""
    pipe = loads.directory / "pipe.jsonl"
    os.mkfifo(pipe)
    empty = loads.directory / "empty"
    empty.mkdir()

    for path, reason in (
        ("/dev/zero", "it is a device"),
        ("/dev/null", "it is a device"),
        (pipe, "it is a pipe,"),
        (empty, "it is a directory without a data file"),
        ("a\0b.jsonl", "its name has a NUL"),
    ):
        with pytest.raises(BadRequestError, match=f"{reason}.* nothing was written"):
            loads.load(path)
        with pytest.raises(BadRequestError, match=f"{reason}.* nothing was written"):
            loads.load([path])


def test_a_compressed_file_that_is_cut_off_says_so(loads: Loads) -> None:
    whole = gzip.compress(lines(*PEOPLE).encode(), mtime=0)

    for data in (whole[:-20], b"not gzip at all"):
        with pytest.raises(BadRequestError, match="damaged or cut off"):
            loads.load(loads.file("cut.jsonl.gz", data))


def test_a_pattern_without_files_says_so(loads: Loads) -> None:
    with pytest.raises(BadRequestError, match="no file matches"):
        loads.load(str(loads.directory / "none*.jsonl"))


# Modes


@pytest.mark.accepts("S-062")
def test_overwrite_replaces_the_types_in_the_input_and_no_others(loads: Loads) -> None:
    loads.load(lines(*PEOPLE, {"type": "Team", "data": {"name": "red"}}))

    loads.load(lines(person("new")), mode="overwrite")

    assert loads.ids("Person") == ["new"]
    assert loads.ids("Team") == ["red"]


@pytest.mark.accepts("S-063")
def test_append_refuses_an_id_that_is_there(loads: Loads) -> None:
    loads.load(lines(person("ada", age=1)))

    with pytest.raises(KeyConflict, match="'ada' already exists in 'node:Person'"):
        loads.load(lines(person("bob"), person("ada", age=2)))

    assert [(row["id"], row["age"]) for row in loads.rows("Person")] == [("ada", 1)]


@pytest.mark.accepts("S-064")
def test_merge_updates_and_inserts(loads: Loads) -> None:
    loads.load(lines(*PEOPLE))

    loads.load(lines(person("p3", age=33), person("q", age=9)), mode="merge")

    ages = {row["id"]: row["age"] for row in loads.rows("Person")}
    assert ages == {f"p{number}": number for number in range(9)} | {"p3": 33, "q": 9}


def test_a_merge_keeps_the_last_record_of_an_id(loads: Loads) -> None:
    """In one range, over several ranges, and whatever lies between."""
    records = [person("ada", age=number) for number in range(40)]
    records[20:20] = PEOPLE

    result = loads.load(lines(*records), mode="merge")

    assert result.tables == {"node:Person": 10}
    assert {row["id"]: row["age"] for row in loads.rows("Person")}["ada"] == 39
    assert unclaimed_files(loads.graph) == []


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_repeated_key_is_an_error_outside_of_merge(loads: Loads, mode: str) -> None:
    text = lines(*PEOPLE, person("p0", age=5))

    with pytest.raises(BadRowsError, match=r"data:10: .*@unique violation on Person.name"):
        loads.load(text, mode=mode)


def test_a_repeated_id_of_edges_is_an_error(loads: Loads) -> None:
    text = lines(*PEOPLE, knows("p0", "p1", id="e"), knows("p1", "p2", id="e"))

    with pytest.raises(BadRowsError, match="id 'e' occurs more than once in the input"):
        loads.load(text)


def test_an_edge_merged_by_id_moves(loads: Loads) -> None:
    loads.load(lines(*PEOPLE, knows("p0", "p1", id="e"), knows("p1", "p2", id="f")))

    loads.load(lines(knows("p5", "p6", id="e")), mode="merge")

    assert {row["id"]: (row["src"], row["dst"]) for row in loads.rows("Knows")} == {
        "e": ("p5", "p6"),
        "f": ("p1", "p2"),
    }


def test_an_edge_with_a_key_is_replaced_by_a_merge(loads: Loads) -> None:
    """Loaded twice, in the same input and again, each pair has one edge: the last one."""
    teams = [{"type": "Team", "data": {"name": name}} for name in "tu"]
    first = [rates("p1", "t", 1), rates("p1", "u", 2), rates("p2", "t", 3)]
    loads.load(lines(*PEOPLE, *teams, *first, rates("p1", "t", 4)), mode="merge")

    loads.load(lines(*first, rates("p2", "u", 5), rates("p2", "t", 6)), mode="merge")

    assert {row["id"]: row["stars"] for row in loads.rows("Rates")} == {
        '["p1","t"]': 1,
        '["p1","u"]': 2,
        '["p2","t"]': 6,
        '["p2","u"]': 5,
    }


@pytest.mark.accepts("S-072")
def test_a_load_is_one_commit(loads: Loads) -> None:
    before = loads.graph.snapshot()

    result = loads.load(lines(*PEOPLE, *RING), actor="ada")

    after = loads.graph.snapshot()
    assert after.manifest_version == before.manifest_version + 1
    assert after.head.commit_id == result.commit_id
    assert after.head.actor == "ada"


# Rules


@pytest.mark.accepts("S-059")
def test_every_bad_row_is_named_with_its_file_and_line(loads: Loads) -> None:
    one = loads.file(
        "one.jsonl",
        lines(*PEOPLE[:3])
        + "\n// fine\n"
        + lines(person("x", age="old"), person("y", mood="sad"))
        + '{"type": "Person", "data": {"name": \n'
        + lines(person("z", age=151), {"type": "Persona"}, {"nothing": 1}, 5),
    )
    two = loads.file("two.jsonl", lines(person("u", shoe=1), {"type": "Person", "data": {}}))

    with pytest.raises(BadRowsError) as caught:
        loads.load([one, two])

    shown = [(bad.location, bad.reason) for bad in caught.value.bad_rows]
    assert [place for place, _ in shown] == [
        *(f"{one}:{line}" for line in (6, 7)),
        f"{one}:8:37",
        *(f"{one}:{line}" for line in (9, 10, 11, 12)),
        *(f"{two}:{line}" for line in (1, 2)),
    ]
    reasons = " | ".join(reason for _, reason in shown)
    for part in (
        "expects I32, got a string",
        "invalid enum value 'sad'",
        "not a JSON object",
        "@range violation on Person.age",
        "did you mean `Person`?",
        "exactly one of `type` and `edge`",
        "a record is a JSON object, got 5",
        "Person has no property",
        "non-nullable property 'name'",
    ):
        assert part in reasons
    assert str(caught.value).endswith("nothing was written")
    assert loads.ids("Person") == []


def test_very_many_bad_rows_are_counted_and_a_hundred_shown(loads: Loads) -> None:
    text = lines(*(person(f"p{number}", age="x") for number in range(250)))

    with pytest.raises(BadRowsError) as caught:
        loads.load(text)

    assert caught.value.bad_rows.total == 250
    assert [bad.location for bad in caught.value.bad_rows] == [f"data:{n}" for n in range(1, 101)]
    assert "... and 150 more" in str(caught.value)


def test_bytes_that_are_no_text_are_a_bad_row(loads: Loads) -> None:
    data = lines(person("a")).encode() + b'{"type":"Person","data":{"name":"\xff\xfe"}}\n'
    path = loads.file("bytes.jsonl", data + lines(person("b")).encode())

    with pytest.raises(BadRowsError, match=r"bytes.jsonl:2"):
        loads.load(path)


def test_a_file_cut_off_in_a_record_names_the_line(loads: Loads) -> None:
    text = lines(*PEOPLE)
    path = loads.file("cut.jsonl", text[:-12])

    with pytest.raises(BadRowsError, match=r"cut.jsonl:9:\d+: .*not a JSON object"):
        loads.load(path)


def test_deep_nesting_is_refused_not_followed(loads: Loads) -> None:
    bomb = '{"type":"Person","data":{"name":"x","tags":' + "[" * 100_000 + "]" * 100_000 + "}}\n"

    with pytest.raises(BadRowsError, match="data:1"):
        loads.load(bomb + lines(person("a")))


@pytest.mark.accepts("S-061")
def test_an_edge_needs_both_nodes_new_or_committed(loads: Loads) -> None:
    loads.load(lines(person("old")))
    path = loads.file("edges.jsonl", lines(person("new"), knows("new", "old"), knows("new", "no")))

    with pytest.raises(BadRowsError, match=r"edges.jsonl:3: .*dst 'no' not found in Person"):
        loads.load(path)

    loads.load(lines(person("new"), knows("new", "old")))
    assert [(row["src"], row["dst"]) for row in loads.rows("Knows")] == [("new", "old")]


def test_an_overwrite_may_not_leave_edges_hanging(loads: Loads) -> None:
    loads.load(lines(*PEOPLE, *RING))

    with pytest.raises(BadRowsError, match="not found in Person"):
        loads.load(lines(*PEOPLE[:8]), mode="overwrite")

    loads.load(lines(*PEOPLE[:8], *RING[:3]), mode="overwrite")
    assert len(loads.ids("Person")) == 8


def test_a_unique_value_is_unique_over_new_and_committed_rows(loads: Loads) -> None:
    loads.load(lines(person("a", email="a@x"), person("b", email="b@x")))

    with pytest.raises(BadRowsError, match=r"data:2: .*@unique violation on Person.email"):
        loads.load(lines(person("c", email="c@x"), person("d", email="a@x")))
    with pytest.raises(BadRowsError, match=r"@unique violation on Person.email"):
        loads.load(lines(person("c", email="n@x"), person("d", email="n@x")), mode="merge")

    # A value that the same merge sets free may be taken.
    loads.load(lines(person("a", email=None), person("c", email="a@x")), mode="merge")
    assert {row["id"]: row["email"] for row in loads.rows("Person")} == {
        "a": None,
        "b": "b@x",
        "c": "a@x",
    }


def test_a_pair_of_columns_is_unique_together(loads: Loads) -> None:
    loads.load(lines(person("a"), *({"type": "Team", "data": {"name": n}} for n in "xyz")))
    member = {"edge": "MemberOf", "from": "a", "to": "x"}
    loads.load(lines(member))

    with pytest.raises(BadRowsError, match=r"@unique violation on MemberOf.\(dst, src\)"):
        loads.load(lines(member))


def test_cardinality_counts_committed_and_moved_edges(loads: Loads) -> None:
    teams = [{"type": "Team", "data": {"name": name}} for name in "xyz"]
    loads.load(lines(person("a"), person("b"), *teams))

    def member(source: str, target: str, id_: str) -> dict[str, Any]:
        return {"edge": "MemberOf", "from": source, "to": target, "data": {"id": id_}}

    loads.load(lines(member("a", "x", "1"), member("a", "y", "2")))
    with pytest.raises(BadRowsError, match=r"source 'a' has 3 edges \(max 2\)"):
        loads.load(lines(member("a", "z", "3")))

    loads.load(lines(member("b", "x", "1"), member("a", "z", "3")), mode="merge")
    assert {row["id"]: row["src"] for row in loads.rows("MemberOf")} == {
        "1": "b",
        "2": "a",
        "3": "a",
    }


def keep_heads(loads: Loads, seen: list[dict[str, int]]) -> None:
    seen.append(heads_of(loads.graph))


@pytest.mark.accepts("S-065")
def test_every_mode_stages_first_and_makes_one_version_per_table(loads: Loads) -> None:
    """An overwrite does not empty a table and fill it again, and the past stays readable."""
    loads.load(lines(*PEOPLE, knows("p0", "p1")))
    newer = lines(person("new"), person("p0", age=77), knows("p0", "new"))
    fresh = lines(person("fresh"), knows("fresh", "new2"), person("new2"))
    expected = {"append": (11, 2), "merge": (12, 3), "overwrite": (2, 1)}

    for mode, data in (("append", fresh), ("merge", newer), ("overwrite", newer)):
        before, then, seen = loads.versions(), loads.ids("Person"), list[dict[str, int]]()
        version = loads.graph.snapshot().manifest_version
        with arm_failpoints({Failpoint.RECOVERY_SIDECAR_WRITE: partial(keep_heads, loads, seen)}):
            loads.load(data, mode=mode)
        moved = {"node:Person", "edge:Knows"}
        assert seen == [before]
        assert loads.versions() == {key: v + (key in moved) for key, v in before.items()}
        assert heads_of(loads.graph) == loads.versions()
        assert (len(loads.ids("Person")), len(loads.ids("Knows"))) == expected[mode]
        assert loads.ids("Person", version=version) == then


@pytest.mark.accepts("S-065", "S-066", "S-071")
@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_a_refused_load_leaves_every_table_where_it_was(loads: Loads, mode: str) -> None:
    loads.load(lines(*PEOPLE))
    before = loads.versions()

    with pytest.raises(BadRowsError):
        loads.load(lines(*NEWCOMERS, knows("new0", "nobody")), mode=mode)

    assert loads.versions() == before == heads_of(loads.graph)
    assert unclaimed_files(loads.graph) == []
    loads.load(lines(person("new"), knows("new", "new")), mode="overwrite")
    assert loads.ids("Person") == ["new"]


# Branches


@pytest.mark.accepts("S-073")
def test_a_load_into_a_branch_stays_there(loads: Loads) -> None:
    loads.load(lines(*PEOPLE))
    loads.graph.create_branch("side")

    loads.load(lines(person("x"), knows("x", "p0")), branch="side")

    assert "x" in loads.ids("Person", branch="side")
    assert "x" not in loads.ids("Person")
    assert loads.ids("Knows") == []
    assert unclaimed_files(loads.graph) == []


def test_a_merge_into_a_branch_replaces_rows_of_its_parent(loads: Loads) -> None:
    loads.load(lines(*PEOPLE))
    loads.graph.create_branch("side")

    loads.load(lines(person("p1", age=100), person("y")), mode="merge", branch="side")

    side = {row["id"]: row["age"] for row in loads.rows("Person", branch="side")}
    main = {row["id"]: row["age"] for row in loads.rows("Person")}
    assert (side["p1"], main["p1"], "y" in side, "y" in main) == (100, 1, True, False)
    assert len(side) == 10


@pytest.mark.accepts("S-074", "S-075", "S-076")
def test_ingest_makes_the_branch_when_it_is_missing(loads: Loads) -> None:
    first = loads.graph.ingest(lines(*PEOPLE), branch="new", engine=loads.engine, actor="bot")
    again = loads.graph.ingest(lines(*PEOPLE), branch="new", engine=loads.engine)

    assert (first.branch, first.base_branch, first.branch_created) == ("new", "main", True)
    assert (first.mode, first.tables) == ("merge", {"node:Person": 9})
    assert (again.base_branch, again.branch_created) == ("main", False)
    assert loads.ids("Person") == []
    assert len(loads.ids("Person", branch="new")) == 9
    assert "bot" in [commit.actor for commit in loads.graph.commits("new")]


@pytest.mark.accepts("S-074", "S-075")
def test_a_missing_branch_starts_from_the_base_that_is_named(loads: Loads) -> None:
    loads.graph.create_branch("side")
    loads.load(lines(person("main")))
    loads.load(lines(person("side")), branch="side")

    made = loads.graph.ingest(
        lines(person("x"), knows("x", "side")),
        branch="new",
        from_branch="side",
        engine=loads.engine,
    )
    loaded = loads.load(lines(person("y")), branch="other", base="side")

    assert (made.base_branch, made.branch_created) == ("side", True)
    assert loads.ids("Person", branch="new") == ["side", "x"]
    assert (loaded.base_branch, loaded.branch_created) == ("side", True)
    assert loads.ids("Person", branch="other") == ["side", "y"]
    assert loads.ids("Person") == ["main"]


def test_a_missing_branch_is_an_error_without_a_base(loads: Loads) -> None:
    with pytest.raises(BranchNotFound):
        loads.load(lines(*PEOPLE), branch="nowhere")


# Putting aside


def test_a_quarantine_loads_the_good_rows_and_keeps_the_others(loads: Loads) -> None:
    """A dropped node takes its edges along; nothing is lost and nothing bad is stored."""
    path = loads.file(
        "mixed.jsonl",
        lines(person("a"), person("b", age="old"), person("c"), knows("a", "c"))
        + "{broken\n"
        + lines(knows("a", "b"), person("a", age=7), {"type": "Nope"}),
    )
    aside = loads.directory / "aside.jsonl"

    result = loads.load(path, on_error="quarantine", quarantine=aside)

    assert result.tables == {"edge:Knows": 1, "node:Person": 2}
    assert result.rows_rejected == 5
    assert loads.ids("Person") == ["a", "c"]
    written = [json.loads(line) for line in aside.read_text().splitlines()]
    assert {each["place"].rpartition(":")[2] for each in written} == {"2", "5", "6", "7", "8"}
    by_line = {each["place"].rpartition(":")[2]: each for each in written}
    assert by_line["2"]["record"] == person("b", age="old")
    assert by_line["5"]["record"] == "{broken"
    assert "dst 'b' not found in Person" in by_line["6"]["reasons"][0]
    assert loads.graph.commit(str(result.commit_id)).properties["rows_rejected"] == "5"
    assert unclaimed_files(loads.graph) == []


def test_ids_that_are_taken_are_quarantined(loads: Loads) -> None:
    loads.load(lines(*PEOPLE))

    result = loads.load(lines(person("p1"), person("new")), on_error="quarantine")

    assert (result.tables, result.rows_rejected) == ({"node:Person": 1}, 1)


def test_a_replaced_record_does_not_return_when_the_last_one_is_quarantined(
    loads: Loads,
) -> None:
    """Of several records of an id the last counts, also when it then turns out to be bad."""
    first = {"edge": "Knows", "from": "a", "to": "a", "data": {"id": "1"}}
    last = first | {"to": "nobody"}
    # One record over several lines makes the input one range, with both edges in one block.
    text = "\n".join([json.dumps(person("a"), indent=1), json.dumps(first), json.dumps(last)])

    result = loads.load(text, mode="merge", on_error="quarantine")

    assert (result.tables, result.rows_rejected) == ({"node:Person": 1}, 1)
    assert loads.rows("Knows") == []


def test_rejected_records_are_kept_with_the_graph_when_no_file_is_named(loads: Loads) -> None:
    """The result says where, also when no record was good; a load that fails keeps nothing."""
    kept = Path(loads.graph.uri) / "__quarantine"

    clean = loads.load(lines(person("a")), on_error="quarantine")
    mixed = loads.load(lines(person("b"), person("c", age="old")), on_error="quarantine")
    hopeless = loads.load(lines(person("d", age="old")), on_error="quarantine")
    with pytest.raises(FailpointError), arm_failpoints({Failpoint.LOAD_BEFORE_COMMIT: "raise"}):
        loads.load(lines(person("e"), person("f", age="old")), on_error="quarantine")

    assert clean.quarantine is None
    assert (hopeless.commit_id, hopeless.rows_rejected) == (None, 1)
    assert {str(path) for path in kept.iterdir()} == {mixed.quarantine, hopeless.quarantine}
    (record,) = map(json.loads, Path(str(mixed.quarantine)).read_text().splitlines())
    assert record["record"] == person("c", age="old")
    assert loads.graph.verify().is_clean


# Embedding


@pytest.mark.accepts("S-077")
@pytest.mark.parametrize(
    "engine", ["inline", pytest.param("spark", marks=pytest.mark.xdist_group("spark"))]
)
def test_missing_vectors_are_made_from_their_text(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if engine == "spark":
        request.getfixturevalue("spark")
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    schema = 'node Doc { name: String @key  body: String?  vec: Vector(4)? @embed("body") }'
    given = [1.0, 0.0, 0.0, 0.0]
    records = [
        {"type": "Doc", "data": {"name": "a", "body": "hello"}},
        {"type": "Doc", "data": {"name": "b", "body": "hello", "vec": given}},
        {"type": "Doc", "data": {"name": "c"}},
    ]

    with og.init(tmp_path / "graph", schema=schema) as graph:
        result = graph.load(lines(*records), mode="append", engine=engine)
        rows = {row["id"]: row["vec"] for row in graph.nodes("Doc").to_arrow().to_pylist()}

    assert result.rows_embedded == 1
    assert rows["b"] == given
    assert rows["c"] is None
    assert sum(value * value for value in rows["a"]) == pytest.approx(1.0)
