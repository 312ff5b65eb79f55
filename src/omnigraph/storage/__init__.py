"""Storage: the only importer of `lance`. Reads by (location, version), stages writes, commits.

    tables.py         `TableStorage`: opens and commits tables, and has the parts below
    location.py       canonical roots and table paths     handles.py   the opaque values given out
    datasets.py       opening through one session         counters.py  what happened, counted

    reads.py          rows of an open version: scan, count, take, blobs
        predicates.py → binding.py (literals fitted to columns) → filters.py (Lance filter text)
        and masks.py (the same, in memory), value_sets.py (a long `in`, prepared once);
        projection.py, pending.py, blobs.py
    row_addresses.py  where rows lie; row_ids.py reads the row ids that a fragment records
    ancestry.py       what changed between a version and an ancestor of it
    row_search.py     the row of one id in many versions of a table
    search.py         vectors.py; tokens.py is what full text sees of a text

    staging.py (write_files.py)  schema_staging.py  unattached.py  indexes.py  compaction.py
    table_tasks.py    heavy work on large tables, by tasks; parts.py stages what they have written,
                      work_progress.py tells how far they are
                      → transactions.py (stage, commit, prove)
                      → appended_versions.py (the versions of a group after the first)
    known_keys.py     which rows of an upsert are new, without a join
    written_rows.py   the rows that were just written, to derive from without a scan
    taken_rows.py     the rows that an operation has read, for it to read again
    forks.py          Lance branches of a table
    durability.py  operation_files.py   what to sync, and syncing it

    control.py        `ControlTable`: `__manifest` and history, with the inline commits
                      → control_commits.py (one commit of rows, and making it durable)
                      (latest_versions.py: which version of one is still the latest)
    power_cut.py      what a power cut leaves of one: torn.py (files), torn_rows.py (rows)
    queues.py         one writer at a time per (table, branch)
    scratch.py        the files of a load that is not committed
    alive.py          marks that a process is at work on something
    file_times.py     when the times of a file prove that it has not changed

    recorder.py       checksums.py of what was written → checksum_records.py, fold_records.py
    content.py        compares them with what is there; listing.py, version_files.py
    garbage.py        removes versions; leftovers.py removes files of killed writers
    relocation.py     mends the paths in version files (base_paths.py) after a graph has moved
    file_copy.py      files to another store: dataset_files.py, placed_files.py where they lie
    version_identity.py  whether a version is the one that a transaction made
    lance_manifest.py the bytes of a version file (protobuf.py); fragments.py
    objects.py        moves, removes and replaces whole files
    text.py           `TextStore` → text_local.py, text_s3.py; graph_texts.py names below the root
    lance_errors.py   texts of Lance and the store → our errors
    pandas_later.py   keeps pandas out of what Lance imports

Import from the modules named here; this package imports nothing heavy itself, so that parsing and
checking never pay for Lance.
"""

from omnigraph.storage.pandas_later import load_pandas_later

load_pandas_later()
