"""Errors: one tree, grouped by what the caller does next.

    OmnigraphError
    ├── SourceError         fix the text; has a span     400   ParseError CatalogError
    │                                                          TypeCheckError PlanError
    │                                                          IdentityError
    ├── BadRequestError     fix the request or its rows  400   ParamsError ConstraintError
    │                                                          MigrationError ConfigError
    │                                                          AddressError PolicyInvalid
    │                                                          CommitNotReplayable
    ├── PolicyError         ask for permission           403   PolicyEvaluationFailed (500)
    │                                                          ApprovalsMissing
    ├── NotFoundError       name something that exists   404   GraphNotFound BranchNotFound
    │                                                          CommitNotFound VersionNotFound
    │                                                          EntityNotFound TagNotFound
    │                                                          MergeRequestNotFound
    │                                                          RevisionNotFound RemoteNotFound
    ├── ConflictError       no effect; refresh, retry    409   ExpectedVersionMismatch KeyConflict
    │                                                          GraphExists PreconditionFailed (412)
    │                                                          EtagMismatch (412)
    │                                                          MergeConflicts
    │                                                          ChecksFailed SourceMoved
    │                                                          MergeRequestNotOpen BranchInUse
    ├── ResourceLimitError  send less                    413
    ├── EmbeddingFailed     look at the provider         500
    ├── StorageError        look at the store            500   InvariantViolated StorageFull
    │                                                          SparkError
    ├── RecoveryRequired    effects may exist; wait      503
    └── RemoteError         do as the server says        500

Facts are attributes; text is for people. `kind` is the error class of the language reference
(`parse`, `type`, `constraint`, ...), `code` a stable fine code where one exists (`T6`,
`OG-MF-103`). Codes are only ever added.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from omnigraph.dataclass import dataclass
from omnigraph.json_form import JsonForm
from omnigraph.source_text import NO_SPAN, SourceText, Span


def did_you_mean(wrong: str, known: Iterable[str]) -> str | None:
    """Return a hint naming the known word nearest to `wrong`, if one is near."""
    by_folded = {word.lower(): word for word in sorted(known, reverse=True)}
    near = difflib.get_close_matches(wrong.lower(), by_folded, n=1, cutoff=0.6)
    return f"did you mean `{by_folded[near[0]]}`?" if near else None


def with_suggestion(message: str, wrong: str, known: Iterable[str]) -> str:
    """`message`, with the known word nearest to `wrong` behind it, if one is near."""
    hint = did_you_mean(wrong, known)
    return f"{message} — {hint}" if hint else message


class OmnigraphError(Exception):
    """Base of every error that Omnigraph raises on purpose."""

    kind: ClassVar[str] = "internal"
    http_status: ClassVar[int] = 500
    prefix: ClassVar[str] = ""

    def __init__(self, message: str, *, code: str | None = None) -> None:
        # A quoted value may not be valid Unicode, and a message has to fit terminals and responses.
        message = message.encode(errors="backslashreplace").decode()
        self.message = message
        self.code = code
        super().__init__(f"{self.prefix}{message}")

    def render(self) -> str:
        """Return the text a terminal shows."""
        return str(self)

    def add_outcome(self, outcome: str) -> None:
        """Add what happened to the data to the text, unless it is there already."""
        if outcome not in self.message:
            self.change_text(lambda text: f"{text}; {outcome}")

    def change_text(self, change: Callable[[str], str]) -> None:
        """Replace the text by what `change` makes of it."""
        self.message = change(self.message)
        self.args = (change(str(self.args[0])), *self.args[1:])

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of a traceback through our code."""
        from omnigraph.short_traceback import format_short

        return format_short(self, self.render())

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle all attributes: the signature of `__init__` differs from class to class."""
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(
    kind: type[OmnigraphError], args: tuple[Any, ...], facts: Mapping[str, Any]
) -> OmnigraphError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(facts)
    return error


class SourceError(OmnigraphError):
    """The text of a schema or query is wrong. Knows where, when `span` is given."""

    http_status = 400

    def __init__(
        self,
        message: str,
        *,
        span: Span | None = None,
        hint: str | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(f"{code}: {message}" if code else message, code=code)
        self.span = span if span is not None and span != NO_SPAN else None
        self.hint = hint
        self.source: SourceText | None = None

    def with_source(self, source: SourceText) -> SourceError:
        """Attach the text, so that the error shows its line. The first text attached stays."""
        if self.source is None:
            self.source = source
            if self.span is not None:
                self.add_note(source.excerpt(self.span, self.hint))
            elif self.hint:
                self.add_note(self.hint)
        return self

    @property
    def location(self) -> tuple[int, int] | None:
        """The 1-based line and column, when both text and span are known."""
        if self.source is None or self.span is None:
            return None
        return self.source.location(self.span)

    @property
    def byte_span(self) -> tuple[int, int] | None:
        """The span in UTF-8 bytes; never empty."""
        if self.source is None or self.span is None:
            return None
        return self.source.byte_span(self.span)

    def render(self) -> str:
        if self.source is not None and self.span is not None:
            return f"{self}\n{self.source.excerpt(self.span, self.hint)}"
        return f"{self}\n{self.hint}" if self.hint else str(self)


class ParseError(SourceError):
    """The text does not follow the grammar, or breaks a rule of one schema file."""

    kind = "parse"
    prefix = "parse error: "


class CatalogError(SourceError):
    """The declarations of a schema do not fit together."""

    kind = "catalog"
    prefix = "catalog error: "


class TypeCheckError(SourceError):
    """A query does not fit the schema. `code` names the rule that it breaks, such as T6."""

    kind = "type"
    prefix = "type error: "


class PlanError(SourceError):
    """A read was asked to run as a mutation, or the reverse."""

    kind = "plan"
    prefix = "plan error: "


class IdentityError(SourceError):
    """A `@rename_from` hint cannot be resolved against the accepted schema."""

    kind = "identity"
    prefix = "schema identity resolution failed: "


class BadRequestError(OmnigraphError):
    """The request cannot be served as it stands. Nothing was written."""

    kind = "bad_request"
    http_status = 400


class ChangeCursorRejected(BadRequestError):
    """A token of the change feed does not fit what it is used for."""

    prefix = "change cursor rejected: "


class ParamsError(BadRequestError):
    """A query parameter is missing, unknown in shape, or out of range."""

    kind = "params"


class ConstraintError(BadRequestError):
    """Rows break a rule of the schema. Nothing was written."""

    kind = "constraint"


class MigrationError(BadRequestError):
    """A schema change that cannot be applied. `code` is OG-XX-NNN where one exists."""

    kind = "migration"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(f"[{code}] {message}" if code else message, code=code)


class EmbeddingNotConfigured(BadRequestError):
    """Text has to be embedded and no provider is configured. Names the setting."""

    kind = "embedding_not_configured"


class EmbeddingModelMismatch(BadRequestError):
    """A text would be embedded by another model than the vectors it is compared with."""

    kind = "embedding_model_mismatch"

    def __init__(self, property_name: str, *, recorded: str, configured: str) -> None:
        super().__init__(
            f"'{property_name}' holds vectors of model '{recorded}', but the configured embedder "
            f"uses '{configured}' — choose that model again (OMNIGRAPH_EMBED_PROVIDER, "
            f"OMNIGRAPH_EMBED_MODEL={recorded}), give a vector, or make every vector anew with "
            "`omnigraph embed --reembed-all`"
        )
        self.property_name = property_name
        self.recorded = recorded
        self.configured = configured


class ConfigError(BadRequestError):
    """A configuration file cannot be used as it is. Names the file and the line."""

    kind = "config"


class AddressError(BadRequestError):
    """A command does not say clearly which graph it is about, or has a flag it does not take."""

    kind = "address"


class PolicyInvalid(BadRequestError):
    """A policy bundle, or a file of tests for one, is wrong. `problems` lists all of it."""

    kind = "policy_invalid"

    def __init__(self, what: str, problems: Sequence[str]) -> None:
        joint = " " if len(problems) == 1 else "\n  "
        super().__init__(joint.join([f"{what} is not valid:", *problems]))
        self.problems = tuple(problems)


class PolicyError(OmnigraphError):
    """The policy does not let this actor do that."""

    kind = "policy"
    http_status = 403


class ApprovalsMissing(PolicyError):
    """A merge into the branch needs approvals that it does not have. Nothing was merged.

    `number` is the merge request; None for a merge without one.
    """

    kind = "approvals_missing"

    def __init__(
        self,
        branch: str,
        *,
        number: int | None,
        required: int,
        missing: int,
        objectors: Sequence[str] = (),
        approvers: Sequence[str] = (),
    ) -> None:
        named = ", ".join(approvers) or "an actor whom the policy lets approve"
        who = f"approval can come from {named}"
        if number is None:
            text = (
                f"a merge into '{branch}' needs {_count_approvals(required)} — nothing was merged; "
                f"open a merge request ({who})"
            )
        elif missing:
            text = (
                f"merge request {number} has {required - missing} of the {required} approvals that "
                f"a merge into '{branch}' needs, {missing} missing — nothing was merged; {who}"
            )
        else:
            text = (
                f"merge request {number} has an objection by {', '.join(objectors)} — nothing was "
                "merged; it goes when they approve or withdraw it"
            )
        super().__init__(text)
        self.branch, self.number = branch, number
        self.required, self.missing = required, missing
        self.objectors, self.approvers = tuple(objectors), tuple(approvers)


def _count_approvals(count: int) -> str:
    return f"{count} approval" if count == 1 else f"{count} approvals"


class PolicyEvaluationFailed(PolicyError):
    """The policy could not be evaluated, which counts as a denial. Nothing was done."""

    kind = "policy_evaluation"
    http_status = 500

    def __init__(self, what: str, action: str, actor: str) -> None:
        super().__init__(
            f"{what} has no answer for action '{action}' of actor '{actor}' — nothing was done; "
            "check the bundle with `omnigraph policy validate`"
        )


class NotFoundError(OmnigraphError):
    """The named thing does not exist."""

    kind = "not_found"
    http_status = 404


class GraphNotFound(NotFoundError):
    """There is no graph at the location."""

    def __init__(self, uri: str, *, is_file: bool = False) -> None:
        create = f"create one with `omnigraph init --schema <file.pg> {uri}`"
        file = "that is a file or below one, and a graph is a directory; name the directory"
        super().__init__(f"no graph at '{uri}' — {file if is_file else create}")
        self.uri = uri


class RemoteNotFound(GraphNotFound):
    """A name stands for no other store, and there is no graph at a path of that name."""

    def __init__(self, name: str, known: Sequence[str] = ()) -> None:
        there = f"the remotes are {', '.join(known)}" if known else "there are no remotes"
        hint = did_you_mean(name, known) or "name one with `omnigraph remote add`, or give a path"
        message = f"remote '{name}' not found, and no graph at that path: {there} — {hint}"
        NotFoundError.__init__(self, message)
        self.uri = name


class BranchNotFound(NotFoundError):
    """There is no such branch."""

    def __init__(self, branch: str, known: Iterable[str] = ()) -> None:
        hint = did_you_mean(branch, known) or "list the branches to see those there are"
        super().__init__(f"branch '{branch}' not found — {hint}")
        self.branch = branch


class RevisionNotFound(BranchNotFound):
    """A revision names no branch, no tag and no commit."""

    def __init__(self, revision: str, known: Iterable[str] = ()) -> None:
        hint = did_you_mean(revision, known) or (
            "give a branch, a tag, or a commit by its id or the beginning of one, perhaps with ~3 "
            "or @{2026-11-01} behind it"
        )
        message = f"revision '{revision}' not found: no branch, tag or commit is called so — {hint}"
        NotFoundError.__init__(self, message)
        self.branch = revision


class TagNotFound(NotFoundError):
    """There is no such tag."""

    def __init__(self, name: str, known: Iterable[str] = ()) -> None:
        hint = did_you_mean(name, known) or "`omnigraph tag list` shows those there are"
        super().__init__(f"tag '{name}' not found — {hint}")
        self.name = name


class MergeRequestNotFound(NotFoundError):
    """There is no merge request of that number."""

    def __init__(self, number: int) -> None:
        super().__init__(
            f"merge request {number} not found — `omnigraph request list --state all` shows those "
            "there are"
        )
        self.number = number


class BackupNotFound(NotFoundError):
    """There is no backup at the location, or none of that name."""

    def __init__(self, uri: str, name: str | None) -> None:
        wanted = "no backup" if name is None else f"no backup '{name}'"
        super().__init__(
            f"there is {wanted} at '{uri}' — see what there is with `omnigraph backup list`"
        )
        self.uri, self.name = uri, name


class CommitNotFound(NotFoundError):
    """There is no such graph commit on any branch."""

    def __init__(self, commit_id: str) -> None:
        super().__init__(f"commit '{commit_id}' not found — `omnigraph commit list` shows them")
        self.commit_id = commit_id


class VersionNotFound(NotFoundError):
    """The manifest version does not exist, or was cleaned up."""

    def __init__(self, version: int, branch: str) -> None:
        super().__init__(f"manifest version {version} not found on branch '{branch}'")
        self.version = version
        self.branch = branch


class EntityNotFound(NotFoundError):
    """There is no such node or edge on the branch."""

    def __init__(
        self,
        table_key: str,
        entity_id: str,
        branch: str,
        notes: Iterable[str] = (),
        *,
        deleted_by: str | None = None,
    ) -> None:
        what = f"{table_key} '{entity_id}'"
        if deleted_by is not None:
            text = (
                f"{what} is not on branch '{branch}': commit '{deleted_by}' deleted it — its "
                "history shows what it was"
            )
        else:
            gaps = "; ".join(notes)
            text = (
                f"{what} is not on branch '{branch}', nor in its stored history: {gaps}"
                if gaps
                else f"{what} was never on branch '{branch}' — name one that is there, by its id"
            )
        super().__init__(text)
        self.table_key = table_key
        self.entity_id = entity_id
        self.branch = branch
        self.deleted_by = deleted_by


class ChangeFeedGap(NotFoundError):
    """The feed of changes has a gap: a cleanup removed a state that a reader has not seen yet."""

    http_status = 410

    def __init__(self, commit_id: str, *, cursor: str | None = None) -> None:
        super().__init__(
            f"the changes around commit '{commit_id}' are gone: a cleanup removed its state — "
            "take a new baseline, and go on from its cursor"
        )
        self.first_unreadable_commit_id = commit_id
        self.cursor = cursor


class CommitStateGone(VersionNotFound):
    """The commit is part of the history, but the state it left cannot be read any more."""

    def __init__(self, commit_id: str, version: int, branch: str) -> None:
        NotFoundError.__init__(
            self,
            f"commit '{commit_id}' is known, but its state is gone: a cleanup removed it, or it "
            f"went with branch '{branch}' — read a newer commit",
        )
        self.commit_id = commit_id
        self.version = version
        self.branch = branch


class TableNotFound(NotFoundError):
    """There is no table dataset at the location."""

    def __init__(self, location: str) -> None:
        super().__init__(f"no table at '{location}' — the graph there is incomplete or was removed")
        self.location = location


class TableVersionNotFound(NotFoundError):
    """A table exists, but not at this version: it was never written, or was cleaned up."""

    def __init__(self, location: str, version: int) -> None:
        super().__init__(
            f"version {version} of the table at '{location}' is not there — "
            "it was cleaned up or never written; read a newer snapshot"
        )
        self.location = location
        self.version = version


class ConflictError(OmnigraphError):
    """Another writer came first. Nothing of this request took effect."""

    kind = "conflict"
    http_status = 409


class RowLevelCasContention(ConflictError):
    """Another writer landed one of our keys first. Internal: the publisher checks and retries."""


class CommitConflict(ConflictError):
    """A staged transaction conflicts with the current version of the table. HEAD is unmoved."""


class NotFastForward(ConflictError):
    """The branch at the receiver has commits that the sender does not have."""

    def __init__(self, branch: str, receiver_head: str, sender_head: str) -> None:
        super().__init__(
            f"branch '{branch}' was not moved: the receiver has commit '{receiver_head}', which "
            f"'{sender_head}' does not come from — pull first, which merges both, and push again"
        )
        self.branch, self.receiver_head, self.sender_head = branch, receiver_head, sender_head


class UnrelatedHistories(ConflictError):
    """The two graphs are not copies of one another: they have no commit in common."""

    def __init__(self, source: str, target: str) -> None:
        super().__init__(
            f"'{source}' and '{target}' are different graphs: they have no commit in common — "
            "nothing was changed; clone one of them, or export and load its rows"
        )
        self.source, self.target = source, target


class SourceChanged(ConflictError):
    """A file that was to be copied is gone: a cleanup or a deleted branch took it."""

    def __init__(self, uri: str) -> None:
        super().__init__(
            f"'{uri}' was removed while its graph was copied — what was copied stays; run the same "
            "call again to continue"
        )
        self.uri = uri


class SchemaMoved(ConflictError):
    """The write was checked against a schema that has been replaced. Nothing was written."""


class HeadMoved(ConflictError):
    """A table's HEAD is not the version a transaction was staged on. Nothing was committed."""

    def __init__(self, location: str, *, expected: int, actual: int) -> None:
        super().__init__(
            f"the table at '{location}' is at version {actual}, the write was staged on {expected} "
            "— nothing was committed; refresh and stage again"
        )
        self.location = location
        self.expected = expected
        self.actual = actual


