"""What a program that reads or writes the data source is told, in our words.

Spark answers for a Python data source in its own words. It refuses a save mode before any function
of the source is called, and it reports an error of ours as the text of a traceback. There is no
hook for either, so the calls themselves translate: once a session knows the data source, an error
that `load`, `save` or `start` raises about it is ours (docs/decisions/0109). Any other error, and
any other format, is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrameReader, DataFrameWriter
from pyspark.sql.streaming.readwriter import DataStreamWriter

from omnigraph import errors
from omnigraph.errors import BadRequestError, OmnigraphError

_REFUSED_MODE = "UNSUPPORTED_DATA_SOURCE_SAVE_MODE"
_TRACED = re.compile(
    r"^omnigraph\.[\w.]+\.(\w+): (.*?)(?:\s*SQLSTATE: \w+)?\s*(?=\n\tat |\Z)",
    re.MULTILINE | re.DOTALL,
)
"""The end of the traceback of an error of ours, as Spark quotes it."""
_CALLS = ((DataFrameReader, "load"), (DataFrameWriter, "save"), (DataStreamWriter, "start"))


def translate_errors(source: str) -> None:
    """Make the calls that read and write the data source `source` raise errors of ours."""
    for owner, name in _CALLS:
        call = getattr(owner, name)
        if not hasattr(call, "translates"):
            setattr(owner, name, _translate(call, source))


def _translate(call: Callable[..., Any], source: str) -> Callable[..., Any]:
    @wraps(call)
    def call_and_translate(*args: Any, **options: Any) -> Any:
        try:
            return call(*args, **options)
        except PySparkException as error:
            ours = find_our_error(error, source)
            if ours is None:
                raise
            raise ours from None

    call_and_translate.translates = True  # type: ignore[attr-defined]
    return call_and_translate


def find_our_error(error: PySparkException, source: str) -> OmnigraphError | None:
    """The error of ours that an error of Spark stands for, if there is one."""
    if error.getCondition() == _REFUSED_MODE:
        parameters = error.getMessageParameters() or {}
        if source in parameters.get("source", ""):
            return _refuse_mode(parameters.get("createMode", ""))
    traced = _TRACED.search(str(error))
    return _rebuild(traced[1], traced[2]) if traced else None


def _refuse_mode(quoted: str) -> BadRequestError:
    mode = quoted.strip('"').lower()
    default = ", which Spark takes when none is given" if mode == "errorifexists" else ""
    return BadRequestError(
        f"the save mode is '{mode}'{default}, expected 'append' or 'overwrite': a type of a graph "
        'is always there — write with `.mode("append")`, where the option `load_mode` as "merge" '
        'replaces rows of the same key, or with `.mode("overwrite")`; nothing was written'
    )


def _rebuild(name: str, text: str) -> OmnigraphError:
    """The error by its group, which says what to do next: only its text has come across."""
    found = getattr(errors, name, BadRequestError)
    groups = [each for each in found.__mro__ if OmnigraphError in each.__bases__]
    rebuilt: OmnigraphError = (groups[0] if groups else OmnigraphError)(text)
    return rebuilt
