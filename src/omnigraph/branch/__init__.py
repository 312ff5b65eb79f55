"""Branches of the whole graph: create, compare, merge, reset, delete.

create.py        one ref in the manifest
delete.py        the ref, and what only it held; states that outlive it are written down
reset.py         back to an earlier commit, on forks of what has moved since
extent.py        about how many rows a merge is about
merge.py         two heads → outcome → one commit with two parents
  commit_dag.py    parents of commits, and what histories have in common
  merge_base.py    the best common ancestors of two heads, several of them as one
  virtual_base.py  rows of several bases as one
  plan.py          what the source did to each table, against what the target did
  compare.py       rows in which two versions of a table differ
    descent.py       the version both came from, so that only what changed since is read
    differences.py   the rows found: ids, and row ids of both sides
    equality.py      whether two rows have the same content
    row_batches.py   rows by their row ids, some at a time
    row_tasks.py     the same work by tasks, where a Spark is chosen
  conflicts.py     rows both sides changed, and not alike
  rules.py         what the merged graph would break
  choices.py       the caller's choices        resolve.py  choices and rules, round by round
    mixed_rows.py    rows of which each property was chosen
  merge_checks.py  which checks the target has afterwards; merge_models.py which embedding models
  forecast.py      runs them over what a merge would leave
  apply.py         sidecar, commits, confirmation, publish
  schema_join.py   which schema a merge of two schemas leads to, and its states in that schema
    schema_images.py   a state shown in another schema
    used_drops.py      what one side dropped and the other went on using
    merged_rows.py     whole tables of the result, and the rules they have to keep
    apply_schema_merge.py  rows, tables and schema in one publish
diff.py          two states → `changes.py`: entities with both images (`images.py`)
  compare_windows.py  `compare.py` for readers that take it in the order of ids
  windows.py          the next ids in order, in bounded memory
  entities.py         one node or edge as a snapshot shows it
feed.py          the change feed, page by page: change_records.py, cursors in feed_tokens.py
log.py           commits by what they changed: log_walk.py, type_line.py over line_segments.py
replay.py        revert, cherry-pick and restore: a merge over earlier states
  commit_changes.py  what commits did, as changes to take back or to make again
  restore.py         types or entities as an earlier state has them
  fold.py            several changes of one table as one plan
bisect.py        the commit that broke a check
entity_history.py  what every commit did to one entity, and which wrote its values
  entity_line.py     the commits of a line that changed it
  contested.py       merges that resolved a conflict about it
tag.py           a state under a name, which stays readable
apply_checks.py  the queries that have to hold on a branch
merge_request.py a request, made of its events: request_verbs.py adds one, request_review.py
                 counts verdicts
html.py          a diff as a page, drawn by `picture.py` from `surroundings.py`
"""