class TableExists(ConflictError):
    """A dataset is already there; creation never replaces one."""

    def __init__(self, location: str) -> None:
        super().__init__(f"a table already exists at '{location}' — creation never replaces one")
        self.location = location


class ForkExists(ConflictError):
    """A fork of that name is already on the table: a live ref, or a tree left without one."""

    def __init__(self, location: str, branch: str, *, has_ref: bool) -> None:
        what = "is already forked" if has_ref else "has leftover files of an unfinished fork"
        super().__init__(
            f"the table at '{location}' {what} for branch '{branch}' — refresh and retry"
        )
        self.location = location
        self.branch = branch
        self.has_ref = has_ref


class ForkInUse(ConflictError):
    """A fork cannot be deleted while another branch is based on it."""

    def __init__(self, location: str, branch: str) -> None:
        super().__init__(
            f"the fork '{branch}' of the table at '{location}' is still in use by another branch "
            "— delete the branches that came from it first"
        )
        self.location = location
        self.branch = branch


class ExpectedVersionMismatch(ConflictError):
    """A table moved between the snapshot a write was prepared on and its publish."""

    def __init__(self, table_key: str, *, expected: int, actual: int) -> None:
        super().__init__(
            f"stale view of '{table_key}': expected manifest table version {expected} "
            f"but current is {actual} — refresh and retry"
        )
        self.table_key = table_key
        self.expected = expected
        self.actual = actual


