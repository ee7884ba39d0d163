# Every target does the set-up it needs; a second run costs nothing. `make help` lists them.
# Paths stay relative, so that a checkout whose own path has spaces works.

SHELL = /bin/sh
PY = .venv/bin/python
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow lint format types floors words clauses bench lock clean readme setup-core setup-dev

help: ## List the targets
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## /  \1|/' | awk -F'|' '{printf "%-14s %s\n", $$1, $$2}'

demo: setup-core ## Set up the core alone, then run `troth demo` (ARGS="..." is passed on)
	@$(PY) -m troth demo $(ARGS)

test: setup-dev ## Set up for development, then run every test that is not slow (ARGS="..." is passed on)
	@$(PY) -m pytest -n 2 -m "not slow" $(ARGS)

test-slow: setup-dev ## Run the slow tests as well
	@$(PY) -m pytest -n 2 $(ARGS)

lint: setup-dev ## Check style and formatting
	@$(PY) -m ruff check
	@$(PY) -m ruff format --check

format: setup-dev ## Format and mend what can be mended
	@$(PY) -m ruff check --fix
	@$(PY) -m ruff format

types: setup-dev ## Check types strictly
	@$(PY) -m mypy

floors: setup-dev ## Check that imports go down only
	@.venv/bin/lint-imports --no-cache

words: setup-dev ## Check what no file may contain: addresses, machine paths, unexplained exemptions
	@$(PY) scripts/check_text.py

clauses: setup-dev ## Write the tables clause -> tests and the drawing of a commitment's states anew
	@$(PY) scripts/clauses.py

readme: setup-dev ## Write the demo's table into README.md, from a real run
	@$(PY) scripts/readme.py

bench: setup-dev ## Measure: medians and ratios (see bench/)
	@for script in bench/[a-z]*.py; do echo "== $$script"; $(PY) "$$script" $(ARGS) || exit; done

lock: ## Make the locks anew from pyproject.toml (maintainers)
	@sh scripts/lock.sh

setup-core: ## Only the set-up of `make demo`
	@sh scripts/bootstrap.sh core

setup-dev: ## Only the set-up of `make test`
	@sh scripts/bootstrap.sh dev

clean: ## Remove everything that the other targets made
	@rm -rf .venv .make .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis dist build
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
