"""Check: a YAML tree → a bundle, or every reason why it is none."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from omnigraph.errors import PolicyInvalid
from omnigraph.policy.model import (
    BRANCH_SCOPE,
    EXCEPT_TYPES,
    TARGET_BRANCH_SCOPE,
    TYPES,
    Action,
    Bundle,
    Kind,
    Rule,
    Scope,
    TypeScope,
    is_branch_pattern,
)
from omnigraph.yaml_fields import Fields, quote
from omnigraph.yaml_text import Mark, Node, Problems, Sequence, read_yaml

# Cedar looks at every permit for every decision: with more of them each would take too long.
PERMITS_MAX = 10_000

APPROVALS_MAX = 100

_BUNDLE_KEYS = ("version", "kind", "groups", "protected_branches", "required_approvals", "rules")
_ALLOW_KEYS = ("actors", "actions", BRANCH_SCOPE, TARGET_BRANCH_SCOPE, TYPES, EXCEPT_TYPES)


def read_bundle(text: str, *, name: str, kind: Kind | None) -> Bundle:
    """Read a bundle of a kind; with None, of the kind it says it is or its actions belong to.

    Raises:
        PolicyInvalid: The text is no such bundle; every problem is listed with its place.
    """
    problems = Problems(name, partial(PolicyInvalid, f"policy bundle {quote(name)}"))
    bundle = _Check(Fields(problems), kind).bundle(read_yaml(text, problems))
    problems.raise_if_any()
    return bundle


class _Check:
    """Checks one bundle; goes on after a problem, so that one run finds all."""

    def __init__(self, fields: Fields, kind: Kind | None) -> None:
        self._fields = fields
        self._note = fields.note
        self._kind = kind

    def bundle(self, tree: Node) -> Bundle:
        entries = self._fields.mapping(
            tree, "the bundle", known=_BUNDLE_KEYS, required=("version",)
        )
        self._fields.version(entries.get("version"))
        declared = self._fields.word(entries.get("kind"), "kind", Kind)
        groups = self._groups(entries.get("groups"))
        protected = self._fields.texts(
            entries.get("protected_branches"), "protected_branches", "a branch"
        )
        branches = frozenset(branch.strip() for branch in protected)
        rules = self._rules(entries.get("rules"), groups)
        required = self._approvals(entries.get("required_approvals"))
        kind = self._kind_of(declared, rules)
        if declared is not None and declared is not kind:
            self._note(
                entries["kind"].mark, "kind", f"is {declared}, but this is the policy of a {kind}"
            )
        for mark, rule in rules:
            self._check_kind(mark, rule, kind)
        if required and kind is not Kind.GRAPH:
            self._note(entries["required_approvals"].mark, "", "only a graph has merges to approve")
        if sum(len(rule.actions) for _, rule in rules) > PERMITS_MAX:
            self._note(tree.mark, "", f"the rules name more than {PERMITS_MAX} actions")
        return Bundle(kind, groups, branches, tuple(rule for _, rule in rules), required)

    def _kind_of(self, declared: Kind | None, rules: list[tuple[Mark, Rule]]) -> Kind:
        kinds = {action.kind for _, rule in rules for action in rule.actions}
        return self._kind or declared or (Kind.SERVER if kinds == {Kind.SERVER} else Kind.GRAPH)

    def _groups(self, node: Node | None) -> dict[str, frozenset[str]]:
        groups: dict[str, frozenset[str]] = {}
        for name, members in self._fields.entries(node, "groups"):
            where = f"group {quote(name)}"
            if not name.strip():
                self._note(members.mark, "", "a group has a blank name")
            groups[name] = frozenset(self._fields.texts(members, where, "an actor"))
            if isinstance(members, Sequence) and not members.items:
                self._note(members.mark, where, "is empty — name an actor, or remove it")
        return groups

    def _approvals(self, node: Node | None) -> dict[str, int]:
        """How many approvals merges need, by branch or by the beginning of its name."""
        found: dict[str, int] = {}
        for pattern, count in self._fields.entries(node, "required_approvals"):
            where = f"required_approvals: {quote(pattern)}"
            if not is_branch_pattern(pattern.strip()):
                self._note(count.mark, where, "is not a branch, or the beginning of one and '*'")
            number = self._fields.number(count, where, at_least=1)
            if number is not None and number > APPROVALS_MAX:
                self._note(count.mark, where, f"is {number}, expected at most {APPROVALS_MAX}")
            found[pattern.strip()] = number or 1
        return found

    def _rules(
        self, node: Node | None, groups: Mapping[str, frozenset[str]]
    ) -> list[tuple[Mark, Rule]]:
        rules: list[tuple[Mark, Rule]] = []
        taken: dict[str, Mark] = {}
        for position, item in enumerate(self._fields.items(node, "rules"), start=1):
            rule = self._rule(item, f"rule {position}", groups)
            if rule.id in taken:
                first = taken[rule.id].line
                self._note(item.mark, f"rule {quote(rule.id)}", f"the id is taken by line {first}")
            elif rule.id:
                taken[rule.id] = item.mark
            rules.append((item.mark, rule))
        return rules

    def _rule(self, node: Node, place: str, groups: Mapping[str, frozenset[str]]) -> Rule:
        entries = self._fields.mapping(node, place, known=("id", "allow"), required=("id", "allow"))
        rule_id = self._fields.text(entries.get("id"), f"{place}: the id") or ""
        where = f"rule {quote(rule_id)}" if rule_id else place
        if "allow" not in entries:
            return Rule(rule_id, "", ())
        allow = self._fields.mapping(
            entries["allow"], where, known=_ALLOW_KEYS, required=("actors", "actions")
        )
        group = self._group(allow.get("actors"), where, groups)
        actions = self._actions(allow.get("actions"), where)
        scopes = {
            key: self._fields.word(allow[key], f"{where}: {key}", Scope)
            for key in (BRANCH_SCOPE, TARGET_BRANCH_SCOPE)
            if key in allow
        }
        self._check_scopes({key: allow[key].mark for key in scopes}, actions, where)
        return Rule(
            rule_id,
            group,
            actions,
            scopes.get(BRANCH_SCOPE) or Scope.ANY,
            scopes.get(TARGET_BRANCH_SCOPE) or Scope.ANY,
            self._types(allow, actions, where),
        )

    def _types(
        self, allow: Mapping[str, Node], actions: tuple[Action, ...], where: str
    ) -> TypeScope | None:
        """The types that a rule is limited to, if it is."""
        keys = [key for key in (TYPES, EXCEPT_TYPES) if key in allow]
        if not keys:
            return None
        node, key = allow[keys[0]], keys[0]
        if len(keys) == 2:
            self._note(node.mark, where, f"has both {TYPES} and {EXCEPT_TYPES} — keep one of them")
        for action in actions:
            if not action.has_types:
                hint = "remove it, or move the action to another rule"
                self._note(node.mark, where, f"{key} does not apply to '{action}' — {hint}")
        names = self._fields.texts(node, f"{where}: {key}", "a type")
        if isinstance(node, Sequence) and not node.items:
            self._note(node.mark, where, f"{key} is empty — name a type, or remove it")
        return TypeScope(frozenset(name.strip() for name in names), key == EXCEPT_TYPES)

    def _group(self, node: Node | None, where: str, groups: Mapping[str, frozenset[str]]) -> str:
        if node is None:
            return ""
        inner = f"{where}: actors"
        entries = self._fields.mapping(node, inner, known=("group",), required=("group",))
        name = self._fields.text(entries.get("group"), f"{inner}: group")
        if name is not None and name not in groups:
            hint = self._fields.hint(name, groups)
            self._note(entries["group"].mark, where, f"there is no group {quote(name)}{hint}")
        return name or ""

    def _actions(self, node: Node | None, where: str) -> tuple[Action, ...]:
        if isinstance(node, Sequence) and not node.items:
            self._note(node.mark, where, "there are no actions — name at least one")
        items = self._fields.items(node, f"{where}: actions")
        words = (self._fields.word(item, f"{where}: an action", Action) for item in items)
        return tuple(dict.fromkeys(word for word in words if word is not None))

    def _check_scopes(
        self, marks: Mapping[str, Mark], actions: tuple[Action, ...], where: str
    ) -> None:
        if len(marks) == 2:
            self._note(
                marks[TARGET_BRANCH_SCOPE],
                where,
                f"has both {BRANCH_SCOPE} and {TARGET_BRANCH_SCOPE} — split it into two rules",
            )
            return
        for key, mark in marks.items():
            for action in actions:
                if action.scope_key != key:
                    self._note(mark, where, _explain_misplaced(key, action))

    def _check_kind(self, mark: Mark, rule: Rule, kind: Kind) -> None:
        where = f"rule {quote(rule.id)}" if rule.id else "a rule"
        kinds = {action.kind for action in rule.actions}
        if len(kinds) == 2:
            self._note(
                mark, where, "mixes actions of a graph and of a server — split it into two rules"
            )
            return
        for action in rule.actions:
            if action.kind is not kind:
                self._note(
                    mark,
                    where,
                    f"'{action}' is an action of a {action.kind}, "
                    f"but this is the policy of a {kind}",
                )


def _explain_misplaced(key: str, action: Action) -> str:
    if action.kind is Kind.SERVER:
        return f"'{action}' is an action of a server and has no scope — remove {key}"
    if action.scope_key is None:
        return f"'{action}' has no scope — remove {key}, or move the action to another rule"
    return f"{key} does not apply to '{action}' — use {action.scope_key}, in a rule of its own"