class KeyConflict(ConflictError):
    """A strict insert met an id that is already there."""

    def __init__(self, table_key: str, entity_id: str) -> None:
        super().__init__(
            f"key conflict: '{entity_id}' already exists in '{table_key}' — "
            "use mode merge to replace it; nothing was written"
        )
        self.table_key = table_key
        self.entity_id = entity_id


@dataclass(frozen=True, slots=True)
class MergeConflict(JsonForm):
    """One thing a merge cannot decide. `kind` is snake case, as on the wire.

    `base`, `ours` (the target) and `theirs` (the source) hold the properties that differ, None
    where the row is not there. A rule that only the merged graph breaks has no three sides.
    """

    kind: str
    table_key: str
    row_id: str | None
    message: str
    base: Mapping[str, Any] | None = None
    ours: Mapping[str, Any] | None = None
    theirs: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        row = "" if self.row_id is None else f" '{self.row_id}'"
        return f"{self.table_key}{row} {self.kind}"

    def to_json(self) -> dict[str, Any]:
        """The wire form, with the sides where there are any."""
        value: dict[str, Any] = {
            "table_key": self.table_key,
            "row_id": self.row_id,
            "kind": self.kind,
            "message": self.message,
        }
        sides = {"base": self.base, "ours": self.ours, "theirs": self.theirs}
        if any(side is not None for side in sides.values()):
            value |= {name: None if side is None else dict(side) for name, side in sides.items()}
        return value


