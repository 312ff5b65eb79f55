"""Storage: the only importer of `lance`. Reads by (location, version), stages writes, commits.

    location.py       canonical roots and table paths
    predicates.py     typed predicates → binding.py (literals fitted to columns)
                      → filters.py (Lance filter text) and masks.py (the same, in memory)
    datasets.py       opening through one session → reads.py, pending.py, blobs.py
    handles.py        the opaque values given out
    staging.py  indexes.py  compaction.py   → transactions.py (stage, commit, prove)
    forks.py          native branches of a table
    tables.py         `TableStorage`: all of the above behind one sealed surface
    control.py        `ControlTable`: `__manifest` and history, with the one inline commit
    text.py           `TextStore` → text_local.py, text_s3.py
    queues.py         one writer at a time per (table, branch)
    durability.py  operation_files.py   what to sync, and syncing it
    version_files.py  the files that a version needs, and which of them are not there
    garbage.py        versions that nobody needs, and removing them
    counters.py       what happened, counted after success
    lance_errors.py   texts of Lance and the store → our errors

Import from the modules named here; this package imports nothing itself, so that parsing and
checking never pay for Lance.
"""
