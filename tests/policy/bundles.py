"""What the tests of policies share: a bundle as people write one, and how to spoil it."""

from __future__ import annotations

import re

import pytest

from omnigraph.errors import PolicyInvalid
from omnigraph.policy import Policy, load_policy

TEAM = """\
version: 1
groups: { admins: [act-ada], readers: [act-bob, act-ada] }
protected_branches: [main]
rules:
  - id: readers-read
    allow:
      actors: { group: readers }
      actions: [read, export]
      branch_scope: any            # any | protected | unprotected
  - id: writers-off-main
    allow: { actors: { group: readers }, actions: [change], branch_scope: unprotected }
  - id: branchers
    allow:
      actors: { group: readers }
      actions: [branch_create, branch_delete]
      target_branch_scope: unprotected
  - id: admins-merge-main
    allow:
      actors: { group: admins }
      actions: [branch_merge, schema_apply]
      target_branch_scope: protected
"""

SERVER = """\
version: 1
groups: { operators: [act-ada] }
rules:
  - id: operators-list
    allow: { actors: { group: operators }, actions: [graph_list] }
"""


def team(resource: str | None = "team") -> Policy:
    """The bundle of the specification, with a rule about branches."""
    return load_policy(TEAM, name="team", resource=resource)


def bundle_of(rules: str, *, groups: str = "{ g: [ann] }", rest: str = "") -> str:
    """A bundle with these rules, given as YAML list items."""
    return f"version: 1\ngroups: {groups}\n{rest}rules:\n{rules}"


def rule(fields: str, rule_id: str = "r") -> str:
    """One rule of group `g`; `fields` are the other keys of its `allow`."""
    return f"- {{ id: {rule_id}, allow: {{ actors: {{ group: g }}, {fields} }} }}\n"


def problems_of(text: str, *, resource: str | None = "team") -> tuple[str, ...]:
    """Every problem that is found in a bundle, by its line; there has to be one."""
    with pytest.raises(PolicyInvalid) as refusal:
        load_policy(text, name="team", resource=resource)
    return tuple(re.sub(r"^team:(\d+):\d+:", r"line \1:", each) for each in refusal.value.problems)
