"""Arrow makes a function when it is first used, and a program notices nothing of it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

LATER = "import omnigraph.storage.datasets, pyarrow.compute as pc"
DESCRIBE = """
import inspect, types
def describe(name):
    value = getattr(pc, name)
    if not isinstance(value, types.FunctionType):
        return repr(type(value))
    made = getattr(value, "__arrow_compute_function__", None)
    told = str(inspect.signature(value)), value.__doc__, value.__name__, value.__qualname__
    return [*told, value.__module__, repr(made)]
OWN = ("__getattr__", "__dir__")
told = {name: describe(name) for name in dir(pc) if name not in OWN}
"""


def run(*lines: str) -> Any:
    """The value of the last line, in a process of its own."""
    *first, last = lines
    code = "\n".join([*first, f"import json; print(json.dumps({last}))"])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    return json.loads(done.stdout)


def test_the_module_has_the_names_and_functions_that_it_would_have_had() -> None:
    ours = run(LATER, DESCRIBE, "told")

    assert ours == run("import pyarrow.compute as pc", DESCRIBE, "told")
    assert len(ours) > 300


def test_a_function_is_made_when_it_is_first_used() -> None:
    is_made = "[each in vars(pc) for each in ('ascii_center', 'and', 'and_', 'hash_sum', 'cast')]"

    before, center, after = run(
        LATER,
        f"before = {is_made}",
        "center = pc.ascii_center('a', 3).as_py()",
        "pc.and_(True, False)",
        f"[before, center, {is_made}]",
    )

    assert before == [False, False, False, False, True]
    assert center == " a "
    assert after == [True, True, True, False, True]


def test_names_that_are_no_functions_of_the_module_are_refused_as_ever() -> None:
    """Those on groups, those of no argument, those that a program registers later."""
    lines = [
        "import pyarrow as pa",
        "doc, kind = {'summary': '', 'description': ''}, pa.int8()",
        "pc.register_scalar_function(lambda _, x: x, 'mine', doc, {'x': kind}, kind)",
        "told = [pc.call_function('mine', [pa.scalar(1, kind)]).as_py()]",
        "for name in ('hash_sum', 'count_all', 'no_such_function', 'mine'):",
        "    try: getattr(pc, name)",
        "    except AttributeError as error: told.append(str(error))",
        "told",
    ]

    refused = run(LATER, *lines)

    assert refused == run("import pyarrow.compute as pc", *lines)
    assert len(refused) == 5


def test_no_function_of_the_module_needs_another_to_be_made() -> None:
    """It would look for it among the globals, where nothing is made."""
    used = run(
        LATER,
        "import dis, types",
        "own = [each for each in vars(pc).values() if type(each) is types.FunctionType]",
        "looked_up = [each for code in own for each in dis.get_instructions(code)]",
        "names = {each.argval for each in looked_up if each.opname == 'LOAD_GLOBAL'}",
        "sorted(names & (set(dir(pc)) - set(vars(pc))))",
    )

    assert used == []


def test_functions_are_imported_by_name_and_pickled() -> None:
    made = run(
        LATER,
        "from pyarrow.compute import equal, match_substring",
        "import pickle",
        "[pickle.loads(pickle.dumps(equal)) is equal, match_substring('ab', 'b').as_py()]",
    )

    assert made == [True, True]


def test_a_program_that_has_the_module_keeps_it() -> None:
    assert run("import pyarrow.compute as pc", LATER, "'__getattr__' in vars(pc)") is False
