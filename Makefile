# Each target sets up what it needs by itself, and is quick when that is done.
VENV ?= .venv
BIN := $(VENV)/bin
export VENV

.PHONY: help run test fresh check bench soak console docs clean

help: ## show this
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## set up and talk with an agent; without a model: watch real calls go through the runtime
	@scripts/setup.sh run
	@$(BIN)/handrail chat --or-demo

test: ## set up and run all tests
	@scripts/setup.sh dev
	@scripts/test.sh

fresh: ## try run and the set-up of test on a new Debian 12, as root and as a user (needs root)
	@scripts/fresh.sh

check: ## lint, types, layers, architecture
	@scripts/setup.sh dev
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m pytest -q tests/test_architecture.py

bench: ## measure against the floors, as ratios in one run
	@scripts/setup.sh dev
	@$(BIN)/python -m bench

soak: ## undo 20,000 random calls, kill what runs them 2,000 times, and workers of batches, swap 100,000 paths, look for new examples: hours
	@scripts/setup.sh dev
	@EFFECT_KILLS=2000 EFFECT_SEEDS=1500 UNDO_SEEDS=600 $(BIN)/python -m pytest -q \
		tests/environments/test_live_environment_crashes.py tests/environments/shell_host/test_journal_undo.py
	@BATCH_KILLS=20 BATCH_SESSIONS=40 $(BIN)/python -m pytest -q tests/batch/test_driver.py -k killed_workers
	@ELSEWHERE_SEEDS=300 $(BIN)/python -m pytest -q tests/environments/backends/test_docker.py \
		tests/environments/backends/test_ssh.py -k can_be_undone
	@HANDRAIL_RACES=25000 $(BIN)/python -m pytest -q tests/environments/test_profiles.py -k swapped
	@EVERY_CASE=1 OWN_FILES_EVERY=1 $(BIN)/python -m pytest -q tests/environments tests/contract
	@OPENAPI_EXAMPLES=100 $(BIN)/python -m pytest -q tests/serve/test_http_openapi.py
	@HYPOTHESIS_PROFILE=explore $(BIN)/python -m pytest -q -m hypothesis

console: ## build the web console into the package
	@scripts/console.sh

docs: ## build the documentation into site/
	@scripts/setup.sh docs
	@$(BIN)/python scripts/reference.py docs/reference
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

clean: ## remove everything that was made here
	rm -rf $(VENV) build dist site docs/reference src/handrail/serve/console web/node_modules bench/results .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
