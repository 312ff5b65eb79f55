"""Server: HTTP over `Graph`. Starlette and uvicorn are imported here and nowhere else.

A request passes these files from top to bottom:

main.py        `omnigraph-server`, the command
boot.py        its arguments, the project file and the environment → settings
settings.py    what a server serves, to whom, within which limits
run.py         the process: bind, say where, serve, stop without losing a write
app.py         settings → application: opens the graphs, registers every operation
observe.py     around each request: id, log line, metrics (logs.py, metrics.py)
operations.py  the table of operations: path, handler, models, words for the docs
call.py        one request on its way: who, which graph, may they (auth.py, gate.py), is there room
               (admission.py), what did they send (bodies.py, json_values.py, request_models.py);
               what blocks runs in threads.py, and queries that do not without (answers.py)
routes_*.py    one handler an operation, by noun
jobs.py        loads and merges, as values that run here or in write_process.py: a second process,
               whose other end is write_worker.py; write_messages.py is what they say
fence.py       what a write saw when it arrived
streaming.py   an export, chunk by chunk
envelope.py    an error → status and body (http_errors.py)
openapi.py     the table of operations → OpenAPI (response_models.py)
"""
