"""The crash matrix: who writes, where it dies, over how many tables, and how it must end.

a cell dies at                              its rows    its audit row
anything before the sidecar                 old         none
the sidecar, or with tables uncommitted     old         RolledBack
all tables committed, up to the delete      new         RolledForward
after the sidecar's delete                  new         none
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from omnigraph.failpoints import Failpoint as Point
from tests.recovery.work import BRANCH, STATEMENTS

TABLE_COUNTS = (1, 2, 5)
MEMBER_COUNTS = (1, 3, 8)
MATRIX_MIN = 400

SHOWN = ("orphan", "fork", "checked")
FORWARD, BACK, DISCARDED = "RolledForward", "RolledBack", "OrphanedBranchDiscarded"


@dataclass(frozen=True)
class Cell:
    """One death. `recovery_point` is where the first recovery dies in its turn."""

    group: str
    writer: str
    count: int
    template: str
    point: Point
    nth: int = 1
    rows: str = "old"
    audit: str | None = None
    recovery_point: Point | None = None
    recovery_nth: int = 1
    branch: str = "main"

    @property
    def arm(self) -> str:
        return f"{self.point}=kill@{self.nth}"

    @property
    def recovery_arm(self) -> str:
        return f"{self.recovery_point}=kill@{self.recovery_nth}"

    def __str__(self) -> str:
        start = f" over {self.template}" if self.template.startswith(SHOWN) else ""
        died = f"{self.writer}{start}, {self.count} tables, {self.point}@{self.nth}"
        if self.recovery_point is None:
            return died
        died += ", branch deleted" if self.rows == "gone" else ""
        return f"{died}, then {self.recovery_point}@{self.recovery_nth}"


def write_points(count: int) -> Iterator[tuple[Point, int, str, str | None]]:
    """Every step of a write of `count` tables, and how a death there must end."""
    yield Point.RECOVERY_SIDECAR_LIST, 1, "old", None
    yield Point.COMMIT_AFTER_STAGE, 1, "old", None
    yield Point.RECOVERY_SIDECAR_WRITE, 1, "old", None
    yield Point.COMMIT_AFTER_SIDECAR, 1, "old", BACK
    for nth in range(1, count):
        yield Point.COMMIT_AFTER_TABLE, nth, "old", BACK
    yield Point.COMMIT_AFTER_TABLE, count, "new", FORWARD
    yield Point.MUTATION_POST_FINALIZE_PRE_PUBLISHER, 1, "new", FORWARD
    yield Point.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT, 1, "new", FORWARD
    yield Point.GRAPH_PUBLISH_AFTER_MANIFEST_COMMIT, 1, "new", FORWARD
    yield Point.RECOVERY_SIDECAR_DELETE, 1, "new", FORWARD
    yield Point.RECOVERY_AFTER_SIDECAR_DELETE, 1, "new", None


def writer_cells() -> Iterator[Cell]:
    main = ("insert", "update", "delete", "load append", "load merge", "load overwrite")
    for writer in (*main, "conditional"):
        for count in TABLE_COUNTS:
            for point, nth, rows, audit in write_points(count):
                yield Cell("writers", writer, count, "plain", point, nth, rows, audit)
    for writer in STATEMENTS:
        yield Cell("writers", writer, 2, "plain", Point.COMMIT_AFTER_TABLE, 1, "old", BACK)
        yield Cell("writers", writer, 2, "plain", Point.COMMIT_AFTER_TABLE, 2, "new", FORWARD)
    for count in TABLE_COUNTS:
        point = Point.MUTATION_DELETE_NODE_PRE_PRIMARY_DELETE
        yield Cell("writers", "delete", count, "plain", point)


def checked_cells() -> Iterator[Cell]:
    """Writes that are held to a check count once it has held, and not as soon as tables moved."""
    for writer in ("insert", "delete", "load merge"):
        for count in TABLE_COUNTS:
            for point, nth, rows, audit in write_points(count):
                is_unchecked = point is Point.COMMIT_AFTER_TABLE and nth == count
                outcome = ("old", BACK) if is_unchecked else (rows, audit)
                yield Cell("checked", writer, count, "checked", point, nth, *outcome)


def group_cells() -> Iterator[Cell]:
    """Several callers in one commit, each of which writes two tables; one caller runs alone."""
    for count in MEMBER_COUNTS:
        outcomes = list(write_points(2))[1:]
        if count > 1:
            commits = 2 * count
            point = Point.GROUP_AFTER_MEMBER
            outcomes += [(point, nth, "old", BACK) for nth in range(1, commits)]
            outcomes.append((point, commits, "new", FORWARD))
        for step, nth, rows, audit in outcomes:
            yield Cell("groups", "group", count, "plain", step, nth, rows, audit)
    deaths = [
        (Point.GROUP_AFTER_MEMBER, 2, "old", BACK),
        (Point.COMMIT_AFTER_TABLE, 2, "new", FORWARD),
    ]
    for point, nth, rows, audit in deaths:
        for step in (Point.RECOVERY_AFTER_CLASSIFY, *RECORDS):
            yield Cell("groups", "group", 3, "plain", point, nth, rows, audit, step)


def branch_cells() -> Iterator[Cell]:
    def cell(
        writer: str,
        count: int,
        template: str,
        point: Point,
        nth: int = 1,
        rows: str = "old",
        audit: str | None = None,
    ) -> Cell:
        return Cell("branches", writer, count, template, point, nth, rows, audit, branch=BRANCH)

    for count in TABLE_COUNTS:
        for nth in range(1, count + 1):
            yield cell("branch insert", count, "branch", Point.FORK_AFTER_CREATE, nth)
        for outcome in write_points(count):
            yield cell("branch insert", count, "branch", *outcome)
            if count == 2:
                yield cell("branch insert", count, "forked", *outcome)
        # A ref that a dead writer left is found, judged and replaced.
        for point in (
            Point.FORK_BEFORE_CLASSIFY,
            Point.CLASSIFY_FRESH_READ,
            Point.FORK_BEFORE_RECLAIM,
            Point.FORK_AFTER_CREATE,
        ):
            yield cell("branch insert", count, "orphan fork", point)
        point = Point.BRANCH_DELETE_BEFORE_TABLE_CLEANUP
        yield cell("branch delete", count, f"forked{count}", point, 1, "new")
        for nth in range(1, count + 1):
            yield cell("branch reset", count, f"twice{count}", Point.FORK_AFTER_CREATE, nth)
        for point, rows in (
            (Point.BRANCH_RESET_BEFORE_PUBLISH, "old"),
            (Point.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT, "old"),
            (Point.GRAPH_PUBLISH_AFTER_MANIFEST_COMMIT, "new"),
            (Point.BRANCH_RESET_BEFORE_TABLE_CLEANUP, "new"),
        ):
            yield cell("branch reset", count, f"twice{count}", point, 1, rows)
    point = Point.BRANCH_CREATE_AFTER_MANIFEST_BRANCH_CREATE
    yield cell("branch create", 1, "plain", point, 1, "new")


def compaction_cells() -> Iterator[Cell]:
    """The write is done; its self-care dies. Points that the write itself passes come second."""
    outcomes = [
        (Point.OPTIMIZE_AFTER_STAGE, 1, None),
        (Point.RECOVERY_SIDECAR_WRITE, 2, None),
        (Point.COMMIT_AFTER_SIDECAR, 2, BACK),
        (Point.OPTIMIZE_POST_PHASE_B_PRE_MANIFEST_COMMIT, 1, FORWARD),
        (Point.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT, 2, FORWARD),
        (Point.GRAPH_PUBLISH_AFTER_MANIFEST_COMMIT, 2, FORWARD),
        (Point.RECOVERY_SIDECAR_DELETE, 2, FORWARD),
        (Point.RECOVERY_AFTER_SIDECAR_DELETE, 2, None),
        (Point.OPTIMIZE_BEFORE_MANIFEST_COMPACTION, 1, None),
        (Point.OPTIMIZE_AFTER_MANIFEST_COMPACTION, 1, None),
    ]
    for point, nth, audit in outcomes:
        yield Cell("upkeep", "compaction", 1, "fragments", point, nth, "new", audit)


RECORDS = (
    Point.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT,
    Point.GRAPH_PUBLISH_AFTER_MANIFEST_COMMIT,
    Point.RECOVERY_AFTER_PUBLISH,
    Point.RECOVERY_RECORD_AUDIT,
    Point.RECOVERY_SIDECAR_DELETE,
    Point.RECOVERY_AFTER_SIDECAR_DELETE,
)
"""What every recovery ends with."""


def recovery_cells() -> Iterator[Cell]:
    """Recovery dies in its turn, at each of its own steps."""
    complete = Point.MUTATION_POST_FINALIZE_PRE_PUBLISHER
    for writer, template, branch in (
        ("insert", "plain", "main"),
        ("branch insert", "branch", BRANCH),
    ):
        for count in TABLE_COUNTS if branch == "main" else (2,):
            deaths: list[tuple[Point, int, str, str]] = [
                (Point.COMMIT_AFTER_SIDECAR, 1, "old", BACK),
                (complete, 1, "new", FORWARD),
                (Point.RECOVERY_SIDECAR_DELETE, 1, "new", FORWARD),
            ]
            if count > 1:
                deaths.append((Point.COMMIT_AFTER_TABLE, count // 2, "old", BACK))
            for point, nth, rows, audit in deaths:
                moved = nth if point is Point.COMMIT_AFTER_TABLE else 0
                steps = [(Point.RECOVERY_SIDECAR_LIST, 1), (Point.RECOVERY_AFTER_CLASSIFY, 1)]
                steps += [(Point.RECOVERY_AFTER_RESTORE, each) for each in range(1, moved + 1)]
                steps += [(each, 1) for each in RECORDS]
                for step, step_nth in steps:
                    yield Cell(
                        "recovery", writer, count, template, point, nth, rows, audit, step,
                        step_nth, branch,
                    )  # fmt: skip
    for step in (Point.RECOVERY_ORPHAN_DISCARD_AUDIT_APPEND, *RECORDS):
        yield Cell(
            "recovery", "branch insert", 2, "branch", Point.COMMIT_AFTER_TABLE, 1, "gone",
            DISCARDED, step, 1, BRANCH,
        )  # fmt: skip


def heal_cells() -> Iterator[Cell]:
    """A live handle finishes a write of its own process that failed, and dies doing so."""
    for entry in ("refresh", "mutate"):
        for count in TABLE_COUNTS:
            for step in (Point.RECOVERY_AFTER_CLASSIFY, *RECORDS):
                yield Cell("heal", f"heal by {entry}", count, "plain", step, 1, "new", FORWARD)


def init_cells() -> Iterator[Cell]:
    for count in TABLE_COUNTS:
        yield Cell("init", "init", count, "", Point.INIT_AFTER_SCHEMA_PG_WRITTEN)
        yield Cell("init", "init", count, "", Point.INIT_AFTER_SCHEMA_CONTRACT_WRITTEN)
        for nth in range(1, count + 1):
            yield Cell("init", "init", count, "", Point.INIT_AFTER_TABLE, nth)
        yield Cell("init", "init", count, "", Point.INIT_AFTER_COORDINATOR_INIT, 1, "new")


def features(cell: Cell) -> set[Hashable]:
    """What a sample has to show at least once."""
    return {
        (cell.group, cell.writer),
        (cell.group, cell.template),
        (cell.group, cell.count),
        (cell.group, cell.rows, cell.audit),
        ("at", cell.point),
        ("then", cell.recovery_point),
    }


GRAPH_CELLS = [
    *writer_cells(),
    *checked_cells(),
    *group_cells(),
    *branch_cells(),
    *compaction_cells(),
    *recovery_cells(),
    *heal_cells(),
]
INIT_CELLS = list(init_cells())
