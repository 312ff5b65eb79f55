"""The data pipeline: records in, one commit out.

`records.py` reads load records and groups them by type, `load.py` turns them into a checked change
that `write.commit` publishes.
"""
