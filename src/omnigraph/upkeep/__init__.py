"""Upkeep: what keeps a graph fast and sound as it grows. Only a schema change changes answers.

optimize.py        compacts tables, completes indexes → index_work.py, content_keeping.py
ensure_indices.py  builds declared indexes that are missing
cleanup.py         removes history that nobody needs → orphan_forks.py
repair.py          publishes what moved without a write of ours, as far as that is safe
apply_schema.py    another schema for the same data → table_changes.py, rewrite.py
schema_plan.py     what that would do, with row counts → broken_rules.py
doctor.py          how graph and machine stand, with advice
self_care.py       compacts on the way: small pieces that many small writes left, when a cheap
                   counter says so
verify.py          looks at everything and says what is wrong; findings.py is what it reports
"""
