"""The data pipeline: files, DataFrames and streams in, one commit out; and the way back.

    ranges.py       an input → ranges that tasks can read on their own
    input_files.py  files of an input, on disk or in an object store
    blocks.py       a range → blocks that fit in memory; documents.py where records span lines
    parse.py        a block → records by type, by Arrow where it can; lines.py sorts the lines
    groups.py       records by type, and what is no record: members.py, python_records.py
    columns_of_file.py  the columns of a typed file, as those that a load checks
    rows.py         records of one type → checked rows in stored form; embed.py fills vectors
    stage.py        all of the above for one range: the function that is mapped
    columns.py      key columns of loaded and committed rows
    check.py        rules between rows, in this process; hashes.py finds ids that may repeat
    exchange.py     blocks of keys by bucket; buckets.py hashes texts, occurrences.py counts them
    key_items.py    the rows of a check as parts for tasks
    exchange_ids.py, exchange_rules.py   the two rounds of check.py, by exchange
    regroup.py      rows that a merge drops or replaces, brought to their range or fragments
    suspects.py     keys that break a rule; name_violations.py their rows, in the words of check.py
    exchange_checks.py  all rounds by exchange; run_checks.py chooses; checked.py what ids say
    staged.py       every range of a load with what came of it; rows can be dropped again
    prepared.py     a checked load → one staged transaction per table
    loader.py       `run_load`: read, check, hand to write.commit; quarantine.py, progress.py
    preview.py      what a load would do; count_changes.py
    embed_rows.py   vectors that a graph lacks: embed_part.py, by spread.py on a runner
    runner.py       `Runner`, `InlineRunner`; spark_runner.py `SparkRunner`; engine.py chooses,
                    crossing.py says from which size on Spark is faster
    failure_reasons.py  why a Spark job failed, in our words
    tasks.py        work of other packages as tasks of a runner
    session.py      the SparkSession; java.py finds a Java for it; archive.py starts it sooner
    sources.py      files, directories and {type: files} as input; binding.py their columns;
                    mapping.py both from a YAML file; spooled.py files of stdin and of clients
    formats/        CSV, Parquet, Arrow, JSON
    frames.py       DataFrames as input, by spool.py; scan.py rows of a type as output
    export.py       a snapshot as load records; run_export.py chooses format and engine;
                    exported_models.py what made the vectors of an export, beside it
                    export_tables.py one file per table; output_files.py compresses it
    datasource.py   `spark.read.format("omnigraph")`, datasource_write.py writing to it;
                    datasource_errors.py what Spark says of either, in our words;
                    streaming.py a sink for foreachBatch; views.py types as tables of Spark SQL
    spark_blocks.py blocks of vertices on executors; numbering.py ids as numbers
    model.py        the values that travel between all of them

Only this package imports pyspark, and only when Spark is used.
"""