class MergeConflicts(ConflictError):
    """Two branches cannot be joined as they are. The target is unchanged."""

    def __init__(
        self, conflicts: Sequence[MergeConflict], *, into: str, verb: str = "merge"
    ) -> None:
        shown = "; ".join(str(each) for each in conflicts[:3])
        more = f"; and {len(conflicts) - 3} more" if len(conflicts) > 3 else ""
        super().__init__(f"{verb} conflicts: {shown}{more}")
        self.conflicts = tuple(conflicts)
        self.into = into
        self.verb = verb
        self.add_note(self._advice)

    @property
    def _advice(self) -> str:
        again = f"say how to resolve, and {self.verb} again."
        return f"{self.into} is unchanged. Change one side, or {again}"

    def render(self) -> str:
        return f"{self}\n{self._advice}"


@dataclass(frozen=True, slots=True)
class CheckFailure(JsonForm):
    """A check that does not hold: how many rows it returned, the first of them, what it expects."""

    name: str
    row_count: int
    rows: tuple[Mapping[str, Any], ...]
    expected: tuple[Mapping[str, Any], ...] = ()

    def __str__(self) -> str:
        wanted = f"{len(self.expected)}" if self.expected else "no"
        such = f", such as {dict(self.rows[0])}" if self.rows else ""
        return f"'{self.name}' returns {self.row_count} rows instead of {wanted} rows{such}"


