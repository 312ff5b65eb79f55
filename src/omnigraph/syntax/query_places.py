"""What stands in a place where this language has something else, and how that is said here.

A row of the table: what was found, what stands before it, and the hint. The first that fits counts.
"""

from __future__ import annotations

import re

ARROW = "name the edge between two variables: `$a wrote $b`"
VALUES = 'write the properties in braces: `insert Type { name: "x" }`'
WHERE = 'the condition stands alone behind `where`: `where name = "x"`'

PLACES = tuple(
    (found, re.compile(before + r"\s*\Z"), hint)
    for found, before, hint in (
        (
            r"\}",
            r"\beither\s*\{[^{}]*\}",
            "`either` needs a second pattern: `either { … } or { … }`",
        ),
        (
            r"\$\w+",
            r"\b(either|optional)",
            "the pattern goes in braces: `optional { … }`, `either { … } or { … }`",
        ),
        (
            r"\$\w+|\(",
            r"\$\w+\s+(\$\w+\s*:\s*)?[a-z]\w*\s+\$\w+\s+and",
            "a pattern is not a condition: clauses stand side by side, and all have to hold",
        ),
        (r"desc\w+", r"\border\s*\{[^{}]*", "write `desc`"),
        (r"asc\w+", r"\border\s*\{[^{}]*", "write `asc`"),
        (r"nulls", r"\border\s*\{[^{}]*", "null is the least value: first, and last with `desc`"),
        (r"[a-z_]\w*|\$\w+", r"\border", "the keys go in braces: `order { … }`"),
        (
            r":",
            r"\breturn\s*(distinct\s*)?\{([^{}]*,)?\s*[a-z_]\w*",
            "a column is named behind its value: `$p.name as n`",
        ),
        (
            r"=|!=|<|>|<=|>=",
            r"\$\w+\s*:\s*[A-Z]\w*\s*\{[^{}]*\b\w+",
            'braces hold values, `{ name: "x" }`; other tests stand beside: `$p.name != "x"`',
        ),
        (r",", r"\b(count|sum|avg|min|max)\s*\([^()]*", "an aggregate takes one value"),
        (r'".*|\[|[a-z]\w*', r"\b(limit|offset)", "a whole number from 0, or a parameter"),
        (r",", r"\blimit\s+[\w$]+", "write `limit n offset m`; `offset` needs `order`"),
        (r"\{|\$\w+", r"\btop\s+[\w$]+", "say what is best: `top 5 by $p.year desc { … }`"),
        (r"return", r"\btop\b.*\}", "`match { … }` follows the stages"),
        (r"\{|\(|[A-Z]\w*", r"\bwhere", WHERE),
        (r"where", r"\bupdate\s+\w+", "`set { … }` comes before `where`"),
        (r"\{", r"\bdelete\s+\w+", 'write `delete Type where name = "x"`'),
        (
            r"insert|upsert|update|delete",
            r"\bfor\s+\$\w+\s+in\s+\$\w+",
            "the statements go in braces: `for $row in $rows { … }`",
        ),
        (
            r"\d.*|\".*|\[|:|[a-z]\w*",
            r"\bquery\s+\w+\s*\(([^()]*,)?\s*\$\w+\s*:\s*[^,()]+",
            "a default follows `=`: `$n: I32 = 10`",
        ),
        (
            r"!",
            r"\bquery\s+\w+\s*\(([^()]*,)?\s*\$\w+\s*:\s*[^,()]+",
            "a parameter without `?` is required",
        ),
        (r"\(", r"\bquery", "a query has a name: `query find() { … }`"),
        (
            r"\$\w+.*",
            r"\[([^\[\]]*,)?",
            "a list holds literals; `collect(…)` makes one of the values of rows",
        ),
        (r"\{", r"\breturn\s*\{([^{}]*,)?", "an object is made of a node: `$p { name }`"),
        (
            r"\*",
            r"\*",
            "there are no powers; multiply",
        ),
        (r"as", r"\bcast\s*\(.*", "nothing is converted; types come from the schema"),
        (
            r"\+",
            r"\$\w+\s+[<]?\w+[>]?",
            "say how far behind the edge: `{1,3}`, or write `shortest` before it",
        ),
        (
            r"(?i)(all)?shortestpaths?",
            r"\$\w+\s*:",
            "name the path before the edge: `$a $t:shortest knows $b`",
        ),
        (r"INTERVAL", r"", "write `now() - days(7)`, or `hours(…)`, `minutes(…)`"),
        (
            r"match|top|insert|upsert|update|delete|for",
            r"\A",
            "a query has a name: `query find() { … }`",
        ),
        (r"\(", r"\bmatch", "the pattern goes in braces: `match { … }`"),
        (r"match", r"\boptional", "write `optional { … }`"),
        (r"optional", r"\)\s*\{", "`optional { … }` stands in `match`, beside what it hangs on"),
        (r"top", r"\}", "`top n by … { … }` comes before `match`"),
        (r"\w+", r"\btop\s+[\w$]+", "write `top n by … as $score { … }`"),
        (r"[a-z]\w*", r"\btop\b[^{}]*\bas", "the score is a variable: `as $score`"),
        (r"[a-z]\w*", r"\bfor", "the row is a variable: `for $row in $rows { … }`"),
        (r"from", r"\bdelete", "write `delete Type where …`"),
        (
            r"[a-z]\w*",
            r"\bdelete",
            "a variable begins with `$`: `delete $x`; a type is `delete Type where …`",
        ),
        (r"\{", r"\bupdate\s+[$\w]+", 'write `update Type set { name: "x" } where …`'),
        (
            r"\$\w+",
            r"\b(set|insert\s+\w+|upsert\s+\w+)\s*\{([^{}]*,)?",
            'a property stands alone before its value: `name: "x"`',
        ),
        (
            r"[a-z]\w*",
            r"\bquery\s+\w+\s*\(([^(){}]*,)?",
            "a parameter begins with `$`: `$name: String`",
        ),
        (
            r"\)|,",
            r"\bquery\s+\w+\s*\(([^(){}]*,)?\s*\$\w+",
            "a parameter has a type: `$name: String`",
        ),
        (
            r"\{",
            r"\bquery\s+\w+",
            "parameters stand in parentheses, also where there are none: `query q() { … }`",
        ),
        (r"\)", r"\bcount\s*\(", "`count($x)` counts the rows in which $x is bound"),
        (r"\)", r"\bdatetime\s*\(", '`now()` is the present; `datetime("…")` is written out'),
        (
            r"\)",
            r"\b(search|match_text|fuzzy)\s*\([^(),]*",
            'a search has a property and words: `search($p.title, "words")`',
        ),
        (
            r"search|match_text|fuzzy",
            r"\$\w+\.\w+",
            'a search is a call: `search($p.title, "words")`',
        ),
        (
            r"\.",
            r"\b(nodes|edges)\s*\([^()]*\)",
            "name the property in the call: `nodes($t, title)`",
        ),
        (r"\.", r"\)", "a function stands before its value: `length($p.name)`"),
        (r"-|\d+\.\d+", r"\b(limit|offset|top)", "a whole number from 0, or a parameter"),
        (r'".*', r"\bas", "an alias is a word without quotes: `as name`"),
        (
            r"[a-z]\w*",
            r"\b(or|and)\s+\$\w+",
            "patterns are joined by `either { … } or { … }`; `or` and `and` join conditions",
        ),
        (r"set", r"\}", "write `update $x set { … }`, with a variable of `match`"),
        (r"\$\w+|\[|[a-z_]\w*", r"\breturn", "what is returned goes in braces: `return { … }`"),
        (r"\w+", r"-\s*\[", ARROW),
        (r"not", r"[\w)\]\"]", "negate the whole test: `not ($p.x in [1, 2])`"),
        (
            r"[<>]=?|!=|=",
            r"(=|<|>)\s*(\$?[\w.]+|\"[^\"]*\")",
            "comparisons do not chain; write two: `1 <= $p.x  $p.x <= 5`",
        ),
        (
            r"is",
            r"[\w)]",
            "`is null` and `is not null` test for null; other values are compared: `!=`",
        ),
        (r"\.", r"(?<![\w$.])[a-z_]\w*", "a variable begins with `$`: `$p.name`"),
        (r":", r"[{\s](?<!\$)[a-z_]\w*", "a variable begins with `$`: `$p: Person`"),
        (
            r"\*",
            r"\$\w+\s+[<]?\w+[>]?",
            "say how far behind the edge: `{1,3}`, or write `shortest` before it",
        ),
        (r"\.\.", r"\{\s*\d+", "the bounds are divided by a comma: `{1,3}`"),
        (
            r"\w+",
            r"(?i)shortestpath\s*\(.*",
            "name the path before the edge: `$a $t:shortest knows $b`",
        ),
        (r"\w+", r"\bset", 'assignments go in braces: `set { name: "x" }`'),
        (
            r"=",
            r"\b(set|insert\s+\w+|upsert\s+\w+)\s*\{[^{}]*\b\w+",
            'a property is given its value by a colon: `name: "x"`',
        ),
        (r"\(", r"\b(insert|upsert)\s+\w+", VALUES),
        (r"when", r"\bcase\s.+", "every branch has its condition: `case when $p.x = 1 then … end`"),
        (r"=|!=|<|>|<=|>=", r"\bif\s*\([^()]*", "write `case when … then … else … end`"),
        (r"True|False|Null|None", r"", "words are lower case: `true`, `false`, `null`"),
    )
)
"""What is found, what stands before it, and how that is said here."""
