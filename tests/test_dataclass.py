"""Our data classes do what those of the standard library do, only later."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, field
from threading import Barrier
from typing import Any, ClassVar

import pytest

from omnigraph.dataclass import COMPILED_AFTER, dataclass

NAN = float("nan")


def define(decorate: Callable[..., Any], module_name: str) -> dict[str, Any]:
    """The same classes, made by one decorator or the other."""

    @decorate(frozen=True, slots=True)
    class Base:
        """A base."""

        at: int = field(default=7, kw_only=True, compare=False, repr=False)

    @decorate(frozen=True, slots=True)
    class Point(Base):
        kind: ClassVar[str] = "point"
        x: Any
        y: Any = 2
        tags: list[str] = field(default_factory=list, compare=False)
        notes: list[str] = field(default_factory=list, hash=False)

        def norm(self) -> Any:
            return self.x + self.y

    @decorate(frozen=True, slots=True)
    class Renamed(Point):
        x: Any = 0
        z: Any = field(init=False, default=5)

        def __post_init__(self) -> None:
            object.__setattr__(self, "z", self.y * 10)

        def __repr__(self) -> str:
            return "renamed"

    @decorate(slots=True)
    class Counter:
        count: int = 0

    @decorate(frozen=True, slots=True, eq=False)
    class Identity:
        value: Any

    @decorate(frozen=True, slots=True)
    class OwnEq:
        value: Any

        def __eq__(self, other: object) -> bool:
            return True

    @decorate(frozen=True, slots=True)
    class OwnHash:
        value: Any

        def __hash__(self) -> int:
            return 1

    @decorate(frozen=True, slots=True)
    class Empty:
        pass

    @decorate(frozen=True, slots=True)
    class OwnInit:
        value: Any

        def __init__(self) -> None:
            object.__setattr__(self, "value", 3)

    kinds = [Base, Point, Renamed, Counter, Identity, OwnEq, OwnHash, Empty, OwnInit]
    for kind in kinds:
        kind.__qualname__ = kind.__name__
        kind.__module__ = module_name
    return {kind.__name__: kind for kind in kinds}


OURS = define(dataclass, __name__)
THEIRS = define(dataclasses.dataclass, __name__)
globals().update(OURS)  # where pickle looks for them


def outcome(work: Callable[[], Any]) -> str:
    try:
        return repr(work())
    except (TypeError, FrozenInstanceError, AttributeError) as error:
        return f"{type(error).__name__}: {error}".replace("define.<locals>.", "")


CLAIMS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "show": lambda k: [k["Base"](), k["Point"](1), k["Renamed"](), k["Empty"](), k["OwnInit"]()],
    "equal": lambda k: k["Point"](1, 2) == k["Point"](1, 2, ["other"], at=1),
    "equal by identity of values": lambda k: k["Point"](NAN) == k["Point"](NAN),
    "equal with one field": lambda k: k["OwnHash"](NAN) == k["OwnHash"](NAN),
    "differ": lambda k: k["Point"](1) == k["Point"](2),
    "differ by class": lambda k: k["Point"](0, 2) == k["Renamed"](0, 2),
    "empty": lambda k: (k["Empty"]() == k["Empty"](), hash(k["Empty"]())),
    "own equality": lambda k: (k["OwnEq"](1) == 5, hash(k["OwnEq"](1)) == hash((1,))),
    "own hash": lambda k: hash(k["OwnHash"](4)),
    "hash": lambda k: hash(k["Point"](1)) == hash((1, 2)),
    "compared but not hashed": lambda k: k["Point"](1, notes=["a"]) == k["Point"](1),
    "no hash when mutable": lambda k: hash(k["Counter"]()),
    "identity": lambda k: k["Identity"](1) == k["Identity"](1),
    "frozen": lambda k: setattr(k["Point"](1), "x", 2),
    "frozen to deletion": lambda k: delattr(k["Point"](1), "x"),
    "mutable": lambda k: setattr(k["Counter"](), "count", 2),
    "slots": lambda k: setattr(k["Counter"](), "other", 2),
    "missing argument": lambda k: k["Point"](),
    "unknown argument": lambda k: k["Point"](1, other=2),
    "an argument twice": lambda k: k["Point"](1, x=2),
    "too many arguments": lambda k: k["Point"](1, 2, [], [], 4),
    "keyword only": lambda k: k["Point"](1, at=9).at,
    "default": lambda k: (k["Point"](1).y, k["Point"](1).at, k["Point"].kind),
    "default factory": lambda k: k["Point"](1).tags is k["Point"](1).tags,
    "method": lambda k: k["Point"](1).norm(),
    "post init": lambda k: k["Renamed"](1, 4).z,
    "inherited order": lambda k: [(f.name, f.kw_only) for f in dataclasses.fields(k["Renamed"])],
    "replace": lambda k: dataclasses.replace(k["Point"](1, at=3), y=9),
    "replace an unknown": lambda k: dataclasses.replace(k["Point"](1), other=9),
    "as dict": lambda k: dataclasses.asdict(k["Renamed"](1)),
    "is a data class": lambda k: dataclasses.is_dataclass(k["Empty"]),
    "match arguments": lambda k: [kind.__match_args__ for kind in k.values()],
    "slots of each": lambda k: [kind.__slots__ for kind in k.values()],
    "copy": lambda k: copy.copy(k["Point"](1, [2])),
    "deep copy": lambda k: copy.deepcopy(k["Counter"](4)),
    "subclass of a standard one": lambda k: dataclasses.make_dataclass(
        "Sub", [("w", int, 0)], bases=(k["Point"],), frozen=True, namespace={}
    )(1, w=3),
}


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("made", ["new", "used", "compiled"])
def test_a_data_class_does_what_one_of_the_standard_library_does(
    claim: str, made: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if made == "compiled":
        monkeypatch.setattr("omnigraph.dataclass.COMPILED_AFTER", 0)
    ours, theirs = (
        kinds if made == "used" else define(decorate, __name__)
        for decorate, kinds in ((dataclass, OURS), (dataclasses.dataclass, THEIRS))
    )

    assert outcome(lambda: CLAIMS[claim](ours)) == outcome(lambda: CLAIMS[claim](theirs))


@pytest.mark.parametrize("kind", ["Point", "Renamed", "Counter", "Identity"])
def test_an_instance_comes_back_from_a_pickle(kind: str) -> None:
    value = OURS[kind](1)

    back = pickle.loads(pickle.dumps(value))

    assert type(back) is type(value)
    assert all(
        getattr(back, each.name) == getattr(value, each.name) for each in dataclasses.fields(value)
    )


def test_nothing_is_compiled_for_the_first_instances(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("compiled too early")

    with monkeypatch.context() as patch:
        patch.setattr(dataclasses, "dataclass", refuse)
        patch.setattr("omnigraph.dataclass.exec", refuse, raising=False)
        kinds = define(dataclass, __name__)
        made = [kinds["Point"](x, notes=[]) for x in range(COMPILED_AFTER)]
        assert [(each.x, each.y) for each in made] == [(x, 2) for x in range(COMPILED_AFTER)]
        assert (hash(made[0]), repr(made[0])) == (
            hash((0, 2)),
            "Point(x=0, y=2, tags=[], notes=[])",
        )
        with pytest.raises(AssertionError, match="too early"):
            kinds["Point"](1)

        patch.undo()
        patch.setattr(dataclasses, "dataclass", refuse)
        assert kinds["Point"](1).x == 1  # only one function is compiled for instances

    assert dataclasses.replace(kinds["Point"](1), x=2).x == 2


def test_nothing_is_compiled_for_a_copy_with_other_values(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("compiled")

    kinds = define(dataclass, __name__)
    monkeypatch.setattr(dataclasses, "_create_fn", refuse)
    monkeypatch.setattr("omnigraph.dataclass.exec", refuse, raising=False)

    assert dataclasses.replace(kinds["Point"](1), x=2).x == 2


def test_threads_may_make_the_first_instance_together() -> None:
    for _ in range(20):
        kind = define(dataclass, __name__)["Renamed"]
        together = Barrier(4)

        def make(number: int, kind: Any = kind, together: Barrier = together) -> Any:
            together.wait()
            return kind(number).x

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(make, range(4))) == [0, 1, 2, 3]
