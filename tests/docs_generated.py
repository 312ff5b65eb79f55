"""`make docs`: write the parts of the docs that the code knows best, in place.

    <!-- generated: help schema plan -->     what `omnigraph schema plan --help` prints
    <!-- generated: errors -->               every error class, by what the caller does next
    <!-- generated: type codes -->           every T code, with an example that raises it
    <!-- generated: lint codes -->           every code of lint, and what to do
    <!-- generated: http operations -->      what the server serves; also `errors` and `limits`

A part ends with `<!-- /generated -->`. The answers that examples show (error texts, console
sessions, printed lines) are rewritten too, and the diff is the review. Without `--write` nothing
is changed and stale pages are listed.
"""

from __future__ import annotations

import inspect
import io
import re
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from functools import cache
from pathlib import Path

import typer
from typer.core import TyperGroup

from omnigraph import compile_query, errors
from omnigraph.cli.app import build_app
from omnigraph.compiler.codes import LINT_CODES, TYPE_CODES
from omnigraph.errors import OmnigraphError, TypeCheckError
from tests.docs_blocks import PAGES, ROOT, answer_of, blocks_of, expected_of, named_schema
from tests.http.documents import error_table, limit_table, operation_table

_PART = re.compile(
    r"(?ms)^(?P<open><!-- generated: (?P<name>[^\n]+?) -->)\n.*?^(?P<close><!-- /generated -->)$"
)

TYPE_EXAMPLES: dict[str, str] = {
    "T1": "$x: Bok",
    "T2": '$x: Book { titel: "Emma" }',
    "T3": '$x: Book { status: "lost" }',
    "T4": "$b cite $x",
    "T5": "$b follows $x",
    "T6": "return { $b.titel }",
    "T7": '$b.year = "1815"',
    "T8": "return { sum($b.title) }",
    "T9": "not { $x: Reader }",
    "T10": 'insert Bok { isbn: "1" }',
    "T11": 'delete Book where titel = "Emma"',
    "T12": 'insert Author { slug: "austen" }',
    "T13": 'update Author set { born: 1775 born: 1776 } where slug = "austen"',
    "T14": "$x: Book { title: $b }",
    "T15": "$b cites{1,} $x",
    "T17": 'order { nearest($b.embedding, "sea") }',
    "T18": 'order { nearest($b.embedding, "sea"), title } limit 3',
    "T19": 'search($b.year, "sea")',
    "T20": 'match_text($b.year, "sea")',
    "T21": 'order { rrf(bm25($b.title, "sea"), bm25($b.summary, "sea")) }',
    "T22": "$b <borrowed> $x",
    "T23": "$x $e:borrowed $b  $e follows $x",
    "T24": "return { $b.cover }",
    "T25": 'trim($b.title) = "Emma"',
    "T26": "$b.title + 1 = 2",
    "T27": "$b.price != null",
    "T28": "return { $b.year + 1 }",
    "T29": '$b.year in ["1818"]',
    "T30": 'coalesce($b.price, "free") = 1.0',
    "T31": "$b.year = year",
    "T32": "return { $b.isbn } having { $b.isbn is not null }",
    "T33": "return { $b.isbn } order { $b.topics }",
    "T34": "return { $b.isbn } limit 3 offset 3",
    "T35": "optional { $x: Reader }",
    "T36": "$b $t:cites{1,3} $x  $t cites $b",
    "T37": "$b cites{1,3} by year $x",
    "T38": "$b cites{1,3 where x = 1} $x",
    "T39": "top 1 by $b.year as $b { $b: Book }",
    "T40": 'return { bm25($b.title, "sea") + 1 as s }',
    "T41": "either { $b cites $x } or { $y: Reader }",
    "T42": 'upsert Author { name: "Austen" }',
    "T43": 'for $r in $rows { delete Author where slug = "austen" }',
    "T44": 'update Wrote set { to: "emma" } where from = "austen"',
    "T45": 'delete Author where slug = "austen" return { 1 as one }',
    "T46": "query q($n: I32 = null) { match { $b: Book } return { $b.isbn } limit $n }",
}
"""An example of each T code over the library schema; `$b: Book` is bound before it."""


def command_names() -> list[str]:
    """Every command as it is typed after `omnigraph`, groups and hidden ones included."""
    return sorted(_names_below(_command_tree(), ""))


def _names_below(command: object, prefix: str) -> Iterator[str]:
    for name, child in getattr(command, "commands", {}).items():
        yield f"{prefix}{name}"
        yield from _names_below(child, f"{prefix}{name} ")


def help_text(command: str) -> str:
    """What `omnigraph <command> --help` prints on 80 columns."""
    arguments = [*command.split(), "--help"]
    output = io.StringIO()
    with redirect_stdout(output), suppress(typer.Exit):
        _command_tree().main(
            arguments, prog_name="omnigraph", terminal_width=80, standalone_mode=False
        )
    return f"```text\n$ {' '.join(['omnigraph', *arguments])}\n{output.getvalue().rstrip()}\n```"


