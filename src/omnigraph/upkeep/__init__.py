"""Upkeep: what keeps a graph fast and sound as it grows. Only a schema change changes answers.

optimize.py        compacts tables, completes indexes → index_work.py, content_keeping.py
ensure_indices.py  builds declared indexes that are missing
cleanup.py         removes history outside a policy → orphan_forks.py, lost_tables.py
repair.py          adopts table versions that were committed outside Omnigraph and verify as safe
apply_schema.py    another schema for the same data
                   (purged_paths.py: tables that it removes for good)
schema_plan.py     what that would do, with row counts → broken_rules.py
doctor.py          the state of graph and machine, with advice
self_care.py       compacts after a write: the small fragments that many small writes left, when a
                   cheap counter says so; and cleans up as retention.py says
job_records.py     jobs that a server was given, how far they are (progress.py), what came of them
verify.py          checks everything; findings.py is what it reports
verify_files.py    compares every file with its record
"""
