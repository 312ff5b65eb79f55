"""Write: from a request to rows that keep every rule of the schema, to one graph commit.

The data rules are pure functions over Arrow columns: no storage, no I/O. Bulk load (in this
process or in Spark workers), mutations and branch merge call the same ones.

    convert.py      JSON records or Arrow columns → columns of the stored types
      fit.py          one column at a time, by Arrow kernels
      instants.py     columns of Date and DateTime texts
      values.py       one value at a time: the rule itself, and the reason when it fails
    keys.py         canonical strings, node and edge ids, rows in stored order
      ulids.py        generated ids, a batch at a time
    validate.py     enum, @range, @check, required
      matching.py     @check patterns over a column, in linear time where RE2 can say the same
    integrity.py    uniqueness, endpoints, cardinality: functions of key columns or one bucket
    rules.py        every rule of the schema, over a view of the graph after a write
    bad_rows.py     what is wrong with which row: all are counted, the first are kept

From a checked change to a commit, and recovery after a crash:

    staging.py      the pending change of one mutation → check.py (its view for rules.py)
      mutate.py       its statements, one after the other: select_rows.py, new_rows.py, upsert.py,
                      given_rows.py and for_rows.py (`for`), embedding.py, returned.py
      touched.py      which tables it writes and reads, known before it runs
      checks.py       the queries that have to hold after a write; pending_checks.py
    commit.py       mutations and loads: prepare → stage → queues → look again → carry out
      fork.py         the branch's own lineage of a table, on its first write
      drift.py        a table whose HEAD is not its pin is not written to
    group.py        inserts that wait at the same time: the same for several, in one commit
      group_queue.py  who waits, who leads
    intent.py       what a writer is about to do, as one value; pins.py, environment.py
    protocol.py     every writer: sidecar (A) → HEADs (B) → publish (C) → delete (D), or undone
      sidecar.py      the intent as JSON; sidecar_files.py makes it durable first
    recovery.py     finish or undo what a dead writer left; recovery_actions.py carries it out
      evidence.py     what storage shows of the tables that a sidecar names
      classify.py     class of a table, decision for the write: pure rules
      schema_recovery.py  the part of it that knows schema files; purge.py
      power_cut.py    control tables of which a power cut kept names without contents
      audit.py        one row per recovered write
    schema_lock.py  no other writer writes while a schema change is under way

From one schema to another, for schema changes and for merges of schemas:

    table_changes.py  what becomes of each table
    new_image.py      the rows of a table as another schema has them
    rewrite.py        a table staged in its new columns; new_tables.py makes those that are added
"""
