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
    bad_rows.py     what is wrong with which row, counted in full and kept in part
"""