@cache
def _command_tree() -> TyperGroup:
    """Every command. To build it takes as long as to print the help of fifty of them."""
    tree = typer.main.get_command(build_app())
    assert isinstance(tree, TyperGroup)
    return tree


def error_classes(base: type[OmnigraphError] = OmnigraphError) -> Iterator[type[OmnigraphError]]:
    """`base` and every error class of `omnigraph.errors` under it, in the order of the source."""
    yield base
    for found in base.__subclasses__():
        if found.__module__ == errors.__name__:
            yield from error_classes(found)


def error_index() -> str:
    """The error classes, grouped by what the caller does next."""
    advice = dict(re.findall(r"(?m)^ *[├└]── (\w+) {2,}(\S.*?)  ", errors.__doc__ or ""))
    parts = []
    groups = [each for each in error_classes() if each.__base__ is OmnigraphError]
    for group in sorted(groups, key=lambda each: list(advice).index(each.__name__)):
        parts.append(f"### {group.__name__}: {advice[group.__name__]}\n")
        parts.append("| error | kind | HTTP | what it says |\n|---|---|---|---|")
        parts.extend(_error_row(found) for found in error_classes(group))
        parts.append("")
    return "\n".join(parts).rstrip()


def _error_row(found: type[OmnigraphError]) -> str:
    promise = " ".join((inspect.getdoc(found) or "").split("\n\n")[0].split())
    # A group that is never raised itself has no kind of its own.
    kind = f"`{found.kind}`" if found.kind != OmnigraphError.kind else "–"
    return f"| `{found.__name__}` | {kind} | {found.http_status} | {promise} |"


def type_code_table() -> str:
    """The T codes with examples; every example is compiled to see that it raises its code."""
    rows = ["| code | refused when | example |", "|---|---|---|"]
    for code, meaning in TYPE_CODES.items():
        example = TYPE_EXAMPLES[code]
        raised = _code_raised_by(example)
        assert raised == code, f"the example of {code} raises {raised}: {example}"
        rows.append(f"| `{code}` | {meaning} | `{example}` |")
    return "\n".join(rows)


def lint_code_table() -> str:
    """The codes of lint, with what to do."""
    rows = ["| code | severity | when | do |", "|---|---|---|---|"]
    for code, known in LINT_CODES.items():
        rows.append(f"| `{code}` | {known.severity} | {known.meaning} | {known.remedy} |")
    return "\n".join(rows)


def _code_raised_by(example: str) -> str | None:
    match example.split()[0]:
        case "insert" | "update" | "upsert" | "delete" | "for":
            body = example
        case "return":
            body = f"match {{ $b: Book }} {example}"
        case "top":
            body = f"{example} match {{ $b cites $x }} return {{ $x }}"
        case "order":
            body = f"match {{ $b: Book }} return {{ $b.title as title }} {example}"
        case _:
            body = f"match {{ $b: Book  {example} }} return {{ $b.title }}"
    source = example if example.startswith("query") else f"query example() {{ {body} }}"
    try:
        compile_query(source, named_schema("library"))
    except TypeCheckError as error:
        return error.code
    return None


def part(name: str) -> str:
    """The text of a generated part."""
    match name.split():
        case ["help", *command]:
            return help_text(" ".join(command))
        case ["errors"]:
            return error_index()
        case ["type", "codes"]:
            return type_code_table()
        case ["lint", "codes"]:
            return lint_code_table()
        case ["http", "operations"]:
            return operation_table()
        case ["http", "errors"]:
            return error_table()
        case ["http", "limits"]:
            return limit_table()
        case _:
            raise ValueError(f"there is no generated part `{name}`")


def with_parts(page: str) -> str:
    """The page with every generated part as it should be now."""
    return _PART.sub(lambda at: f"{at['open']}\n{part(at['name'])}\n{at['close']}", page)


def with_answers(path: Path) -> str:
    """The page with the answers that its examples give now."""
    page = path.read_text(encoding="utf-8")
    answers = [
        (expected_of(block), answer_of(block)) for block in blocks_of(path) if block.has_answer
    ]
    for block, answer in reversed(answers):
        page = page[: block.start] + answer + page[block.end :]
    return page


def main() -> int:
    stale = []
    for path in PAGES:
        page = path.read_text(encoding="utf-8")
        fresh = with_parts(with_answers(path))
        if fresh != page:
            stale.append(path.relative_to(ROOT).as_posix())
            if "--write" in sys.argv[1:]:
                path.write_text(fresh, encoding="utf-8")
    print("\n".join(stale) or "the docs are current")
    return 0 if not stale or "--write" in sys.argv[1:] else 1


if __name__ == "__main__":
    sys.exit(main())