class ChecksFailed(ConflictError):
    """A write would leave a state in which a check of the branch does not hold."""

    def __init__(self, failures: Sequence[CheckFailure], branch: str) -> None:
        shown = "; ".join(str(each) for each in failures[:3])
        more = f"; and {len(failures) - 3} more" if len(failures) > 3 else ""
        super().__init__(
            f"checks of branch '{branch}' do not hold: {shown}{more} — change the rows, or the "
            "checks with `omnigraph checks apply`"
        )
        self.failures = tuple(failures)
        self.branch = branch

    def without_rows(self) -> ChecksFailed:
        """The same for a caller who may not read everything that a check reads."""
        bare = [CheckFailure(each.name, each.row_count, ()) for each in self.failures]
        hidden = ChecksFailed(bare, self.branch)
        hidden.add_outcome("nothing was written")
        return hidden


class CommitNotReplayable(BadRequestError):
    """What a commit changed cannot be undone, or made again, by changing rows."""

    def __init__(self, commit_id: str, reason: str) -> None:
        super().__init__(f"commit '{commit_id}' {reason}; nothing was written")
        self.commit_id = commit_id


class GraphExists(ConflictError):
    """There is already a graph, or part of one, at the location."""

    def __init__(self, uri: str, *, is_partial: bool = False) -> None:
        found = f"a graph already exists at '{uri}' — open it, or choose another location"
        if is_partial:
            found = (
                f"part of a graph exists at '{uri}': an init is under way there, or died — "
                "if none is running, remove what is there and run it again"
            )
        super().__init__(found)
        self.uri = uri


