"""Parameters that operations share: of paths, of the URL and of headers."""

from __future__ import annotations

from omnigraph.server import routes_review, routes_writes
from omnigraph.server.operation import Parameter
from omnigraph.wire import DETAILS

BRANCH = Parameter("branch", "query", "The branch; `main` by default.")
CONDITION = Parameter(
    routes_writes.IF_COMMIT_HEADER,
    "header",
    "The graph commit that has to be the head of the branch.",
    is_required=True,
)
LOAD = (
    Parameter("branch", "query", "The branch to load into; `main` by default."),
    Parameter("from", "query", "Where a missing branch starts from."),
    Parameter(
        "mode",
        "query",
        "How records meet rows; `merge` by default.",
        values=("overwrite", "append", "merge"),
    ),
    Parameter(
        "embed",
        "query",
        "Whether missing `@embed` vectors are made; `true` by default.",
        values=("true", "false"),
    ),
    Parameter("message", "query", "Why the commit is made; it stays with it."),
    Parameter("meta", "query", "What else to note on the commit: `key=value`; repeatable."),
)
DRY_RUN = Parameter(
    "dry_run",
    "query",
    "Whether to check and count only, and write nothing; `false` by default.",
    values=("true", "false"),
)
LOG = (
    BRANCH,
    Parameter("type", "query", "Only commits that changed rows of this type, or the type."),
    Parameter("id", "query", "Only those that changed this node or edge of the type."),
    Parameter("actor", "query", "Only commits by this actor."),
    Parameter("since", "query", "Only those made at this time or later."),
    Parameter("until", "query", "Only those made by this time."),
    Parameter("message", "query", "Only those with this text in their message, in any case."),
    Parameter("after", "query", "The next page: the last commit of the page before."),
    Parameter("limit", "query", "Number of commits; of a log, and with a detail, 30 by default."),
    Parameter(
        "detail", "query", "Also what each changed: counts by table, or changes.", values=DETAILS
    ),
    Parameter("changes", "query", "Changes of each commit; 100 by default, at most 8,192."),
)
ENTITY = (
    Parameter("type", "query", "The type of the node or edge.", is_required=True),
    Parameter("id", "query", "The id of the node or edge.", is_required=True),
    Parameter("branch", "query", "The branch; `main` by default."),
)
FILTERS = (
    Parameter("kind", "query", "Only nodes or edges.", values=("node", "edge")),
    Parameter("type", "query", "Only this type; may be repeated."),
    Parameter("op", "query", "Only these; repeatable.", values=("insert", "update", "delete")),
)
CHANGES_MAX = Parameter("changes_max", "query", "How many changes are listed; all by default.")
DIFF = (
    Parameter(
        "from", "query", "The earlier state: a branch, commit or `branch@time`.", is_required=True
    ),
    Parameter("to", "query", "The later state; `main` by default."),
    *FILTERS,
    Parameter("format", "query", "`json` by default.", values=routes_review.DIFF_FORMATS),
    CHANGES_MAX,
)
PAGE = (
    Parameter("page_token", "query", "The `next_page_token` of the page before."),
    Parameter("limit", "query", "Changes of a page; 1,000 by default, at most 8,192."),
)
POLL = (
    BRANCH,
    Parameter("cursor", "query", "The `cursor` of the poll before."),
    Parameter("start", "query", "`now` (the default), `beginning` or `after:COMMIT`."),
    *PAGE,
    *FILTERS,
)
COMMIT = Parameter("commit_id", "path", "The graph commit.", is_required=True)
BLOB = (
    Parameter("entity", "query", "A node or an edge.", is_required=True, values=("node", "edge")),
    Parameter("type", "query", "The type of the node or edge.", is_required=True),
    Parameter("id", "query", "The id of the node or edge.", is_required=True),
    Parameter("property", "query", "The Blob property.", is_required=True),
    BRANCH,
    Parameter("snapshot", "query", "A graph commit, instead of a branch."),
)
PUT_BLOB = (
    *BLOB[:5],
    Parameter("message", "query", "Why: a message that stays with the commit."),
    Parameter("meta", "query", "A fact about the commit, `key=value`; may be repeated."),
    Parameter("If-Match", "header", "Write only while the Blob has this ETag."),
)
REQUESTS = (
    Parameter("state", "query", "`open` by default.", values=("open", "merged", "closed", "all")),
    Parameter("limit", "query", "Requests of a page; 50 by default, at most 1,000."),
    Parameter("before", "query", "Only those of smaller numbers: the `next_before` of a page."),
)
NUMBER = Parameter("number", "path", "The number of the merge request.", is_required=True)
EVENT_PAGE = (
    Parameter("after", "query", "Only events after this one: the `next_after` of a page."),
    Parameter("limit", "query", "Events of a page; 100 by default, at most 1,000."),
)
STORED = Parameter("name", "path", "The name of the stored query.", is_required=True)
