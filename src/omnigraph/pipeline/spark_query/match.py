"""Match: trees and branches as joins, counted variables as messages, in the order of the plan.

a variable      the rows of its table that its filters and masks keep; no table at all when
                nothing is asked of it, because an edge always has both of its nodes
a bound branch  a join with the pairs of the hop, then with the child's table
closing hops    semi-joins on both ends; joins when the edge itself is bound
a tail          a message: pairs joined with the child's weight, summed for each parent
a counted tree  one row with the sums over its root
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from omnigraph.executor.filters import constants_hold, to_stored_predicate
from omnigraph.ir.expressions import Compare, CompareKind, Predicate, PropertyRef
from omnigraph.ir.query import WalkMode
from omnigraph.ir.variables import predicate_variables
from omnigraph.pipeline.spark_query.columns import FROM, TO, WEIGHT, id_of, property_of
from omnigraph.pipeline.spark_query.identity import is_interface
from omnigraph.pipeline.spark_query.interface import read_interface
from omnigraph.pipeline.spark_query.paths import PathNeeds, path_ends
from omnigraph.pipeline.spark_query.row_filters import keep_rows, to_join_condition
from omnigraph.pipeline.spark_query.rows import NOTHING, Payload, Rows, fold, forget, pair, take_in
from omnigraph.pipeline.spark_query.run import SparkRun
from omnigraph.pipeline.spark_query.walk import walk_ends
from omnigraph.planner.pattern import Hop
from omnigraph.planner.plan import MatchPlan, NegationPlan
from omnigraph.planner.trees import Branch, Tree
from omnigraph.storage.predicates import And


class Matcher:
    """Matches one pattern. With `exists` rows may repeat: only whether there is one matters."""

    def __init__(
        self,
        run: SparkRun,
        plan: MatchPlan,
        needs: frozenset[PropertyRef],
        payload: Payload = NOTHING,
        *,
        exists: bool = False,
    ) -> None:
        self.run = run
        self.plan = plan
        self.pattern = plan.pattern
        self.payload = payload
        self.exists = exists
        self.needs = needs
        self._needs: dict[str, list[str]] = {}
        for ref in needs:
            self._needs.setdefault(ref.variable, []).append(ref.property)
        self._tails: dict[str, list[Branch]] = {}
        for branch in (each for tree in plan.trees for each in tree.branches if each.is_tail):
            self._tails.setdefault(branch.parent, []).append(branch)
        self._masks: dict[str, list[NegationPlan]] = {}
        for negation in plan.negations:
            if negation.mask_of is not None:
                self._masks.setdefault(negation.mask_of, []).append(negation)
        self._waiting: list[Predicate | NegationPlan] = [
            *plan.pattern.across,
            *(each for each in plan.negations if each.mask_of is None),
        ]

    # The whole pattern

    def match(self, seeds: Rows | None = None) -> Rows:
        """The rows of all matches; of those that extend `seeds`, when there are some."""

        # What is asked of outer variables may be all there is: no tree hangs on an edge alone.
        rows = seeds and self._begin_outer(self._apply(seeds))
        for tree in self.plan.trees:
            if tree.root is None:
                assert rows is not None, "a match that hangs on outer variables is seeded"
                rows = self._grow(tree, rows)
            else:
                grown = self._grow(tree, None)
                rows = grown if rows is None else self._apply(self._join(rows, grown))
        if rows is None:
            rows = Rows(self.run.spark.range(1).drop("id"), frozenset())
        # A `not` that mentions no variable waits for none, and no tree has to bind one.
        rows = self._add_blocks(self._apply(rows))
        assert not self._waiting, f"never applied: {self._waiting}"
        if not constants_hold(self.run.local, self.pattern.constants):
            rows = rows.keep(rows.frame.where(fn.lit(False)))
        return rows

    def _add_blocks(self, rows: Rows) -> Rows:
        from omnigraph.pipeline.spark_query.blocks import add_block

        for block in self.plan.blocks:
            rows = self._apply(add_block(self.run, self.pattern, rows, block, self.needs))
        return rows

    def match_variable(self, variable: str) -> Rows:
        """The matches of a pattern that hangs on one outer variable, whatever that is bound to."""
        hanging, *others = self.plan.trees
        if hanging.root is None:
            self.plan = replace(self.plan, trees=(replace(hanging, root=variable), *others))
        return self.match()

    def _grow(self, tree: Tree, rows: Rows | None) -> Rows:
        starts: Iterable[str] = self.pattern.outer
        if tree.root is not None:
            rows, starts = self._start(tree.root), (tree.root,)
            if tree.is_counted:
                return self._total(tree.root, self._with_tails(rows, tree.root))
        for hop in tree.closing:
            rows = self._close(rows or self._read(hop.source), hop)
        for name in starts:
            rows = self._with_tails(rows, name)
        rows = rows and self._apply(rows)
        for branch in tree.branches:
            if not branch.is_tail:
                rows = self._apply(self._step(rows, branch))
                rows = self._drop(rows, branch)
        return rows or self._apply(self._read(str(tree.root)))

    def _join(self, rows: Rows, grown: Rows) -> Rows:
        """Two parts that share no variable: by equal values where a predicate asks for them."""
        for each in self._waiting:
            if not isinstance(each, NegationPlan):
                condition = to_join_condition(each, rows, grown)
                if condition is not None:
                    self._waiting.remove(each)
                    return pair(rows, grown, condition)
        return pair(rows, grown, ())

    # Variables

    def _start(self, variable: str) -> Rows | None:
        """What a variable may be bound to; None when that is every node of its type."""
        filters = self.pattern.filters.get(variable, ())
        names = self._needs.get(variable, ())
        masks = self._masks.get(variable, ())
        if not filters and not names and not masks:
            return None
        return self._read(variable, filters)

    def _read(self, variable: str, filters: Sequence[Predicate] = ()) -> Rows:
        names = self._needs.get(variable, ())
        if is_interface(self.run.local.catalog, self.pattern, variable):
            rows = read_interface(self.run, self.pattern, variable, filters, names)
        else:
            frame = self.run.read_nodes(variable, self.pattern.nodes[variable], filters, names)
            rows = Rows(frame, frozenset([variable]))
        for negation in self._masks.get(variable, ()):
            rows = self._mask(rows, negation)
        return rows

    def _begin_outer(self, rows: Rows) -> Rows:
        """The seeds that meet what the pattern asks of outer variables."""
        for name in self.pattern.outer:
            for each in self.pattern.filters.get(name, ()):
                rows = keep_rows(self.run, self.pattern, rows, each)
            for negation in self._masks.get(name, ()):
                rows = self._mask(rows, negation)
        for name in self.pattern.outer_edges:
            for each in self.pattern.filters.get(name, ()):
                rows = keep_rows(self.run, self.pattern, rows, each)
        return rows

    def _mask(self, rows: Rows, negation: NegationPlan) -> Rows:
        from omnigraph.pipeline.spark_query.negate import without_masked

        return without_masked(self.run, self.pattern, rows, negation)

    # Branches

    def _step(self, rows: Rows | None, branch: Branch) -> Rows:
        hop, parent, child = branch.hop, branch.parent, branch.child
        ends = self._ends(hop, rows, parent, child)
        near, far = (FROM, TO) if parent == hop.source else (TO, FROM)
        frame = ends.withColumnsRenamed({near: id_of(parent), far: id_of(child)})
        bound = frozenset([child, *self._bound_edge(hop)])
        if rows is None:
            grown = Rows(frame, bound | {parent})
        else:
            joined = rows.frame.join(frame, [id_of(parent)])
            grown = replace(rows, frame=joined, variables=rows.variables | bound)
        found = self._start(child)
        if found is not None:
            grown = grown.keep(grown.frame.join(found.frame, [id_of(child)]))
        for each in branch.closing:
            grown = self._close(grown, each)
        return self._with_tails(grown, child) or grown

    def _drop(self, rows: Rows, branch: Branch) -> Rows:
        names = set(branch.drops)
        if not branch.is_bound:
            hops = (branch.hop, *branch.closing)
            names.update([branch.child, *(name for hop in hops for name in self._bound_edge(hop))])
        if not names:
            return rows
        rows = forget(rows, names, NOTHING if self.exists else self.payload)
        is_counted = branch.folds or not branch.is_bound
        return fold(rows, rows.bindings()) if is_counted and not self.exists else rows

    def _close(self, rows: Rows, hop: Hop) -> Rows:

        ends = self._ends(hop, rows, hop.source, hop.target, is_membership=True)
        if hop.source == hop.target:
            ends = ends.where(fn.col(FROM) == fn.col(TO)).drop(TO)
            names = {FROM: id_of(hop.source)}
        else:
            names = {FROM: id_of(hop.source), TO: id_of(hop.target)}
        is_set = hop.edge_variable is None and hop.mode is not WalkMode.ALL_SHORTEST
        how = "left_semi" if is_set else "inner"
        frame = rows.frame.join(ends.withColumnsRenamed(names), list(names.values()), how)
        return replace(rows, frame=frame, variables=rows.variables | {*self._bound_edge(hop)})

    def _ends(
        self, hop: Hop, rows: Rows | None, near: str, far: str, *, is_membership: bool = False
    ) -> DataFrame:
        """The pairs of a hop, with what is read of its edge."""
        if not hop.is_single:
            return self._walk(hop, rows, near, far)
        columns = {
            name: property_of(variable, name)
            for variable in self._bound_edge(hop)
            for name in ["id", *self._needs.get(variable, ())]
        }
        filters = (*self.pattern.filters.get(hop.edge_variable or "", ()), *hop.conditions)
        is_set = hop.edge_variable is None and not self.exists and not is_membership
        return self.run.ends(hop, columns, filters, distinct=is_set, at=self._named_end(hop))

    def _named_end(self, hop: Hop) -> tuple[str, pa.Array] | None:
        """An end of a hop whose key is given, and what it may be bound to."""
        for variable, end in ((hop.source, FROM), (hop.target, TO)):
            ids = self._ids_by_key(variable)
            if ids is not None:
                return end, ids
        return None

    def _ids_by_key(self, variable: str) -> pa.Array | None:
        """What a variable may be bound to, looked up, when a filter names its key; else None."""
        type_name = self.pattern.nodes[variable]
        key = self.run.local.catalog.nodes[type_name].key
        filters = [
            each
            for each in self.pattern.filters.get(variable, ())
            if isinstance(each, Compare) and each.kind is CompareKind.EQUAL
            if isinstance(each.left, PropertyRef) and key == (each.left.property,)
        ]
        pushed = [to_stored_predicate(self.run.local, each) for each in filters]
        found = [each for each in pushed if each is not None]
        if not found:
            return None
        table_key = f"node:{type_name}"
        reads = self.run.local.tables.reads
        rows = reads.scan(self.run.handle(table_key), ["id"], And(tuple(found)))
        self.run.note(f"looked up {rows.num_rows} of {table_key} by key in the store")
        return rows.column("id").combine_chunks()

    def _walk(self, hop: Hop, rows: Rows | None, near: str, far: str) -> DataFrame:
        is_far_less = far in self.pattern.filters and not self._is_filtered(rows)
        start, source = (far, self._start(far)) if is_far_less else (near, rows)
        frame = (source or self._read(start)).frame.select(id_of(start)).distinct()
        if hop.weight is not None:
            # Weights are summed from the written left end.
            start = hop.target if hop.is_reversed else hop.source
            source = rows if rows is not None and start in rows.variables else self._start(start)
            frame = (source or self._read(start)).frame.select(id_of(start)).distinct()
        is_forward = start == hop.source
        if hop.edge_variable is None and hop.mode is WalkMode.REACH:
            return walk_ends(self.run, hop, frame, from_source=is_forward)
        needs = PathNeeds(hop.edge_variable, tuple(self._needs.get(hop.edge_variable or "", ())))
        return path_ends(self.run, hop, frame, needs, from_source=is_forward)

    def _is_filtered(self, rows: Rows | None) -> bool:
        return rows is not None and any(name in self.pattern.filters for name in rows.variables)

    def _bound_edge(self, hop: Hop) -> tuple[str, ...]:
        name = hop.edge_variable
        return () if name is None or name not in self.plan.bound else (name,)

    # Counts

    def _with_tails(self, rows: Rows | None, variable: str) -> Rows | None:
        """Rows with what hangs on a variable counted in; those without any of it go."""
        for branch in self._tails.get(variable, ()):
            sent = self._message(branch, rows)
            if rows is None:
                rows = sent
            elif self.exists:
                rows = rows.keep(rows.frame.join(sent.frame, [id_of(variable)], "left_semi"))
            else:
                rows = replace(pair(rows, sent, [id_of(variable)]), variables=rows.variables)
        return rows

    def _message(self, branch: Branch, rows: Rows | None) -> Rows:
        """How many matches hang below each parent, and what is summed of them."""
        hop, parent, child = branch.hop, branch.parent, branch.child
        below = self._with_tails(self._start(child), child)
        near, far = (FROM, TO) if parent == hop.source else (TO, FROM)
        if below is None and hop.is_single:
            return self._count_ends(hop, near, parent)
        ends = self._ends(hop, rows, parent, child)
        frame = ends.withColumnsRenamed({near: id_of(parent), far: id_of(child)})
        sent = Rows(frame, frozenset([parent]))
        if below is not None:
            below = take_in(below, self.payload.of([child]))
            sent = replace(below, frame=frame.join(below.frame, [id_of(child)]))
            sent = replace(sent, variables=frozenset([parent]))
        if self.exists:
            return Rows(sent.frame.select(id_of(parent)), frozenset([parent]))
        return fold(sent, [id_of(parent)])

    def _count_ends(self, hop: Hop, near: str, parent: str) -> Rows:
        """A message about a child of which nothing is asked: no more than its number."""
        filters = (*self.pattern.filters.get(hop.edge_variable or "", ()), *hop.conditions)
        is_set = hop.edge_variable is None and not self.exists
        at = self._named_end(hop)
        counts = self.run.count_ends(hop, near, filters, distinct=is_set, at=at)
        frame = counts.withColumnRenamed(near, id_of(parent))
        if self.exists:
            return Rows(frame.select(id_of(parent)), frozenset([parent]))
        return fold(Rows(frame, frozenset([parent]), is_weighted=True), [id_of(parent)])

    def _total(self, root: str, rows: Rows | None) -> Rows:
        """A tree that nothing reads, as one row that stands for all of its matches."""

        rows = rows or self._read(root)
        if self.exists:
            return Rows(rows.frame.limit(1).select(), frozenset())
        total = fold(take_in(rows, self.payload.of([root])), [])
        return replace(total, frame=total.frame.where(fn.col(WEIGHT) > 0), variables=frozenset())

    # What rows have to meet

    def _apply(self, rows: Rows) -> Rows:
        from omnigraph.pipeline.spark_query.negate import without_matches

        for each in list(self._waiting):
            if not _variables(each) <= rows.variables:
                continue
            self._waiting.remove(each)
            if isinstance(each, NegationPlan):
                rows = without_matches(self.run, self.pattern, rows, each)
            else:
                rows = keep_rows(self.run, self.pattern, rows, each)
        return rows


def _variables(each: Predicate | NegationPlan) -> frozenset[str]:
    return frozenset(each.outer) if isinstance(each, NegationPlan) else predicate_variables(each)
