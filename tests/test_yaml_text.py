"""YAML is read by one reader, as version 1.2 has it, and reading ends soon, whatever the text."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import ConfigError
from omnigraph.yaml_fields import to_plain
from omnigraph.yaml_text import (
    CHARACTERS_MAX,
    Mapping,
    Mark,
    Node,
    Problems,
    Scalar,
    Sequence,
    read_yaml,
)

BOMB = "a0: &a0 [x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 40)
)


def read(text: str) -> Node:
    problems = Problems("it", lambda lines: ConfigError("\n".join(lines)))
    tree = read_yaml(text, problems)
    problems.raise_if_any()
    return tree


def refusal(text: str) -> str:
    with pytest.raises(ConfigError) as refused:
        read(text)
    return str(refused.value).partition("\n")[0]


def test_a_bomb_of_aliases_is_refused() -> None:
    """Followed, its aliases would make 9 to the 39th values."""
    assert refusal(BOMB) == "it:6:5: there are more than 100000 values, aliases followed"


def test_an_alias_inside_itself_is_refused() -> None:
    assert refusal("a: &a [*a]\n") == "it:1:8: the alias '*a' names nothing above it"


def test_a_few_aliases_are_followed() -> None:
    tree = read("a: &all [read, export]\nb: *all\n")

    assert isinstance(tree, Mapping)
    assert to_plain(tree.entries["a"]) == to_plain(tree.entries["b"]) == ["read", "export"]
    assert tree.entries["b"].mark == Mark(2, 1)


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_deep_nesting_is_refused(opening: str) -> None:
    assert "nested more than 20 deep" in refusal(opening * 100_000)


def test_a_huge_file_is_refused_unread() -> None:
    assert (
        refusal("#" * (CHARACTERS_MAX + 1)) == "it:1:1: the file has more than 1048576 characters"
    )


@pytest.mark.slow
def test_a_long_file_of_allowed_size_is_read() -> None:
    tree = read("- x\n" * 99_000)

    assert isinstance(tree, Sequence)
    assert len(tree.items) == 99_000


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\nb: [\n", "it:3:1: this is not YAML"),
        ("a: 'open\n", "it:2:1: this is not YAML"),
        ("a: 1\n\tb: 2\n", "it:2:1: this is not YAML"),
        ("a: \x00\n", "it:1:4: the character U+0000 is not allowed in YAML"),
        ("a: 1\nb: \ud800\n", "it:2:4: the character U+D800 is not allowed in YAML"),
        ("a: 1\n---\nb: 1\n", "it:2:1: a second document starts here"),
        ("a: !!python/object:os.system x\n", "it:1:4: the tag 'tag:yaml.org,2002:python/"),
        ("a: !own [1]\n", "it:1:4: the tag '!own' is not used here — remove it"),
        ("a: 1\nb: 2\na: 3\n", "it:3:1: the key 'a' is on line 1 already"),
        ("~: a\n", "it:1:1: a key is not a text — put it in quotes"),
        ("[a]: b\n", "it:1:1: a key is not a text — put it in quotes"),
        ("a: &x { k: 1 }\nb: { <<: *x }\n", "it:2:6: YAML 1.2 has no merge keys"),
        ("a: *b\n", "it:1:4: the alias '*b' names nothing above it"),
    ],
)
def test_text_that_is_not_plain_yaml_is_refused_with_its_place(text: str, problem: str) -> None:
    assert refusal(text).startswith(problem)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("true", True),
        ("yes", "yes"),
        ("On", "On"),
        ("n", "n"),
        ("010", 10),
        ("0o10", 8),
        ("0x1F", 31),
        ("0b11", "0b11"),
        ("1_000", "1_000"),
        ("190:20:30", "190:20:30"),
        ("-.inf", float("-inf")),
        ("18446744073709551615", 18446744073709551615),
        ("1", 1),
        ("1.5", 1.5),
        ("9" * 5_000, float("inf")),
        ("'1'", "1"),
        ("!!str 1", "1"),
        ("2024-01-01", "2024-01-01"),
        ("\ufeffx", "x"),
        ("| \n  a\n  b\n", "a\nb\n"),
    ],
)
def test_a_scalar_means_what_yaml_1_2_says(text: str, value: object) -> None:
    tree = read(text)

    assert isinstance(tree, Scalar)
    assert tree.value == value
    assert type(tree.value) is type(value)


def test_a_value_knows_its_place_and_a_block_that_of_its_key() -> None:
    tree = read("a:\n  - x\n  - k: 1\n    ü: zwei\n")

    assert isinstance(tree, Mapping)
    items = tree.entries["a"]
    assert isinstance(items, Sequence)
    inner = items.items[1]
    assert isinstance(inner, Mapping)
    assert (items.mark, inner.mark) == (Mark(1, 1), Mark(3, 5))
    assert (inner.keys["ü"].mark, inner.entries["ü"].mark) == (Mark(4, 5), Mark(4, 8))
    assert to_plain(tree) == {"a": ["x", {"k": 1, "ü": "zwei"}]}


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ConfigError):
        read(text)
