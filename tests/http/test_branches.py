"""Branches, merges and schema changes over HTTP."""

from __future__ import annotations

import pytest

from tests.http.serving import INSERT, SCHEMA, UPDATE, Served


def test_a_branch_is_made_listed_merged_and_deleted(own: Served) -> None:
    with own.client() as client:
        made = client.post("/branches", {"name": " review/x ", "from": "main"}).json()
        client.mutate(INSERT, params={"slug": "new"}, branch="review/x")
        listed = client.get("/branches").json()["branches"]
        merged = client.post("/branches/merge", {"source": "review/x"}).json()
        again = client.post("/branches/merge", {"source": "review/x", "target": "main"}).json()
        gone = client.send("DELETE", "/branches/review%2Fx").json()

        assert (made["from"], made["name"], made["actor_id"]) == ("main", "review/x", None)
        assert listed == ["main", "review/x"]
        assert merged["outcome"] in ("fast_forward", "merged")
        assert again["outcome"] == "already_up_to_date"
        assert gone["name"] == "review/x"
        assert client.get("/branches").json()["branches"] == ["main"]
        assert len(client.rows()) == 3


def test_a_merge_conflict_lists_every_entity_and_leaves_the_target_alone(own: Served) -> None:
    with own.client() as client:
        client.post("/branches", {"name": "other"})
        for slug in ("ada", "grace"):
            client.mutate(UPDATE, params={"slug": slug, "age": 1})
            client.mutate(UPDATE, params={"slug": slug, "age": 2}, branch="other")
        before = client.get("/snapshot").json()

        answer = client.post("/branches/merge", {"source": "other", "delete_branch": True})

        assert answer.status_code == 409
        body = answer.json()
        assert body["code"] == "conflict"
        assert body["error"].startswith("merge conflicts: node:Person 'ada' divergent_update")
        found = [(each["table_key"], each["row_id"]) for each in body["merge_conflicts"]]
        assert found == [("node:Person", "ada"), ("node:Person", "grace")]
        assert body["merge_conflicts"][0]["kind"] == "divergent_update"
        assert body["merge_conflicts"][0]["type_name"] == "Person"
        assert body["merge_conflicts"][0]["entity_id"] == "ada"
        assert client.get("/snapshot").json() == before
        assert "other" in client.get("/branches").json()["branches"]


def test_a_merge_may_delete_its_source(own: Served) -> None:
    with own.client() as client:
        for name in ("one", "two"):
            client.post("/branches", {"name": name})
        client.post("/branches", {"name": "child", "from": "two"})

        done = client.post("/branches/merge", {"source": "one", "delete_branch": True}).json()
        kept = client.post("/branches/merge", {"source": "two", "delete_branch": True})

        assert done["branch_deleted"] is True
        assert kept.status_code == 200
        assert kept.json()["branch_deleted"] is False
        assert kept.json()["branch_delete_error"]
        assert client.get("/branches").json()["branches"] == ["child", "main", "two"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"name": "main"}, 400),
        ({"name": "__schema_apply_lock__"}, 400),
        ({"name": "__internal"}, 400),
        ({"name": ""}, 400),
        ({"name": "a b"}, 400),
        ({"name": "taken"}, 409),
        ({"name": "taken/below"}, 409),
        ({"name": "x", "from": "nope"}, 404),
    ],
)
def test_a_branch_that_cannot_be_made(own: Served, body: dict[str, str], status: int) -> None:
    with own.client() as client:
        client.post("/branches", {"name": "taken"})

        assert client.post("/branches", body).status_code == status


def test_a_branch_that_cannot_be_deleted(own: Served) -> None:
    with own.client() as client:
        main = client.send("DELETE", "/branches/main")

        assert main.status_code == 400
        assert main.json()["error"] == "cannot delete branch 'main'"
        assert client.send("DELETE", "/branches/nope").status_code == 404
        assert client.post("/branches/merge", {"source": "nope"}).status_code == 404


def test_a_schema_is_read_as_written_and_applied_step_by_step(own: Served) -> None:
    wider = SCHEMA.replace("born: Date?", "born: Date?  email: String?")
    with own.client() as client:
        assert client.get("/schema").json() == {"schema_source": SCHEMA}
        same = client.post("/schema/apply", {"schema_source": SCHEMA}).json()
        done = client.post("/schema/apply", {"schema_source": wider}).json()

        assert (same["applied"], same["step_count"]) == (False, 0)
        assert (done["supported"], done["applied"], done["step_count"]) == (True, True, 1)
        assert done["steps"][0]["kind"] == "add_property"
        assert done["steps"][0]["property_name"] == "email"
        assert done["manifest_version"] == done["graph_manifest_version"]
        assert client.get("/schema").json()["schema_source"] == wider


def test_a_schema_that_cannot_be_applied_changes_nothing(own: Served) -> None:
    with own.client() as client:
        narrower = SCHEMA.replace("age: I32?", "age: String?")
        refused = client.post("/schema/apply", {"schema_source": narrower})
        broken = client.post("/schema/apply", {"schema_source": "node {"})
        client.post("/branches", {"name": "other"})
        gone = {"schema_source": SCHEMA.replace("  born: Date?", ""), "allow_data_loss": True}
        busy = client.post("/schema/apply", gone)

        assert refused.status_code == 400
        assert "OG-" in refused.json()["error"]
        assert broken.status_code == 400
        assert busy.status_code == 409
        assert "branch 'other' has rows" in busy.json()["error"]
        assert client.get("/schema").json() == {"schema_source": SCHEMA}


def test_a_merge_brings_a_schema_and_the_stored_queries_are_checked_by_it(own: Served) -> None:
    wider = SCHEMA.replace("born: Date?", "born: Date?  email: String?")
    with own.client() as client:
        client.post("/branches", {"name": "wider"})
        client.post("/schema/apply", {"schema_source": wider, "branch": "wider"})
        diff = client.get("/diff?from=main&to=wider").json()
        merged = client.post("/branches/merge", {"source": "wider"})

        assert [each["kind"] for each in diff["schema_steps"]] == ["add_property"]
        assert (merged.status_code, merged.json()["outcome"]) == (200, "fast_forward")
        assert client.get("/schema").json() == {"schema_source": wider}
        ask = "query q() { match { $p: Person } return { $p.email } limit 1 }"
        assert client.post("/query", {"query": ask}).status_code == 200