class BranchExists(ConflictError):
    """A branch of that name is there already."""

    def __init__(self, branch: str) -> None:
        super().__init__(f"branch '{branch}' already exists — choose another name")
        self.branch = branch


class BranchInUse(ConflictError):
    """Other branches come from commits of the branch that would be dropped. Nothing was done."""

    def __init__(self, branch: str, others: Sequence[str]) -> None:
        named = ", ".join(f"'{each}'" for each in others[:10])
        more = f" and {len(others) - 10} more" if len(others) > 10 else ""
        comes = "comes" if len(others) == 1 else "come"
        super().__init__(
            f"branch '{branch}' is in use: {named}{more} {comes} from commits that would be "
            "dropped — nothing was changed; use `revert` to take them back by a new commit, or go "
            "back less far"
        )
        self.branch, self.others = branch, tuple(others)


class TagExists(ConflictError):
    """A tag of that name is there already."""

    def __init__(self, name: str) -> None:
        super().__init__(f"tag '{name}' already exists — choose another name, or delete it first")
        self.name = name


class MergeRequestNotOpen(ConflictError):
    """The merge request is merged or closed. Nothing was done."""

    kind = "merge_request_not_open"

    def __init__(self, number: int, state: str, commit_id: str | None = None) -> None:
        of = f" by commit '{commit_id}'" if commit_id else ""
        advice = "reopen it first" if state == "closed" else "open another one for what came since"
        super().__init__(f"merge request {number} is {state}{of} — nothing was done; {advice}")
        self.number, self.state, self.commit_id = number, state, commit_id


