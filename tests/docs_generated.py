"""`make docs`: write the parts of the docs that the code knows best, in place.

    <!-- generated: help schema plan -->     what `omnigraph schema plan --help` prints
    <!-- generated: errors -->               every error class, by what the caller does next
    <!-- generated: type codes -->           every T code, with an example that raises it
    <!-- generated: http operations -->      what the server serves; also `errors` and `limits`

A part ends with `<!-- /generated -->`. The answers that examples show (error texts, console
sessions, printed lines) are rewritten too, and the diff is the review. Without `--write` nothing
is changed and stale pages are listed.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import typer
from typer.testing import CliRunner

from omnigraph import compile_query, errors
from omnigraph.cli.app import app
from omnigraph.errors import OmnigraphError, TypeCheckError
from tests.docs_blocks import PAGES, ROOT, answer_of, blocks_of, expected_of, named_schema
from tests.http.documents import error_table, limit_table, operation_table

_PART = re.compile(
    r"(?ms)^(?P<open><!-- generated: (?P<name>[^\n]+?) -->)\n.*?^(?P<close><!-- /generated -->)$"
)

TYPE_CODES: dict[str, tuple[str, str]] = {
    "T1": ("a pattern names a node type that does not exist", "$x: Bok"),
    "T2": (
        "a pattern matches a property that the type does not have",
        '$x: Book { titel: "Emma" }',
    ),
    "T3": ("a literal does not fit its property", '$x: Book { status: "lost" }'),
    "T4": ("there is no edge of that name", "$b cite $x"),
    "T5": ("a node at one end of a traversal does not fit the edge", "$b follows $x"),
    "T6": ("`$v.p` names an unbound variable or an unknown property", "return { $b.titel }"),
    "T7": ("two typed values do not fit together", '$b.year = "1815"'),
    "T8": ("an aggregate cannot work on values of that type", "return { sum($b.title) }"),
    "T9": (
        "a `not` mentions nothing outside it; or a value beside an aggregate is no group",
        "not { $x: Reader }",
    ),
    "T10": ("a mutation names a type that does not exist", 'insert Bok { isbn: "1" }'),
    "T11": (
        "a mutation names a property that does not exist, or compares a Blob",
        'delete Book where titel = "Emma"',
    ),
    "T12": (
        "an insert or upsert leaves out something required",
        'insert Author { slug: "austen" }',
    ),
    "T13": (
        "a mutation assigns a property twice",
        'update Author set { born: 1775 born: 1776 } where slug = "austen"',
    ),
    "T14": ("a value is a variable that is not a parameter", "$x: Book { title: $b }"),
    "T15": (
        "hop bounds that are open, zero or reversed; or a misused `nearest`",
        "$b cites{1,} $x",
    ),
    "T17": ("an order by `nearest` has no `limit`", 'order { nearest($b.embedding, "sea") }'),
    "T18": (
        "an order mixes `nearest` with an alias",
        'order { nearest($b.embedding, "sea"), title } limit 3',
    ),
    "T19": ("a misused `search` or `fuzzy`", 'search($b.year, "sea")'),
    "T20": ("a misused `match_text` or `bm25`", 'match_text($b.year, "sea")'),
    "T21": (
        "a misused `rrf`, or an order by it without `limit`",
        'order { rrf(bm25($b.title, "sea"), bm25($b.summary, "sea")) }',
    ),
    "T22": ("`<edge>` reads an edge between two different types", "$b <borrowed> $x"),
    "T23": ("an edge variable stands where a node is needed", "$x $e:borrowed $b  $e follows $x"),
    "T24": ("a Blob is read by a query", "return { $b.cover }"),
    "T25": ("an unknown function, or a wrong number of arguments", 'trim($b.title) = "Emma"'),
    "T26": ("operands or arguments of a wrong type, a duration out of place", "$b.title + 1 = 2"),
    "T27": ("`null` where it cannot stand", "$b.price != null"),
    "T28": ("a computed column without a name", "return { $b.year + 1 }"),
    "T29": ("`in` without a list literal or list parameter that fits", '$b.year in ["1818"]'),
    "T30": (
        "branches of `case` or arguments of `coalesce` of two types",
        'coalesce($b.price, "free") = 1.0',
    ),
    "T31": ("a bare word that names nothing here", "$b.year = year"),
    "T32": ("`having` without an aggregate", "return { $b.isbn } having { $b.isbn is not null }"),
    "T33": (
        "an ordering that has no order, is constant, or is not projected beside aggregates",
        "return { $b.isbn } order { $b.topics }",
    ),
    "T34": (
        "a `limit` or `offset` that is no integer, or `offset` without `order`",
        "return { $b.isbn } limit 3 offset 3",
    ),
    "T35": ("`optional` misplaced, or unconnected", "optional { $x: Reader }"),
    "T36": (
        "a path variable outside `hops`, `nodes`, `edges`, `cost`",
        "$b $t:cites{1,3} $x  $t cites $b",
    ),
    "T37": ("`by` without `shortest`, or of no number", "$b cites{1,3} by year $x"),
    "T38": (
        "a condition on hops that reads no property of the edge",
        "$b cites{1,3 where x = 1} $x",
    ),
    "T39": (
        "more than three stages, or a score whose name is taken",
        "top 1 by $b.year as $b { $b: Book }",
    ),
    "T40": (
        "a ranking or a search inside an expression",
        'return { bm25($b.title, "sea") + 1 as s }',
    ),
    "T41": ("`either` nested, or unconnected", "either { $b cites $x } or { $y: Reader }"),
    "T42": (
        "an `upsert` without the key",
        'upsert Author { name: "Austen" }',
    ),
    "T43": (
        "a `for` over something else than a list of rows, inside another one, or after `match`",
        'for $r in $rows { delete Author where slug = "austen" }',
    ),
    "T44": (
        "a bound update or delete of what is no node or edge, `where` after `match`, an edge moved",
        'update Wrote set { to: "emma" } where from = "austen"',
    ),
    "T45": (
        "a `return` of a mutation without anything to return, with aggregates, or a second label",
        'delete Author where slug = "austen" return { 1 as one }',
    ),
    "T46": (
        "a default that is no value of its parameter's type",
        "query q($n: I32 = null) { match { $b: Book } return { $b.isbn } limit $n }",
    ),
}
"""What breaks each rule, and an example over the library schema; `$b: Book` is bound before it."""


def command_names() -> list[str]:
    """Every command as it is typed after `omnigraph`, groups and hidden ones included."""
    return sorted(_names_below(typer.main.get_command(app), ""))


def _names_below(command: object, prefix: str) -> Iterator[str]:
    for name, child in getattr(command, "commands", {}).items():
        yield f"{prefix}{name}"
        yield from _names_below(child, f"{prefix}{name} ")


def help_text(command: str) -> str:
    """What `omnigraph <command> --help` prints on 80 columns."""
    arguments = [*command.split(), "--help"]
    result = CliRunner().invoke(app, arguments, prog_name="omnigraph", terminal_width=80)
    assert result.exit_code == 0, result.output
    return f"```text\n$ {' '.join(['omnigraph', *arguments])}\n{result.output.rstrip()}\n```"


def error_classes(base: type[OmnigraphError] = OmnigraphError) -> Iterator[type[OmnigraphError]]:
    """Every error class of the package under `base`, in the order of the source."""
    for name, found in vars(errors).items():
        if inspect.isclass(found) and issubclass(found, base) and found.__name__ == name:
            yield found


def error_index() -> str:
    """The error classes, grouped by what the caller does next."""
    advice = dict(re.findall(r"(?m)^ *[├└]── (\w+) {2,}(\S.*?)  ", errors.__doc__ or ""))
    parts = []
    for group in error_classes():
        if group.__base__ is OmnigraphError:
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
    for code, (meaning, example) in TYPE_CODES.items():
        raised = _code_raised_by(example)
        assert raised == code, f"the example of {code} raises {raised}: {example}"
        rows.append(f"| `{code}` | {meaning} | `{example}` |")
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
