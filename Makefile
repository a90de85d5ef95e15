# What a developer and the build both run. `make` alone lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup demo test check lint types contracts docs spelling unit bench lock wheel clean

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.made-from-lock
JOBS ?= 2
UV_VERSION := 0.13.9

# Override with `make setup PYTHON=/path/to/python3`.
PYTHON ?=

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

setup: $(STAMP)  ## make .venv with what requirements.lock pins; does nothing when it is up to date

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

demo: setup  ## import real sessions, record a live loop, show what the ledger knows of them
	@$(BIN)/loopledger demo

test: check unit  ## everything that must hold before a commit

check: lint types contracts docs spelling  ## all but the tests

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

unit: setup  ## the tests
	$(BIN)/pytest --numprocesses $(JOBS) --dist worksteal

bench: setup  ## print the table of measured figures (PART="append reading" for some of it)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-bench.lock
	@$(BIN)/python -m tests.benchmarks $(PART)

lock: setup  ## write requirements.lock anew from pyproject.toml
	@test -x build/uv/bin/uv || { $(BIN)/python -m venv build/uv && \
	  build/uv/bin/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION); }
	build/uv/bin/uv pip compile --quiet --universal --python-version 3.11 --extra postgres --extra dev \
	  --generate-hashes --no-emit-index-url --no-annotate --no-header --output-file requirements.lock pyproject.toml
	build/uv/bin/uv pip compile --quiet --universal --python-version 3.11 --extra bench --constraint requirements.lock \
	  --generate-hashes --no-emit-index-url --no-annotate --no-header --output-file requirements-bench.lock pyproject.toml

wheel: setup  ## build the wheel into dist/
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/*.whl

clean:  ## remove caches and build products; .venv stays
	rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find ledger replay webui tests -name __pycache__ -type d -prune -exec rm -rf {} +
