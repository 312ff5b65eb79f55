"""A second opinion: what a bundle decides, worked out from its plain data, without Cedar."""

from __future__ import annotations

from typing import Any

SCOPED_BY = {
    "read": "branch_scope",
    "export": "branch_scope",
    "change": "branch_scope",
    "schema_apply": "target_branch_scope",
    "branch_create": "target_branch_scope",
    "branch_delete": "target_branch_scope",
    "branch_merge": "target_branch_scope",
    "merge_request": "branch_scope",
    "merge_approve": "target_branch_scope",
    "invoke_query": None,
    "optimize": None,
    "cleanup": None,
    "repair": None,
    "verify": None,
    "admin": None,
    "graph_list": None,
}


def decide(
    bundle: dict[str, Any],
    actor: str,
    action: str,
    branch: str | None,
    target: str | None,
    type_name: str | None = None,
) -> tuple[bool, str, str | None]:
    """Whether it is allowed, in which words, and by which rule."""
    if not any(actor in members for members in bundle["groups"].values()):
        return False, f"policy denied action '{action}' for unknown actor '{actor}'", None
    matching = [
        rule["id"]
        for rule in bundle["rules"]
        if actor in bundle["groups"][rule["allow"]["actors"]["group"]]
        and action in rule["allow"]["actions"]
        and _reaches(rule["allow"], action, branch, target, bundle["protected_branches"])
        and _covers(rule["allow"], type_name)
    ]
    if matching:
        return True, f"policy allowed action '{action}' for actor '{actor}'", min(matching)
    words = [f"policy denied action '{action}'"]
    if type_name is not None:
        words.append(f"of type '{type_name}'")
    if branch is not None:
        words.append(f"on branch '{branch}'")
    if target is not None:
        words.append(f"targeting branch '{target}'")
    return False, " ".join([*words, f"for actor '{actor}'"]), None


def _reaches(
    allow: dict[str, Any],
    action: str,
    branch: str | None,
    target: str | None,
    protected: list[str],
) -> bool:
    key = SCOPED_BY[action]
    scope = "any" if key is None else allow.get(key, "any")
    if scope == "any":
        return True
    looked_at = branch if key == "branch_scope" else target
    if looked_at is None:
        return False
    return (looked_at in protected) == (scope == "protected")


def _covers(allow: dict[str, Any], type_name: str | None) -> bool:
    if type_name is None:
        return True
    if "types" in allow:
        return type_name in allow["types"]
    return type_name not in allow.get("except_types", [])
