"""JSON values: parse the bytes of a body, limit their depth, validate them by a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from omnigraph.errors import BadRequestError, with_suggestion

Model = TypeVar("Model", bound=BaseModel)

_LONG_BYTES = 1 << 20


def parse_json(data: bytes | bytearray, depth_max: int) -> Any:
    """Parse JSON.

    Raises:
        BadRequestError: It is not JSON, or is nested too deep.
    """
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise BadRequestError(f"the body is not JSON: {_reason(error)} at {where}") from None
    # Looking at every level costs by the objects there are, counting brackets by the bytes.
    is_long = len(data) > _LONG_BYTES
    if is_long or data.count(b"[") + data.count(b"{") > depth_max:
        _refuse_if_deep(value, depth_max)
    return value


def _refuse_if_deep(value: Any, depth_max: int) -> None:
    level = [value]
    for _ in range(depth_max):
        level = [child for each in level for child in _children(each)]
        if not level:
            return
    raise BadRequestError(f"the body is nested more than {depth_max} levels deep")


def _children(value: Any) -> list[Any]:
    """The objects and lists that are members of one."""
    match value:
        case dict():
            return [child for child in value.values() if isinstance(child, dict | list)]
        case list():
            return [child for child in value if isinstance(child, dict | list)]
        case _:
            return []


def _reason(error: orjson.JSONDecodeError) -> str:
    return error.msg.partition(":")[0]


def validate(model: type[Model], value: Any) -> Model:
    """Validate a JSON value as the model of an operation.

    Raises:
        BadRequestError: A member is missing, unknown or of another kind.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        found = error.errors(include_url=False)[:3]
        problems = "; ".join(_problem(model, each) for each in found)
        raise BadRequestError(f"the body is not a {model.__name__}: {problems}") from None


def _problem(model: type[BaseModel], found: Mapping[str, Any]) -> str:
    words = {
        "missing": "is missing",
        "string_type": "should be a string",
        "bool_type": "should be true or false",
        "dict_type": "should be an object",
        "list_type": "should be a list",
        "extra_forbidden": "is not known here",
        "model_type": "should be an object",
        "literal_error": f"should be {found.get('ctx', {}).get('expected', 'another value')}",
    }
    said = words.get(found["type"], "has a value that is not allowed")
    where = ".".join(str(part) for part in found["loc"])
    if found["type"] == "extra_forbidden":
        said = with_suggestion(said, where, _member_names(model))
    return f"`{where}` {said}" if where else f"it {said}"


def _member_names(model: type[BaseModel]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield field.alias or name
