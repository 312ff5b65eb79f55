"""Examples of the docs: find every fenced block of a page, run it, and say what it answers.

fence             what it claims
pg                the schema is valid; `name=library` lets other pages use it
gq                every query fits the schema above it, or the one that `schema=library` names
pg error          the schema is refused with the text of the `text` block that follows
gq error          the query is refused with the text of the `text` block that follows
console           each `$` line prints the lines below it, in a copy of examples/team, beside
                  copies of examples/papers and examples/messy
python            it runs, after the earlier Python of its page, in a copy of examples/team, beside
                  copies of examples/papers and examples/messy
python output     and prints the `text` block that follows
text json sh yaml nothing: these are for reading
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from unittest.mock import patch

from omnigraph import Catalog, build_catalog, compile_query, parse_query, parse_schema
from omnigraph.errors import OmnigraphError
from tests.console import commands
from tests.depth import IS_TORTURE

ROOT = Path(__file__).parents[1]
SKILL = ROOT / "skills" / "omnigraph" / "SKILL.md"
PAGES = (ROOT / "README.md", SKILL, *sorted((ROOT / "docs").rglob("*.md")))
FIRST_PAGE = ROOT / "docs" / "start" / "install.md"
SILENT = frozenset({"text", "json", "sh", "yaml", ""})
RUNNABLE = ("omnigraph", "cat", "echo", "mv", "cp")
_ANSWERED = frozenset({"error", "output"})
_FENCE = re.compile(r"(?ms)^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```$")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block. `line` is where its fence opens, `start` and `end` enclose its text."""

    path: Path
    line: int
    language: str
    words: frozenset[str]
    text: str
    start: int
    end: int

    @property
    def place(self) -> str:
        return f"{self.path.relative_to(ROOT).as_posix()}:{self.line}"

    @property
    def is_run(self) -> bool:
        """A console session without our own command (an install, say) is for reading."""
        if self.language == "console":
            return re.search(r"(?m)^\$ omnigraph\b", self.text) is not None
        return self.language not in SILENT

    @property
    def has_answer(self) -> bool:
        """Whether the page shows what the block answers: below it, or inside a console session."""
        return self.is_run and (self.language == "console" or bool(self.words & _ANSWERED))

    def option(self, name: str) -> str | None:
        return next(
            (w.removeprefix(f"{name}=") for w in self.words if w.startswith(f"{name}=")), None
        )


def blocks_of(path: Path) -> list[Block]:
    """Every fenced block of a page, in order."""
    page = path.read_text(encoding="utf-8")
    blocks = []
    for fence in _FENCE.finditer(page):
        language, *words = fence["info"].split() or [""]
        line = page.count("\n", 0, fence.start()) + 1
        text, (start, end) = fence["text"], fence.span("text")
        blocks.append(Block(path, line, language, frozenset(words), text, start, end))
    return blocks


def answer_of(block: Block) -> str:
    """Run a block and return what it answers; the empty text when it claims only to be right.

    Raises:
        AssertionError: The block does not do what its fence claims.
    """
    match block.language:
        case "pg":
            return _refusal(block) if "error" in block.words else _accept(block)
        case "gq":
            return _refusal(block) if "error" in block.words else _accept(block)
        case "console":
            return _session(block)
        case "python":
            printed = _run_block(block)
            return printed if "output" in block.words else ""
        case _:
            raise AssertionError(f"{block.place}: a ```{block.language} block is not known here")


def expected_of(block: Block) -> Block:
    """The block that holds the answer of this one: itself for a console, else the next."""
    if block.language == "console":
        return block
    blocks = blocks_of(block.path)
    following = blocks[blocks.index(block) + 1 :][:1]
    assert following, f"{block.place}: a ```text block with the answer should follow"
    assert following[0].language == "text", f"{following[0].place}: should be a ```text block"
    return following[0]


def _accept(block: Block) -> str:
    try:
        _build(block)
    except OmnigraphError as error:
        raise AssertionError(f"{block.place}: is refused\n{error.render()}") from None
    return ""


