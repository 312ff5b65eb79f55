"""File formats: each a module behind `FileFormat`, found by ending or first bytes.

model.py        `FileFormat`, `TypedFile`, `PlannedFile`
table.py        the formats by ending and by first bytes
csv_file.py     CSV and TSV: header, delimiter, ranges; csv_records.py finds the records
csv_rows.py     a block of CSV → a group of rows; text_values.py texts → typed columns
json_rows.py    JSON whose records are rows of one type
json_file.py    JSON files, of rows of one type or of records that name theirs
parquet.py      Parquet by row groups; arrow_ipc.py Arrow and Feather by batches
columnar.py     what the two share
"""
