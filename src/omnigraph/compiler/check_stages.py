"""Stages: `top n by keys as $score { … }` before `match`.

at most three                            T39
n is a literal or an integer parameter   T34
a key is sortable and reads a variable   T33
a ranking is the first key               T40
the score has a name of its own          T39
"""

from __future__ import annotations

from omnigraph.compiler.check_expressions import check_scalar
from omnigraph.compiler.check_match import check_pattern
from omnigraph.compiler.check_order import mentions_rows
from omnigraph.compiler.check_search import rank_fusion, ranking_arm
from omnigraph.compiler.scope import Scope
from omnigraph.compiler.typed import TypedStage
from omnigraph.errors import TypeCheckError
from omnigraph.ir.expressions import Bm25, Nearest, Param, Rrf, SortKey
from omnigraph.ir.query import OrderItem
from omnigraph.source_text import Span
from omnigraph.syntax.query_tree import (
    Count,
    NearestExpr,
    Ordering,
    RrfExpr,
    Stage,
    TextSearchExpr,
    VariableExpr,
)
from omnigraph.types import PropertyType, Scalar

STAGES_MAX = 3
_SCORE = PropertyType(Scalar.F64)


def check_stages(stages: tuple[Stage, ...], scope: Scope) -> tuple[TypedStage, ...]:
    """Type the stages of a read, and bind in `scope` what they leave for the next."""
    if len(stages) > STAGES_MAX:
        raise TypeCheckError(
            f"a query has at most three stages, and this is the {len(stages)}th top",
            code="T39",
            span=stages[STAGES_MAX].span,
            hint="put filters into the stage before, or traverse in match",
        )
    return tuple(_check_stage(stage, scope) for stage in stages)


def _check_stage(stage: Stage, scope: Scope) -> TypedStage:
    count = check_count(stage.count, "top", stage.span, scope)
    pattern = check_pattern(stage.clauses, scope)
    keys = tuple(
        OrderItem(_check_key(key, place, scope), key.descending)
        for place, key in enumerate(stage.keys)
    )
    if stage.score is not None:
        _bind_score(stage, stage.score, keys[0].expression, scope)
    return TypedStage(count, keys, pattern, stage.score)


def check_count(count: Count, word: str, span: Span, scope: Scope) -> int | Param:
    """A number of rows: a literal, or a parameter that holds one (T34)."""
    if not isinstance(count, VariableExpr):
        return count
    found = scope.parameter(count)
    if found is None or not found.type.is_integer or found.type.nullable:
        shown = "no parameter" if found is None else str(found.type)
        raise TypeCheckError(
            f"{word} takes an integer that is not nullable, and `${count.name}` is {shown}",
            code="T34",
            span=count.span,
            hint=f"declare it as `${count.name}: I32`",
        )
    return found


def _check_key(key: Ordering, place: int, scope: Scope) -> SortKey:
    match key.expression:
        case NearestExpr() | TextSearchExpr(function="bm25") | RrfExpr() as call:
            if place > 0:
                raise TypeCheckError(
                    "a ranking stands alone: it is the first key of a stage",
                    code="T40",
                    span=key.span,
                    hint="use top … as $score, and sort by the rest afterwards",
                )
            return (
                rank_fusion(call, scope) if isinstance(call, RrfExpr) else ranking_arm(call, scope)
            )
    found = check_scalar(key.expression, scope)
    if not mentions_rows(key.expression, scope):
        raise _unsortable("a value that is the same in every row", key)
    if found.type.is_list or found.type.is_vector or found.type.is_duration or found.type.is_blob:
        raise _unsortable(f"a {found.type}", key)
    return found


def _unsortable(what: str, key: Ordering) -> TypeCheckError:
    return TypeCheckError(
        f"top cannot order by {what}",
        code="T33",
        span=key.span,
        hint="sort by a property of a variable of the stage",
    )


def _bind_score(stage: Stage, name: str, key: SortKey, scope: Scope) -> None:
    if name in scope.params or scope.is_bound(name):
        what = "a parameter" if name in scope.params else "a variable"
        raise TypeCheckError(
            f"the score of top needs a name of its own, and `${name}` is {what}",
            code="T39",
            span=stage.span,
            hint=f"write as ${name}_score",
        )
    scope.scores[name] = _score_type(key)


def _score_type(key: SortKey) -> PropertyType:
    if isinstance(key, (Nearest, Bm25, Rrf)):
        return _SCORE
    found = getattr(key, "type", None)
    assert isinstance(found, PropertyType)
    return PropertyType(found.scalar, nullable=True, variants=found.variants)
