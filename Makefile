# Every task, one line each. Targets set up their own .venv; a second run skips that.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
JOBS ?= 4
# The suite starts hundreds of processes: they compile each source once, whatever the shell prefers.
unexport PYTHONDONTWRITEBYTECODE
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --no-loadscope-reorder
# Each of the processes would compile every test by itself, and all of them at the same time.
COMPILE_TESTS := [ -d tests/__pycache__ ] || $(BIN)/python -m pytest --collect-only -q >/dev/null

# Built by Node from PyPI, and only when something below ui/ changed.
UI := src/omnigraph/server/workbench/.stamp
UI_SOURCES := $(filter-out ui/node_modules%,$(wildcard ui/* ui/src/* ui/src/*/*))

.DEFAULT_GOAL := help
.PHONY: help demo ui pictures test quick costs check golden tables bench docs acceptance torture clean

help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-11s %s\n", $$1, $$2}'

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Omnigraph needs Python 3.11 or newer; set PYTHON=<its path>" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

$(UI): $(READY) $(UI_SOURCES)
	@$(BIN)/python ui/build.py
	@touch $@

ui: $(UI)  ## build the workbench that `omnigraph ui` and `serve` show in a browser

demo: $(READY) $(UI)  ## set up, then show the product at work
	@PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/demo.sh

test: $(READY) $(UI)  ## set up, then pass the whole suite, and beside it the checks
	@log=$$(mktemp); $(MAKE) --no-print-directory check >$$log 2>&1 & checks=$$!; \
	$(COMPILE_TESTS); $(PYTEST); suite=$$?; \
	wait $$checks; checks=$$?; cat $$log; rm $$log; \
	[ $$suite = 0 ] || echo 'make test: the suite failed, see above'; \
	[ $$checks = 0 ] || echo 'make test: a check failed, see above'; \
	exit $$((suite || checks))

quick: $(READY)  ## the fast tests, for while you work
	$(PYTEST) -m 'not slow' -q

costs: $(READY)  ## the CPU seconds of the tests by file and by test; ARGS=tests/branch for a part
	$(PYTEST) -q -p tests.costs $(ARGS)

check: $(READY)  ## format, lint, types, import directions
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python ui/build.py --check

golden: $(READY)  ## rewrite the golden answers; the diff is the review
	OMNIGRAPH_GOLDEN=write $(BIN)/python -m pytest -q tests/test_golden.py

tables: $(READY)  ## rewrite the tables of the parsers after a change of a grammar
	$(BIN)/python -m omnigraph.syntax.tables

bench: $(READY)  ## numbers beside the last ones, and a page with charts; ARGS=--quick tries it out
	$(BIN)/python -m benchmarks $(ARGS)

docs: $(READY)  ## rewrite the generated parts of the docs
	$(BIN)/python -m tests.docs_generated --write

pictures: $(READY) $(UI)  ## take the screenshots of the docs again; needs chromium
	OMNIGRAPH_PICTURES=write $(BIN)/python -m pytest -q tests/browser

acceptance: $(READY)  ## run the suite and list the promises that no passing test names
	$(BIN)/python -m tests.acceptance

torture: $(READY) $(UI)  ## the suite with every case that `make test` samples, and new random ones
	OMNIGRAPH_TORTURE=1 $(PYTEST) --timeout 3600

clean:  ## remove the virtual environment and caches
	rm -rf ui/node_modules src/omnigraph/server/workbench src/omnigraph/graph/picture_files .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
