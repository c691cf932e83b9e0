# Shinsen. `make help` lists the targets. Needs GNU make and Python 3.11 or newer, nothing else.
SHELL := /bin/sh
.DEFAULT_GOAL := help

VENV ?= .venv
PORT ?= 8000
DATA ?= .shinsen
ARGS ?=
STACK ?= .stack
SPARQL ?= fuseki
WORKERS ?= 2
BENCHES ?= indexes query ingest staged_load stack_replay stack_fresh stack_overhead stack_scale stack_memory
# The newest Python of 3.11 or later that the PATH has, `python3` itself before all others.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; exit; }; done; echo python3)

PY := $(VENV)/bin/python
PIP := $(PY) -m pip install --disable-pip-version-check --no-input --quiet
# An editable install without build isolation: setuptools is in the lock file, so nothing unpinned is fetched.
SELF := $(PIP) --no-deps --no-build-isolation --editable .
RUN := $(VENV)/.installed-run
DEV := $(VENV)/.installed-dev
PYTEST := $(PY) -m pytest

.PHONY: help
help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)$$/  make \1|\2/p' $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{printf "%-18s %s\n", $$1, $$2}'
	@echo 'Variables: PORT=$(PORT) DATA=$(DATA) STACK=$(STACK) SPARQL=$(SPARQL) (or oxigraph) WORKERS=$(WORKERS)'
	@echo '           VENV=$(VENV) PYTHON=$(PYTHON) ARGS= (more arguments of the command)'

.PHONY: run
run: $(RUN) ## Start the embedded profile with the demo corpus at PORT over the folder DATA
	@exec $(VENV)/bin/shinsen run --demo --port $(PORT) --data $(DATA) $(ARGS)

.PHONY: test
test: $(DEV) ## All tests that this machine can run; ARGS goes to pytest. REQUIRE_ALL=1: a skip is a failure
	$(PYTEST) $(ARGS)

.PHONY: test-fast
test-fast: $(DEV) ## Tests without real servers, real models, browsers or killed processes
	$(PYTEST) -m "not stack and not models and not browser and not faults" $(ARGS)

.PHONY: check
check: $(DEV) ## Style, types, layers, the map test
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports
	$(PYTEST) tests/architecture

.PHONY: format
format: $(DEV) ## Let ruff put the style right
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

.PHONY: bench
bench: $(DEV) ## Benchmarks of ops/bench, one after the other (BENCHES="ingest query" chooses)
	@set -e; for name in $(BENCHES); do echo "== $$name"; $(PY) -m ops.bench.$$name $(ARGS); done

.PHONY: soak
soak: soak-stack ## More faults and more random histories: SOAK=number of each, SHINSEN_SEED=another seed
	SHINSEN_FAULTS=$${SOAK:-200} SHINSEN_HISTORIES=$${SOAK:-200} $(PYTEST) -s tests/faults tests/differential \
		--ignore tests/faults/test_stack_faults.py $(ARGS)

.PHONY: soak-stack
soak-stack: $(DEV) ## The stack's part of it, ten faults a round; ROUNDS=7-19 goes on where a run was cut off
	SHINSEN_ROUNDS=$${ROUNDS:-0-$$(( ($${SOAK:-200} + 9) / 10 - 1 ))} SHINSEN_DOWN=$${SHINSEN_DOWN:-20} \
		$(PYTEST) -s tests/faults/test_stack_faults.py $(ARGS)

.PHONY: eval
eval: $(DEV) ## The demo's golden questions over DATA (run `make run` once before)
	$(VENV)/bin/shinsen eval ops/demo/golden.jsonl --data $(DATA) $(ARGS)

.PHONY: eval-shared
eval-shared: $(DEV) ## 4,442 and 220 questions over ../shared/data (half an hour to load once); reports in ops/bench/evaluation
	$(VENV)/bin/shinsen eval ../shared/data/retrieval-ja --source shared --load --data .shinsen-eval/shared \
		--report ops/bench/evaluation/shared $(ARGS)
	$(VENV)/bin/shinsen eval ops/bench/questions/shared.jsonl --data .shinsen-eval/shared \
		--report ops/bench/evaluation/independent $(ARGS)

.PHONY: stack
stack: $(DEV) ## The whole stack without Docker, until Ctrl-C: servers, topics, workers, API at PORT (see ops/stack)
	@exec $(PY) -m ops.stack run --sparql $(SPARQL) --workers $(WORKERS) --port $(PORT) --data $(STACK) $(ARGS)

.PHONY: stack-demo
stack-demo: $(DEV) ## Publish the demo corpus into the stack that runs, and ask its question
	@exec $(PY) -m ops.stack demo --data $(STACK) $(ARGS)

.PHONY: stack-status
stack-status: $(DEV) ## What of the stack runs and answers
	@$(PY) -m ops.stack status --data $(STACK) $(ARGS)

.PHONY: stack-down
stack-down: $(DEV) ## Stop the stack; data stay (ARGS=--purge deletes them)
	@$(PY) -m ops.stack down --data $(STACK) $(ARGS)

.PHONY: dev
dev: $(DEV) ## Install what tests and checks need, and nothing else

.PHONY: lock
lock: ## Resolve requirements/*.txt anew (needs uv)
	@command -v uv >/dev/null || { echo 'make lock needs uv: python3 -m pip install uv' >&2; exit 1; }
	uv pip compile pyproject.toml --extra stack --extra dev --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-header --quiet -o requirements/dev.txt
	uv pip compile pyproject.toml --universal --python-version 3.11 -c requirements/dev.txt \
		--generate-hashes --no-emit-index-url --no-header --quiet -o requirements/run.txt
	uv pip compile pyproject.toml --extra stack --universal --python-version 3.11 -c requirements/dev.txt \
		--generate-hashes --no-emit-index-url --no-header --quiet -o requirements/stack.txt

.PHONY: clean
clean: ## Remove the virtual environment and caches; the data folder DATA stays
	rm -rf $(VENV) *.egg-info build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo 'Shinsen needs Python 3.11 or newer; found: '"$$($(PYTHON) --version 2>&1 || echo none)" >&2; \
		echo 'Install one and say where: make $(MAKECMDGOALS) PYTHON=/path/to/python3.12' >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
		echo "$(PYTHON) has no venv module with pip. Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@echo 'Making $(VENV) with $(PYTHON) ...'
	@$(PYTHON) -m venv $(VENV)

# Stamps: the second start skips both, unless the lock files or pyproject.toml have changed.
$(RUN): requirements/run.txt pyproject.toml | $(PY)
	@echo 'Installing requirements/run.txt (hash-pinned); the first time takes a minute or two ...'
	@$(PIP) --require-hashes -r requirements/run.txt
	@$(SELF)
	@touch $@

$(DEV): requirements/dev.txt pyproject.toml | $(PY)
	@echo 'Installing requirements/dev.txt (hash-pinned); the first time takes a few minutes ...'
	@$(PIP) --require-hashes -r requirements/dev.txt
	@$(SELF)
	@touch $(RUN) $@
