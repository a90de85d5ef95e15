# What a developer and the build both run. `make` alone lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup demo test check lint types contracts docs spelling unit bench bench-audit bench-decay fuzz test-lake-kills test-frameworks test-harnesses test-spark lock lock-frameworks lock-spark portable wheel clean

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.made-from-lock
JOBS ?= 2
SCRIPTS := webui/static/vendor/htmx.min.js
UV_VERSION := 0.13.9
UV := build/uv/bin/uv
FRAMEWORKS ?= langgraph openai-agents google-adk agent-framework crewai autogen pydantic-ai mcp-sdk

# With compiled modules kept, a program that a test starts is there sooner.
unexport PYTHONDONTWRITEBYTECODE

# Override with `make setup PYTHON=/path/to/python3`.
PYTHON ?=

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' Makefile

setup: $(STAMP) $(SCRIPTS)  ## make .venv with what requirements.lock pins; does nothing when it is up to date

$(STAMP): requirements.lock pyproject.toml
	@test -x $(BIN)/python || { \
	  python='$(PYTHON)'; \
	  for candidate in python3.13 python3.14 python3.12 python3.11 python3; do \
	    test -z "$$python" || break; \
	    "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && python=$$candidate; \
	  done; \
	  test -n "$$python" || { \
	    echo 'make: found no Python 3.11 or later (looked for python3.13, 3.14, 3.12, 3.11 and python3).'; \
	    echo '      On Debian or Ubuntu: apt install python3 python3-venv; or name one: make setup PYTHON=/path/to/python3'; \
	    exit 1; } >&2; \
	  "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "make: $$python is not Python 3.11 or later."; \
	    exit 1; } >&2; \
	  echo "making $(VENV) with $$($$python --version)"; \
	  "$$python" -m venv $(VENV) || { \
	    rm -rf $(VENV); \
	    version=$$("$$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	    echo "make: $$python cannot make a virtual environment: its modules venv and ensurepip are missing or broken."; \
	    echo "      On Debian or Ubuntu: apt install python3-venv (or python$$version-venv), then make setup again."; \
	    exit 1; } >&2; }
	@echo 'installing what requirements.lock pins'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# htmx, from its npm package, by our own digests.
$(SCRIPTS): webui/vendor.toml webui/vendoring.py | $(STAMP)
	@echo 'taking htmx from its npm package'
	@$(BIN)/python -m webui.vendoring
	@touch $@

demo: setup  ## import real sessions, record a live loop, show what the ledger knows of them
	@$(BIN)/loopledger demo

test: check unit  ## everything that must hold before a commit

check: setup  ## all but the tests
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target types lint contracts docs spelling portable

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

contracts: setup
	$(BIN)/lint-imports --no-logo

docs: setup
	@if grep -q '\[\[\[cog' README.md; then $(BIN)/python -m cogapp --check README.md; else echo 'README.md has no cog block'; fi

spelling: setup
	$(BIN)/codespell

portable: setup
	@$(BIN)/loopledger queries --portable

unit: setup  ## the tests
	$(BIN)/pytest --numprocesses $(JOBS) --dist worksteal
	$(BIN)/pytest --numprocesses $(JOBS) --dist worksteal tests/browser

bench: setup  ## print the table of measured figures (PART="append reading" for some of it; EVENTS=10000000 for PART=lake)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-bench.lock
	@EVENTS=$(EVENTS) $(BIN)/python -m tests.benchmarks $(PART)

bench-audit: setup  ## measure each detector on labelled sessions, beside its trivial baseline (DETECTOR="loop -v" for some)
	@$(BIN)/python -m tests.audit.measure $(DETECTOR)

bench-decay: setup  ## rules lost in compactions: scripted agents against eight compactors, and rules against their summaries
	@$(BIN)/python -m tests.decay_bench

fuzz: setup  ## damage the fixtures of all importers and import them (SECONDS=600, FIRST=120 for where to begin)
	@$(BIN)/python -m tests.ledger.importers.fuzzing --seconds $(or $(SECONDS),120) --first $(or $(FIRST),120)

test-lake-kills: setup  ## kill the exporter 200 times at random (KILLS=1000 LAKE_SEED=7 for others)
	LAKE_KILLS=$(or $(KILLS),200) $(BIN)/pytest tests/ledger/lake/test_killing.py -q --timeout 1800

test-frameworks: setup $(FRAMEWORKS:%=build/frameworks/%/.made-from-lock)  ## the hooks in real frameworks (FRAMEWORKS="langgraph crewai" for some)
	@failed=; for name in $(FRAMEWORKS); do \
	  echo "== $$name"; \
	  build/frameworks/$$name/bin/python -m pytest -c tests/frameworks/pytest.ini "tests/frameworks/$${name//-/_}" \
	    || failed="$$failed $$name"; \
	done; \
	$(BIN)/python -m tests.frameworks.replayed; \
	test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

build/frameworks/%/.made-from-lock: tests/frameworks/%.lock | $(UV)
	@echo 'making $(@D) with what $< pins'
	@test -x $(@D)/bin/python || $(BIN)/python -m venv --without-pip $(@D)
	@$(UV) pip sync --quiet --require-hashes --python $(@D)/bin/python $<
	@touch $@

test-harnesses: setup build/harnesses/.made-from-lock  ## record and replay real harnesses (HARNESSES="claude or codex" for some)
	@$(BIN)/python -m pytest -c tests/harnesses/pytest.ini tests/harnesses $(if $(HARNESSES),-k "$(HARNESSES)")

# What cannot be installed is left out, and its tests say so. No script of a package runs. Not `npm ci`: it refuses a
# lock without the packages of other systems, and a mirror may lack them.
build/harnesses/.made-from-lock: tests/harnesses/package.json tests/harnesses/package-lock.json tests/harnesses/deepseek.lock | $(UV)
	@mkdir -p $(@D)
	@cp tests/harnesses/package.json tests/harnesses/package-lock.json $(@D)
	@echo 'installing six harnesses into $(@D), some 2 GB'
	@{ npm install --prefix $(@D) --ignore-scripts --no-audit --no-fund || echo 'npm: not installed'; } >$(@D)/install.log 2>&1
	@{ { test -x $(@D)/dsh/bin/python || $(BIN)/python -m venv --without-pip $(@D)/dsh; } && \
	  $(UV) pip sync --quiet --require-hashes --python $(@D)/dsh/bin/python tests/harnesses/deepseek.lock || \
	  echo 'DeepSeek Harness: not installed'; } >>$(@D)/install.log 2>&1
	@grep 'not installed' $(@D)/install.log || touch $@

test-spark: setup build/spark/.made-from-lock  ## the lake on a real Spark cluster of this machine (needs Java 17)
	@build/spark/bin/python -m pytest -c tests/spark/pytest.ini tests/spark

build/spark/.made-from-lock: tests/spark/spark.lock | $(UV)
	@echo 'making $(@D) with what $< pins, some 900 MB'
	@test -x $(@D)/bin/python || $(BIN)/python -m venv --without-pip $(@D)
	@$(UV) pip sync --quiet --require-hashes --python $(@D)/bin/python $<
	@touch $@

$(UV): | $(STAMP)
	$(BIN)/python -m venv build/uv
	build/uv/bin/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

lock: setup $(UV)  ## write requirements.lock anew from pyproject.toml
	$(UV) pip compile --quiet --universal --python-version 3.11 --extra postgres --extra dev \
	  --generate-hashes --no-emit-index-url --no-annotate --no-header --output-file requirements.lock pyproject.toml
	$(UV) pip compile --quiet --universal --python-version 3.11 --extra bench --constraint requirements.lock \
	  --generate-hashes --no-emit-index-url --no-annotate --no-header --output-file requirements-bench.lock pyproject.toml

lock-frameworks: setup $(UV)  ## write tests/frameworks/*.lock anew (FRAMEWORKS="..." for some)
	@for name in $(FRAMEWORKS); do \
	  $(UV) pip compile --quiet --universal --python-version 3.11 --extra postgres \
	    $$(grep -q "^$$name = " pyproject.toml && echo "--extra $$name") \
	    --generate-hashes --no-emit-index-url --no-annotate --no-header \
	    --output-file tests/frameworks/$$name.lock pyproject.toml tests/frameworks/testing.in tests/frameworks/$$name.in; \
	done

lock-spark: setup $(UV)  ## write tests/spark/spark.lock anew
	$(UV) pip compile --quiet --universal --python-version 3.11 --extra postgres --constraint requirements.lock \
	  --generate-hashes --no-emit-index-url --no-annotate --no-header \
	  --output-file tests/spark/spark.lock pyproject.toml tests/spark/spark.in

wheel: setup  ## build the wheel into dist/
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/*.whl

clean:  ## remove caches and build products; .venv stays
	rm -rf build dist webui/static/vendor *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find ledger replay webui tests -name __pycache__ -type d -prune -exec rm -rf {} +
