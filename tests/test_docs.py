"""The docs are true: examples run, generated parts are current, nothing public goes unmentioned."""

from __future__ import annotations

import ast
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from omnigraph.compiler.codes import LINT_CODES, TYPE_CODES
from tests.docs_blocks import PAGES, ROOT, SILENT, Block, answer_of, blocks_of, expected_of
from tests.docs_generated import command_names, error_classes, with_parts

BLOCKS = [block for path in PAGES for block in blocks_of(path)]
REFERENCE = ROOT / "docs" / "reference"
CODES = ROOT / "src" / "omnigraph" / "compiler" / "codes.py"
_CODE = re.compile(r'"(T\d{1,2}|[LQ]\d{3}|OG-[A-Z]{2}-\d{3})"')
_LINK = re.compile(r"\]\((?!https?://|mailto:)([^)\s#]*)(#[^)\s]*)?\)")


def page_id(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def codes_in_source() -> set[str]:
    """Every code that the package can put into an error, a finding or a plan."""
    sources = set((ROOT / "src" / "omnigraph").rglob("*.py")) - {CODES}
    return {code for source in sources for code in _CODE.findall(read(source))}


def example(block: Block) -> ParameterSet:
    """A block that is run; sessions start processes."""
    marks = [pytest.mark.slow] if block.language == "console" else []
    return pytest.param(block, marks=marks, id=f"{block.place} {block.language}")


def rows_of(page: Path) -> set[str]:
    """What the tables of a page have entries for: the first cell of every row."""
    return set(re.findall(r"(?m)^\| `([^`]+)` \|", read(page)))


@pytest.mark.parametrize("block", [example(block) for block in BLOCKS if block.is_run])
def test_an_example_does_what_its_page_shows(block: Block) -> None:
    """Schemas and queries are right, or wrong in the words shown; sessions print what they show."""
    answer = answer_of(block)

    if block.has_answer:
        shown = expected_of(block)
        assert shown.text == answer, (
            f"{shown.place} shows another answer; `make docs` rewrites it\n{answer}"
        )


def test_the_pages_have_examples() -> None:
    assert {"pg", "gq", "console", "python"} <= {block.language for block in BLOCKS}


def test_every_fence_has_a_known_language() -> None:
    """A misspelt fence would silently not be run."""
    known = SILENT | {"pg", "gq", "console", "python"}

    unknown = [f"{each.place}: ```{each.language}" for each in BLOCKS if each.language not in known]

    assert unknown == []


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_the_generated_parts_are_current(path: Path) -> None:
    assert read(path) == with_parts(read(path)), f"{page_id(path)} is stale; run `make docs`"


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_a_link_leads_to_a_page_and_a_heading(path: Path) -> None:
    for target, anchor in _LINK.findall(read(path)):
        found = (path.parent / target).resolve() if target else path
        assert found.exists(), f"{page_id(path)}: {target} does not exist"
        if anchor:
            assert anchor[1:] in anchors_of(found), f"{page_id(path)}: no heading {target}{anchor}"


def anchors_of(page: Path) -> set[str]:
    """The anchors that a page's headings get on the web."""
    headings = re.findall(r"(?m)^#+ (.+)$", read(page))
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


def test_every_command_has_an_entry() -> None:
    page = read(REFERENCE / "cli.md")

    for command in command_names():
        assert f"`omnigraph {command}`" in page, f"cli.md says nothing about `{command}`"


def test_every_error_class_has_an_entry() -> None:
    named = {found.__name__ for found in error_classes()} - {"OmnigraphError"}

    assert named <= rows_of(REFERENCE / "errors.md")


def test_every_code_has_an_entry_and_every_entry_is_a_code() -> None:
    documented = {row for row in rows_of(REFERENCE / "errors.md") if _CODE.fullmatch(f'"{row}"')}

    assert documented == codes_in_source()


def test_every_code_of_the_language_is_in_its_table() -> None:
    """The table says what codes mean; it lists those that the code can raise, and no other."""
    raised = {code for code in codes_in_source() if not code.startswith("OG-")}

    assert raised == {*TYPE_CODES, *LINT_CODES}


def test_the_type_codes_are_in_order() -> None:
    numbers = [int(code.removeprefix("T")) for code in TYPE_CODES]

    assert numbers == sorted(numbers)


def test_the_index_names_every_page() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / target).resolve() for target, _ in _LINK.findall(read(index))}
    folders = {path.parent for path in linked if path.name == "README.md"}

    for path in PAGES[1:]:
        assert path == index or path in linked or path.parent in folders, page_id(path)


def test_the_index_of_decisions_lists_every_decision_by_its_title() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = re.findall(r"(?m)^- \[(\d{4})\]\(([^)]+)\) · (.+)$", read(folder / "README.md"))
    titles = {
        path.name: read(path).splitlines()[0].removeprefix("# ") for path in folder.glob("0*.md")
    }

    assert [name for _, name, _ in listed] == sorted(titles)
    for number, name, title in listed:
        assert f"{number} · {title}".startswith(titles[name]), f"{name} has another title"


def test_contributing_names_files_that_exist() -> None:
    named = re.findall(
        r"`((?:src|tests|docs|benchmarks)/[\w./-]+)`", read(ROOT / "CONTRIBUTING.md")
    )

    assert named
    for path in named:
        assert (ROOT / path).exists(), f"CONTRIBUTING.md: {path} does not exist"


def test_the_architecture_page_names_every_part_of_the_tree() -> None:
    page = read(ROOT / "docs" / "explain" / "architecture.md")
    tree = ROOT / "src" / "omnigraph"
    parts = {f"{path.parent.name}/" for path in tree.glob("*/__init__.py")}
    parts |= {path.name for path in tree.glob("[!_]*.py")}

    assert {part for part in parts if f"`{part}`" not in page} == set()


def test_the_map_of_a_package_names_its_files() -> None:
    """A package whose files are found by their names alone has the rule instead of the list."""
    by_name = {"cli", "calls", "response_models"}
    missing = {}
    for init in (ROOT / "src" / "omnigraph").glob("*/**/__init__.py"):
        named = re.findall(r"[\w*]+\.py", ast.get_docstring(ast.parse(read(init))) or "")
        files = {path.name for path in init.parent.glob("[!_]*.py")}
        left = {name for name in files if not any(fnmatch(name, each) for each in named)}
        if left and init.parent.name not in by_name:
            missing[init.parent.name] = left

    assert missing == {}
