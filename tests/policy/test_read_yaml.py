"""Reading YAML ends soon, whatever is in it."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import PolicyInvalid
from omnigraph.policy.problems import Problems
from omnigraph.policy.read_yaml import CHARACTERS_MAX, Mapping, Node, Scalar, Sequence, read_yaml

BOMB = "a0: &a0 [x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 40)
)


def read(text: str) -> Node:
    problems = Problems("it")
    tree = read_yaml(text, problems)
    problems.raise_if_any()
    return tree


def refusal(text: str) -> str:
    with pytest.raises(PolicyInvalid) as refused:
        read(text)
    return refused.value.problems[0]


def test_a_bomb_of_aliases_is_refused() -> None:
    """Followed, its aliases would make 9 to the 39th values."""
    assert refusal(BOMB) == "line 6: there are more than 100000 values, aliases followed"


def test_an_alias_inside_itself_is_refused() -> None:
    assert refusal("a: &a [*a]\n") == "line 1: the alias '*a' names nothing above it"


def test_a_few_aliases_are_followed() -> None:
    tree = read("a: &all [read, export]\nb: *all\n")

    assert isinstance(tree, Mapping)
    assert tree.entries["a"] == tree.entries["b"]


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_deep_nesting_is_refused(opening: str) -> None:
    assert "nested more than 20 deep" in refusal(opening * 100_000)


def test_a_huge_file_is_refused_unread() -> None:
    assert (
        refusal("#" * (CHARACTERS_MAX + 1)) == "line 1: the file has more than 1048576 characters"
    )


def test_a_long_file_of_allowed_size_is_read() -> None:
    tree = read("- x\n" * 99_000)

    assert isinstance(tree, Sequence)
    assert len(tree.items) == 99_000


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\nb: [\n", "line 3: this is not YAML"),
        ("a: 'open\n", "line 2: this is not YAML"),
        ("a: 1\n\tb: 2\n", "line 2: this is not YAML"),
        ("a: \x00\n", "line 1: the character U+0000 is not allowed in YAML"),
        ("a: 1\nb: \ud800\n", "line 2: the character U+D800 is not allowed in YAML"),
        ("a: 1\n---\nb: 1\n", "line 2: a second document starts here"),
        ("a: !!python/object:os.system x\n", "line 1: the tag 'tag:yaml.org,2002:python/"),
        ("a: !own [1]\n", "line 1: the tag '!own' is not used here — remove it"),
        ("a: 1\nb: 2\na: 3\n", "line 3: the key 'a' is on line 1 already"),
        ("1: a\n", "line 1: a key is not a text — put it in quotes"),
        ("[a]: b\n", "line 1: a key is not a text — put it in quotes"),
        ("a: *b\n", "line 1: the alias '*b' names nothing above it"),
    ],
)
def test_what_is_not_plain_yaml_is_refused_with_its_line(text: str, problem: str) -> None:
    assert refusal(text).startswith(problem)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("true", True),
        ("yes", "yes"),
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


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(PolicyInvalid):
        read(text)
