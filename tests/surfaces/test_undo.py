"""Undo by library, command line and HTTP: the same answers, the same refusals."""

from __future__ import annotations

from typing import Any

import pytest

from omnigraph.undo_calls import PickCall, RestoreCall, RevertCall, UndoCall
from tests.http.serving import INSERT, PEOPLE, UPDATE
from tests.surfaces.surfaces import Surface


def commit(surface: Surface, query: str, branch: str = "main", **params: Any) -> str:
    made = surface.mutate(query, params=params, branch=branch, message="made").json
    commit_id: str = made["commit"]["graph_commit_id"]
    return commit_id


def ages(surface: Surface, branch: str = "main") -> dict[str, int]:
    rows = surface.query(PEOPLE, branch=branch).json["rows"]
    return {row["p.slug"]: row["p.age"] for row in rows}


def test_a_revert_takes_a_commit_back_and_says_so(surface: Surface) -> None:
    made = commit(surface, UPDATE, slug="ada", age=40)

    preview = surface.preview_undo(RevertCall([made], "main")).json
    done = surface.undo(RevertCall(["main~0"], "main"), "a mistake").json
    again = surface.undo(RevertCall([made], "main")).json

    assert (preview["outcome"], preview["changes"]["stats"]["updates"]) == ("merged", 1)
    assert (done["target"], done["outcome"], done["source"]) == ("main", "merged", made)
    assert done["tables"] == {"node:Person": {"inserted": 0, "updated": 1, "deleted": 0}}
    assert done["commit"]["message"] == "a mistake"
    assert done["commit"]["metadata"] == {"reverts": made}
    assert done["commit"]["graph_commit_id"] == done["commit_id"]
    assert (again["outcome"], again["commit"]) == ("already_up_to_date", None)
    assert ages(surface) == {"ada": 36, "grace": 45}


def test_a_later_edit_is_a_conflict_with_its_sides(surface: Surface) -> None:
    made = commit(surface, UPDATE, slug="ada", age=40)
    commit(surface, UPDATE, slug="ada", age=50)

    refused = surface.undo(RevertCall([made], "main"))
    preview = surface.preview_undo(RevertCall([made], "main")).json
    surface.undo(RevertCall([made], "main", resolve="theirs")).done()

    refused.refused(409, "revert conflicts: node:Person 'ada'")
    [conflict] = preview["conflicts"]
    sides = [conflict[side]["age"] for side in ("base", "ours", "theirs")]
    assert sides == [40, 50, 36]
    assert ages(surface)["ada"] == 36


def test_a_session_is_reverted_by_its_name(surface: Surface) -> None:
    surface.mutate(INSERT, params={"slug": "x", "age": 1}, meta="session=s1").done()
    commit(surface, INSERT, slug="y", age=2)

    done = surface.undo(RevertCall([], "main", session="s1", since="2020-01-01")).json

    assert done["tables"]["node:Person"]["deleted"] == 1
    assert set(ages(surface)) == {"ada", "grace", "y"}


def test_a_cherry_pick_makes_a_commit_again_elsewhere(surface: Surface) -> None:
    surface.create_branch("dev").done()
    commit(surface, INSERT, "dev", slug="x", age=1)
    made = commit(surface, UPDATE, "dev", slug="ada", age=40)

    preview = surface.preview_undo(PickCall([made], "main")).json
    done = surface.undo(PickCall([made], "main")).json

    assert preview["changes"]["stats"]["updates"] == 1
    assert done["commit"]["message"] == 'Cherry-pick "made"'
    assert done["commit"]["metadata"] == {"cherry_picked_from": made}
    assert ages(surface) == {"ada": 40, "grace": 45}


def test_a_restore_brings_types_and_entities_back(surface: Surface) -> None:
    surface.create_tag("good").done()
    commit(surface, UPDATE, slug="ada", age=40)
    commit(surface, INSERT, slug="x", age=1)

    preview = surface.preview_undo(RestoreCall("good", "main")).json
    done = surface.undo(RestoreCall("good", "main", ids=["ada"])).json
    rest = surface.undo(RestoreCall("good", "main", types=["Person"]), "all").json

    stats = preview["changes"]["stats"]
    assert (stats["inserts"], stats["updates"], stats["deletes"]) == (0, 1, 1)
    assert (done["affected_nodes"], done["affected_edges"]) == (1, 0)
    assert rest["commit"]["message"] == "all"
    assert ages(surface) == {"ada": 36, "grace": 45}


BAD: dict[str, tuple[UndoCall, int, str]] = {
    "unknown": (RevertCall(["0" * 26], "main"), 404, "not found"),
    "none": (RevertCall([], "main"), 400, "no commit is named"),
    "both": (RevertCall(["main"], "main", actor="x"), 400, "name commits, or choose them"),
    "branch": (RevertCall(["main"], "nope"), 404, "branch 'nope' not found"),
    "since alone": (RevertCall([], "main", since="2020-01-01"), 400, "give actor, or session"),
    "no state": (RestoreCall("nope", "main"), 404, "not found"),
    "no type": (RestoreCall("main", "main", types=["Persn"]), 400, "did you mean `Person`"),
    "no id": (RestoreCall("main", "main", ids=["zz"]), 404, "there is no 'zz' to restore"),
    "no branch": (PickCall(["main"], "nope"), 404, "branch 'nope' not found"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_is_refused_the_same_way(case: str, standing: Surface) -> None:
    asked, status, text = BAD[case]
    before = standing.commits().json

    standing.undo(asked).refused(status, text)
    standing.preview_undo(asked).refused(status, text)

    assert standing.commits().json == before