def _refusal(block: Block) -> str:
    try:
        _build(block)
    except OmnigraphError as error:
        return f"{error.render()}\n"
    raise AssertionError(f"{block.place}: should be refused, but it is right")


def _build(block: Block) -> None:
    if block.language == "pg":
        build_catalog(parse_schema(block.text))
        return
    catalog = _schema_for(block)
    for query in parse_query(block.text).queries:
        compile_query(block.text, catalog, name=query.name)


def _schema_for(block: Block) -> Catalog:
    named = block.option("schema")
    if named is not None:
        return named_schema(named)
    above = [b for b in blocks_of(block.path) if b.line < block.line and _is_schema(b)]
    assert above, f"{block.place}: there is no schema above; name one with schema=<name>"
    return build_catalog(parse_schema(above[-1].text))


@cache
def named_schema(name: str) -> Catalog:
    """The schema that some page calls `name=...`, or that of the example of that name."""
    for path in PAGES:
        for block in blocks_of(path):
            if _is_schema(block) and block.option("name") == name:
                return build_catalog(parse_schema(block.text))
    example = ROOT / "examples" / name / f"{name}.pg"
    return build_catalog(parse_schema(example.read_text(encoding="utf-8")))


def _is_schema(block: Block) -> bool:
    return block.language == "pg" and "error" not in block.words


@contextlib.contextmanager
def _example_folder() -> Iterator[Path]:
    # An example need not close its graph: checksums may still be written while it is removed.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for name in ("papers", "messy"):
            shutil.copytree(ROOT / "examples" / name, Path(folder) / name)
        yield Path(shutil.copytree(ROOT / "examples" / "team", Path(folder) / "team"))


def _session(block: Block) -> str:
    """The session with the output that its commands print now."""
    commands = [line[2:] for line in block.text.splitlines() if line.startswith("$ ")]
    for command in commands:
        program = command.split()[0]
        assert program in RUNNABLE, f"{block.place}: `{program}` needs a block of its own"
    # One shell, so that `echo $?` sees the exit code of the command before it.
    script = "\n".join(f"{command}\ncode=$?; printf '\\0'; (exit $code)" for command in commands)
    with _example_folder() as folder:
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=folder,
            env={**os.environ, **_list_fixed(), "PATH": _path(block)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
    outputs = done.stdout.decode().split("\0")[:-1]
    assert len(outputs) == len(commands), f"{block.place}: a command ended the session"
    pairs = zip(commands, outputs, strict=True)
    return "\n".join(f"$ {command}\n{output}" for command, output in pairs)


def _path(block: Block) -> str:
    """Where an example finds our commands: those installed, or in sessions of most pages quicker
    ones; `make torture` has the installed ones everywhere."""
    is_quick = block.language == "console" and block.path != FIRST_PAGE and not IS_TORTURE
    folders = [sysconfig.get_path("scripts"), os.environ["PATH"]]
    return os.pathsep.join([str(commands()), *folders] if is_quick else folders)


def _list_fixed() -> dict[str, str]:
    """The environment that every example runs in: output that never varies."""
    return {"COLUMNS": "80", "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"}


def _run_block(block: Block) -> str:
    printed = _run_page(block.path).get(block.line)
    assert printed is not None, f"{block.place}: an example above it failed"
    if isinstance(printed, Exception):
        raise printed
    return printed


@cache
def _run_page(path: Path) -> dict[int, str | Exception]:
    """Run the Python of a page up to its first error; by line, what each block printed."""
    names: dict[str, object] = {"__name__": "docs"}
    found: dict[int, str | Exception] = {}
    blocks = [each for each in blocks_of(path) if each.language == "python"]
    with (
        _example_folder() as folder,
        contextlib.chdir(folder),
        patch.dict(os.environ, {**_list_fixed(), "PATH": _path(blocks[0])}),
    ):
        for each in blocks:
            try:
                found[each.line] = _run_python(each, names)
            except Exception as error:
                found[each.line] = error
                break
    return found


def _run_python(block: Block, names: dict[str, object]) -> str:
    # Blank lines in front make a traceback name the line of the page.
    code = compile("\n" * block.line + block.text, str(block.path), "exec")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, names)
    return printed.getvalue()
