"""Protocol buffers: the fields of a message, read and rewritten without its schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

Value: TypeAlias = int | bytes
Edit: TypeAlias = Callable[[int, Value], Value]

VARINT, LENGTH_DELIMITED = 0, 2
_FIXED_WIDTHS = {1: 8, 5: 4}
_ONE_BYTE = [bytes([value]) for value in range(0x80)]


def read_fields(message: Value) -> Iterator[tuple[int, int, Value]]:
    """Number, wire type and value of every field in order.

    Raises:
        ValueError: The message is cut off, or is not one.
    """
    if isinstance(message, int):
        raise ValueError("a number has no fields")
    position = 0
    while position < len(message):
        key, position = _read_varint(message, position)
        number, wire_type = key >> 3, key & 7
        if wire_type == VARINT:
            value, position = _read_varint(message, position)
            yield number, wire_type, value
            continue
        width = _FIXED_WIDTHS.get(wire_type)
        if width is None:
            width, position = _read_varint(message, position)
        if position + width > len(message):
            raise ValueError("the message is cut off")
        yield number, wire_type, message[position : position + width]
        position += width


def measure_fields(message: bytes) -> Iterator[tuple[int, int]]:
    """Number and length in bytes of every field in order; values are passed over."""
    start = 0
    while start < len(message):
        key, position = _read_varint(message, start)
        if key & 7 == VARINT:
            _, position = _read_varint(message, position)
        else:
            width = _FIXED_WIDTHS.get(key & 7)
            if width is None:
                width, position = _read_varint(message, position)
            position += width
        yield key >> 3, position - start
        start = position


def rewrite(message: bytes, edit: Edit) -> bytes:
    """The message with every value replaced by what `edit` makes of its number and value."""
    return b"".join(
        encode(number, wire_type, edit(number, value))
        for number, wire_type, value in read_fields(message)
    )


def with_number(message: bytes, number: int, value: int) -> bytes:
    """The message with one field set to a number, whether it had that field or not."""
    others = b"".join(
        encode(each, wire_type, held)
        for each, wire_type, held in read_fields(message)
        if each != number
    )
    return others + encode(number, VARINT, value)


def encode(number: int, wire_type: int, value: Value) -> bytes:
    """One field of a message."""
    key = encode_varint(number << 3 | wire_type)
    if isinstance(value, int):
        return key + encode_varint(value)
    length = encode_varint(len(value)) if wire_type == LENGTH_DELIMITED else b""
    return key + length + value


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(data):
            raise ValueError("the message is cut off")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, position


def encode_varint(value: int) -> bytes:
    """A number in as many bytes as it needs."""
    if value <= 0x7F:
        return _ONE_BYTE[value]
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
