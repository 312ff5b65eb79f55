"""The parts of the pipeline by themselves: ranges, lines, documents, buckets."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph import build_catalog, parse_schema
from omnigraph.pipeline.blocks import LinesBlock, read_blocks
from omnigraph.pipeline.buckets import bucket_numbers
from omnigraph.pipeline.documents import scan_records
from omnigraph.pipeline.lines import split_lines
from omnigraph.pipeline.model import LineRange
from omnigraph.pipeline.ranges import Input, is_text
from omnigraph.pipeline.sources import plan_source


@given(
    st.lists(st.text(alphabet="ab{}\r", max_size=12), max_size=20),
    st.integers(1, 30),
    st.booleans(),
)
def test_byte_ranges_hold_every_line_exactly_once(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], part: int, ends: bool
) -> None:
    data = "\n".join(lines).encode() + (b"\n" if ends else b"")
    path = tmp_path_factory.mktemp("ranges") / "data.jsonl"
    path.write_bytes(data)

    blocks = [
        block
        for start in range(0, len(data), part)
        for block in read_blocks(LineRange(str(path), start, min(start + part, len(data))), part)
    ]

    assert all(isinstance(block, LinesBlock) for block in blocks)
    assert b"".join(block.data for block in blocks if isinstance(block, LinesBlock)) == data


@given(
    st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=8) | st.none()), max_size=8),
    st.sampled_from([None, 1, 4]),
    st.integers(1, 64),
    st.booleans(),
)
def test_a_document_gives_every_record_with_its_line(
    records: list[dict[str, str]], indent: int | None, chunk: int, is_array: bool
) -> None:
    """However it is printed, and wherever the chunks are cut."""
    texts = [json.dumps(record, indent=indent) for record in records]
    text = ("[" + ",\n".join(texts) + "]" if is_array else "\n// note\n".join(texts)).encode()
    stream = io.BytesIO(text)

    found = list(scan_records(lambda size: stream.read(min(size, chunk))))

    assert [json.loads(raw.text) for raw in found] == records
    for raw in found:
        assert text.split(b"\n")[raw.line - 1].lstrip(b"[").startswith(raw.text.split(b"\n")[0][:1])


def test_a_broken_record_does_not_swallow_the_next() -> None:
    good = b'{"type":"A","data":{}}'
    text = good + b'\n{"type":"A","data":{"a":1\n' + good + b'\n{"type":"A","x":"\n' + good
    stream = io.BytesIO(text)

    found = [raw.text for raw in scan_records(stream.read)]

    assert found.count(good) == 3
    assert len(found) == 5


@given(st.lists(st.sampled_from(['{"type":"A"', '{"edge":"B"', ' {"type" : "A"', "//", "", "x"])))
def test_lines_are_sorted_by_how_they_begin(heads: list[str]) -> None:
    data = "\n".join(head + ", rest" if head.startswith(("{", " ")) else head for head in heads)
    lines = split_lines(data.encode(), 1)

    by_head, others = lines.classify()

    sorted_lines = sorted(int(i) for part in [*by_head.values(), others] for i in part)
    expected = [i for i, head in enumerate(heads) if head not in ("", "//")]
    assert sorted_lines == expected
    for (member, name), indexes in by_head.items():
        for index in indexes.tolist():
            assert f'"{name}"'.encode() in lines.text(index)
            assert member.encode() in lines.text(index)


@given(st.lists(st.none() | st.text(max_size=40)), st.integers(1, 7))
def test_buckets_partition_texts_and_keep_equal_ones_together(
    texts: list[str | None], count: int
) -> None:
    column = pa.array(texts, pa.utf8())
    numbers = bucket_numbers(column, count)

    assert ((numbers >= 0) & (numbers < count)).all()
    assert len(
        {(text, number) for text, number in zip(texts, numbers.tolist(), strict=True)}
    ) == len(set(texts))
    # A slice of a longer column is hashed alike.
    assert np.array_equal(bucket_numbers(column.slice(1), count), numbers[1:])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"type":"A"}', True),
        ('\n {"type":"A"}\n', True),
        ("// note\n", True),
        ("", True),
        ('[{"type":"A"}]', True),
        ("people.jsonl", False),
        ("data/part[0-9].jsonl", False),
        ("/abs/path.json", False),
    ],
)
def test_text_is_distinguished_from_a_path(text: str, expected: bool) -> None:
    assert is_text(text) is expected


def test_files_that_are_small_together_are_a_small_input(tmp_path: Path) -> None:
    """Two files of 51 bytes must not start Spark."""
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for path in paths:
        path.write_text('{"type":"A"}\n' * 5)
    catalog = build_catalog(parse_schema("node A { name: String? }"))

    def plan(part_bytes: int) -> Input:
        return plan_source(paths, catalog, part_bytes, {})

    assert plan(1000).is_small
    assert not plan(100).is_small
    assert len(list(plan(25).ranges)) == 6
