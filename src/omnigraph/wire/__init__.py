"""Wire: what callers ask for, and results as JSON for the server and for `--json`.

calls.py      what is asked: a query, a part of a log or feed, a Blob
results.py    results of reads and writes
history.py    commits, logs, histories, snapshots
branches.py   branches, tags, checks, merges, undoes
errors.py     errors and conflicts
names.py      a table key in both vocabularies

The older words (`tables`, `table_key`, `manifest_version`) and the newer ones (`datasets`,
`type_name`, `graph_manifest_version`) never share a name, so a body carries both and clients of
every age find theirs.
"""

from omnigraph.wire.branches import (
    branch_created_to_json,
    checks_to_json,
    merge_preview_to_json,
    merge_requests_to_json,
    removed_to_json,
    request_preview_to_json,
    reset_to_json,
    tags_to_json,
    undone_to_json,
)
from omnigraph.wire.calls import (
    DETAILS,
    LOG_COMMITS,
    PATCH_CHANGES,
    BlobContent,
    BlobPlace,
    FeedPart,
    LogPart,
    QueryCall,
    QueryText,
    RequestVerb,
)
from omnigraph.wire.errors import (
    CODES,
    check_failures_to_json,
    conflict_to_json,
    error_to_json,
    parse_conflict,
)
from omnigraph.wire.history import (
    blame_to_json,
    commit_to_json,
    commits_to_json,
    history_to_json,
    log_to_json,
    patch_to_json,
    read_patches,
    snapshot_to_json,
)
from omnigraph.wire.names import entity_of
from omnigraph.wire.results import (
    blob_written_to_json,
    change_to_json,
    embed_to_json,
    explanation_to_json,
    frozen_read_to_json,
    load_to_json,
    preview_to_json,
    read_target,
    read_to_json,
    schema_applied_to_json,
)

__all__ = [
    "CODES",
    "DETAILS",
    "LOG_COMMITS",
    "PATCH_CHANGES",
    "BlobContent",
    "BlobPlace",
    "FeedPart",
    "LogPart",
    "QueryCall",
    "QueryText",
    "RequestVerb",
    "blame_to_json",
    "blob_written_to_json",
    "branch_created_to_json",
    "change_to_json",
    "check_failures_to_json",
    "checks_to_json",
    "commit_to_json",
    "commits_to_json",
    "conflict_to_json",
    "embed_to_json",
    "entity_of",
    "error_to_json",
    "explanation_to_json",
    "frozen_read_to_json",
    "history_to_json",
    "load_to_json",
    "log_to_json",
    "merge_preview_to_json",
    "merge_requests_to_json",
    "parse_conflict",
    "patch_to_json",
    "preview_to_json",
    "read_patches",
    "read_target",
    "read_to_json",
    "removed_to_json",
    "request_preview_to_json",
    "reset_to_json",
    "schema_applied_to_json",
    "snapshot_to_json",
    "tags_to_json",
    "undone_to_json",
]