class SourceMoved(ConflictError):
    """The source of a merge request is not what the caller looked at. Nothing was done."""

    kind = "source_moved"

    def __init__(self, branch: str, *, expected: str, actual: str) -> None:
        super().__init__(
            f"branch '{branch}' has moved: expected commit '{expected}' but its head is "
            f"'{actual}' — nothing was done; look at what came since, then do it again"
        )
        self.branch, self.expected, self.actual = branch, expected, actual


class PreconditionFailed(ConflictError):
    """The branch head is not the commit the caller expected."""

    kind = "precondition"
    http_status = 412

    def __init__(self, *, expected: str, actual: str | None) -> None:
        super().__init__(
            f"precondition failed: expected head {expected} but it is {actual} — "
            "read again and retry; nothing was written"
        )
        self.expected = expected
        self.actual = actual


class EtagMismatch(ConflictError):
    """A Blob is not the one that the caller has seen."""

    kind = "precondition"
    http_status = 412

    def __init__(self, *, expected: str, actual: str | None) -> None:
        found = "it has no bytes" if actual is None else f"it is {actual}"
        super().__init__(
            f"the bytes have changed: expected the ETag {expected} but {found} — "
            "read them again and retry; nothing was written"
        )
        self.expected = expected
        self.actual = actual


class ResourceLimitError(OmnigraphError):
    """The request is larger than a limit."""

    kind = "resource_limit"
    http_status = 413

    def __init__(self, resource: str, *, limit: int, actual: int, advice: str) -> None:
        super().__init__(f"{resource} is {actual}, the limit is {limit} — {advice}")
        self.resource = resource
        self.limit = limit
        self.actual = actual


class EmbeddingFailed(OmnigraphError):
    """The provider did not give usable vectors. Nothing was written."""

    kind = "embedding_failed"


class StorageError(OmnigraphError):
    """The store did not do what was asked: disk full, permission, a damaged file."""

    kind = "storage"


class ObjectMissing(StorageError):
    """A text object that has to be there is not."""

    def __init__(self, uri: str) -> None:
        super().__init__(f"'{uri}' does not exist — the graph is incomplete or the path is wrong")
        self.uri = uri


class DamagedFile(StorageError):
    """A file is not what its writer recorded. It was not copied."""

    def __init__(self, uri: str, problem: str) -> None:
        super().__init__(
            f"'{uri}' {problem} — it was not copied; restore it from a backup, and see what else "
            "is damaged with `omnigraph verify --content`"
        )
        self.uri = uri


class StorageFull(StorageError):
    """The store has no room left. What was acknowledged before is safe."""


class StoragePermissionDenied(StorageError):
    """The store refused access with the credentials in use."""


class SparkError(StorageError):
    """Spark did not start, or a job of it failed. Nothing was committed."""

    kind = "spark"


class InvariantViolated(StorageError):
    """The store is in a state the protocol rules out. Stop and look before writing again."""


class RecoveryRequired(OmnigraphError):
    """A write may have taken effect in part. Do not repeat it before recovery has decided."""

    kind = "recovery_required"
    http_status = 503

    def __init__(self, message: str, *, operation_id: str | None = None) -> None:
        super().__init__(message)
        self.operation_id = operation_id


class RemoteError(OmnigraphError):
    """A server refused the request, or could not be reached. The text is the server's own.

    `status` is its HTTP status (None when there was no answer), `code` its error code, `details`
    the other members of its answer.
    """

    kind = "remote"

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message, code=code)
        self.status = status
        self.details = dict(details or {})
