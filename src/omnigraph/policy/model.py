"""The words of a policy: actions and scopes, a checked bundle, a request and its decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from omnigraph.dataclass import dataclass


class Kind(StrEnum):
    """What a bundle is about: one graph, or the server that serves several."""

    GRAPH = "graph"
    SERVER = "server"


class Scope(StrEnum):
    """Which branches a rule reaches."""

    ANY = "any"
    PROTECTED = "protected"
    UNPROTECTED = "unprotected"


class Action(StrEnum):
    """What an actor may ask to do."""

    READ = "read"
    EXPORT = "export"
    CHANGE = "change"
    SCHEMA_APPLY = "schema_apply"
    BRANCH_CREATE = "branch_create"
    BRANCH_DELETE = "branch_delete"
    BRANCH_MERGE = "branch_merge"
    MERGE_REQUEST = "merge_request"
    MERGE_APPROVE = "merge_approve"
    INVOKE_QUERY = "invoke_query"
    OPTIMIZE = "optimize"
    CLEANUP = "cleanup"
    REPAIR = "repair"
    VERIFY = "verify"
    ADMIN = "admin"
    GRAPH_LIST = "graph_list"

    @property
    def kind(self) -> Kind:
        """The kind of bundle that may speak of this action."""
        return Kind.SERVER if self is Action.GRAPH_LIST else Kind.GRAPH

    @property
    def has_types(self) -> bool:
        """Whether a rule may limit this action to types."""
        return self in (Action.READ, Action.EXPORT)

    @property
    def scope_key(self) -> str | None:
        """The key that limits this action to branches; None when nothing does."""
        return _SCOPE_KEYS.get(self)


TYPES, EXCEPT_TYPES = "types", "except_types"
BRANCH_SCOPE = "branch_scope"
TARGET_BRANCH_SCOPE = "target_branch_scope"

_SCOPE_KEYS = {
    Action.READ: BRANCH_SCOPE,
    Action.EXPORT: BRANCH_SCOPE,
    Action.CHANGE: BRANCH_SCOPE,
    Action.SCHEMA_APPLY: TARGET_BRANCH_SCOPE,
    Action.BRANCH_CREATE: TARGET_BRANCH_SCOPE,
    Action.BRANCH_DELETE: TARGET_BRANCH_SCOPE,
    Action.BRANCH_MERGE: TARGET_BRANCH_SCOPE,
    Action.MERGE_REQUEST: BRANCH_SCOPE,
    Action.MERGE_APPROVE: TARGET_BRANCH_SCOPE,
}


ANY_REST = "*"


def is_branch_pattern(pattern: str) -> bool:
    """Whether a text is a name, or the beginning of one and `*`."""
    stem = pattern.removesuffix(ANY_REST)
    return bool(stem) and ANY_REST not in stem


def matches_branch(pattern: str, branch: str) -> bool:
    """Whether a branch is the one that is named, or begins with what is before the `*`."""
    stem = pattern.removesuffix(ANY_REST)
    return branch == pattern if stem == pattern else branch.startswith(stem) and branch != stem


@dataclass(frozen=True, slots=True)
class TypeScope:
    """Which types a rule lets be read: those that it names, or all but those."""

    names: frozenset[str]
    is_except: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """One `allow`: a group may do these actions, on branches of this scope, to these types."""

    id: str
    group: str
    actions: tuple[Action, ...]
    branch_scope: Scope = Scope.ANY
    target_branch_scope: Scope = Scope.ANY
    types: TypeScope | None = None


@dataclass(frozen=True, slots=True)
class Bundle:
    """A checked bundle. What no rule allows is denied."""

    kind: Kind
    groups: Mapping[str, frozenset[str]]
    protected_branches: frozenset[str]
    rules: tuple[Rule, ...]
    required_approvals: Mapping[str, int] = field(default_factory=dict)
    """Branches, and prefixes that end in `*`: how many approvals a merge into them needs."""

    def count_required(self, branch: str) -> int:
        """How many approvals a merge into a branch needs: the most that some entry says."""
        return max(
            (
                count
                for pattern, count in self.required_approvals.items()
                if matches_branch(pattern, branch)
            ),
            default=0,
        )

    @property
    def actors(self) -> frozenset[str]:
        """The actors of all groups."""
        return frozenset().union(*self.groups.values())

    @property
    def types(self) -> frozenset[str]:
        """The types that rules name."""
        return frozenset().union(*(rule.types.names for rule in self.rules if rule.types))


@dataclass(frozen=True, slots=True)
class Request:
    """An actor asks to do something, on a branch, to a branch, or neither; to one type, or any."""

    actor: str
    action: Action
    branch: str | None = None
    target_branch: str | None = None
    type_name: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer. `matched_rule` is the smallest id of the rules that allow it."""

    allowed: bool
    message: str
    matched_rule: str | None = None
