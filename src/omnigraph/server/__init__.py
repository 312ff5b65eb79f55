"""Server: HTTP over `Graph`. Starlette and uvicorn are imported here and nowhere else.

A request passes these files from top to bottom:

main.py        `omnigraph-server`, the command
boot.py        its arguments, the project file and the environment → settings
source.py      the same, to be read again; reload.py replaces what changed while the server runs
settings.py    what a server serves, to whom, within which limits
run.py         the process: bind, announce the address, serve, stop without losing a write
app.py         settings → application: opens the graphs, registers every operation
observe.py     around each request: id, log line, metrics (logs.py, metrics.py), and what was sent
               (freed_memory.py)
operations.py  the table of operations: path, handler, models (operation.py, parameters.py)
call.py        one request: authenticate (auth.py), choose the graph, authorize (branch_bound.py,
               gate.py), admit (admission.py), read the body (bodies.py, json_values.py,
               request_models.py; files: uploads.py); blocking calls run in
               worker_pool.py, queries through query_runner.py
routes_*.py    one handler per operation, by noun
               (states.py and readable_types.py: what of the past, and which types, a caller may
               read; url_parameters.py; bodies in undo_models.py, merge_request_models.py)
graphs.py      opens every graph once; graph_metrics.py, traces.py tell how it does
events.py      the change feed as one long response; json_parts.py long documents, part by part
mcp_*.py       the same operations as tools for agents: mcp_server.py, by HTTP (mcp_exchange.py)
               or pipes (mcp_stdio.py); a tool is a request (mcp_tool.py, mcp_tools.py, …)
strict_lines.py  records of a raw load; token_entries.py the file of tokens
workbench.py   the files of the page in the browser; catalogs.py and pictures.py describe a schema
               and a query to it
jobs.py        loads, merges and vectors, as values that run here or in write_process.py: a second
               process, whose other end is write_worker.py; write_messages.py is their protocol
upkeep_runner.py  jobs of upkeep: accepted, run (upkeep_job.py), answered for
fence.py       refuses a write whose tables changed after the request arrived
streaming.py   an export, chunk by chunk
envelope.py    an error → status and body (http_errors.py)
openapi.py     the table of operations → OpenAPI (response_models/); openapi_stored.py adds the
               stored queries that a caller may invoke
"""
