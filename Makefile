# Every target that a person or CI calls. `make help` prints them.
.DEFAULT_GOAL := help
# Whatever the locale: the project's files are UTF-8.
export PYTHONUTF8 := 1
# Also where an image sets it: without compiled files, each start of a program takes 0.3 s of CPU
# time longer, and tests start hundreds.
unexport PYTHONDONTWRITEBYTECODE
SHELL := /bin/bash

PYTHON ?= python3
BIN := .venv/bin
REQUIREMENTS := backend/requirements.txt requirements.txt

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: setup ## Set up, start the stack, and break it three ways: a table and a chart (4 minutes)
	$(BIN)/lab demo

INSTALL := $(BIN)/python -m load_lab.stack.native.install
# Of pytest, each with its own stack: with two, the CPUs are idle half of the time.
PROCESSES ?= 3
PYTEST_SHARED := $(BIN)/pytest --numprocesses $(PROCESSES) --no-loadscope-reorder

.PHONY: test
test: setup-dev ## Test each promise that a change can break, against the real programs (10 minutes)
	$(PYTEST_SHARED) -m "not full and not machine"

.PHONY: test-core test-core-native test-core-compose
test-core: test-core-native test-core-compose ## A core of faults and of compose: before each merge (10 minutes)
# What can't be installed is missing for the tests that need it: they are skipped, and fail in CI.
test-core-native: setup-dev
	-$(INSTALL) --with-compose
	$(BIN)/pytest -m "core and not compose and not docker"
test-core-compose: setup-dev
	-$(INSTALL) --with-compose --with-docker
	$(BIN)/pytest -m "core and compose"

.PHONY: test-full test-full-native test-full-compose
test-full: test test-full-native test-full-compose ## Every server and old stack, faults, compose, dashboards: nightly (90 minutes)
test-full-native: setup-dev
	-$(INSTALL) --with-compose --with-docker --with-browser
	$(PYTEST_SHARED) -m "full and not alone"
	FAULTS_JSON="$(JSON)" $(BIN)/pytest -m "full and alone and not compose"
test-full-compose: setup-dev
	-$(INSTALL) --with-compose --with-docker
	$(BIN)/pytest -m "full and compose"

.PHONY: test-machine
test-machine: setup-dev ## Injected causes, foreign apps, Kubernetes, 40 kills, a slow target: weekly; PART=NAME for one
	$(BIN)/python -m tests.machine $(PART)

.PHONY: test-input
test-input: export CONTENTION_ROUNDS = 1000
test-input: export SCHEMA_EXAMPLES = 2000
test-input: export BAD_INPUT_SERVERS = all
test-input: setup-dev ## Contention, keys and bad input at full size: 1,000 rounds, 16,000 cases (80 minutes)
	$(BIN)/pytest --hypothesis-profile=thorough tests/stack/test_contention.py tests/stack/test_schema.py \
		tests/stack/test_bad_input.py backend/tests/test_booking_properties.py backend/tests/test_requests.py

# mypy's plugin loads Django's settings with every app, which need a database's address but no
# database.
lint: export PYTHONPATH = backend
lint: export BACKEND_SECRETS_DIR = $(CURDIR)/.lab/lint/secrets
lint: export PGHOST = localhost
lint: export PGPORT = 5432
lint: export PGDATABASE = hotel
lint: export PGUSER = hotel
lint: export BACKEND_ALLOWED_HOSTS = localhost
lint: export BACKEND_REDIS_URL = redis://localhost:6379/0
lint: export LAB_WORKBENCH = on
lint: export LAB_WEBSOCKETS = on
.PHONY: lint
lint: setup-dev ## Check style, types, shell scripts and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m config.secrets .lab/lint/secrets
	$(BIN)/mypy load_lab backend grafana
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m native.statements
	$(BIN)/shellcheck native/*.sh nginx/*.envsh backend/bin/* experiments/legacy/*.sh .ci/run $$(find tests/compose/standins -name "*.*sh")
	$(BIN)/yamllint --strict .
	cd k6 && if command -v npm >/dev/null; then npm run --silent format:check; fi

.PHONY: audit
audit: .venv/.setup-dev ## Ask the package indexes for known vulnerabilities of what is pinned
	$(BIN)/python -m native.audit

.PHONY: format
format: setup-dev ## Bring the code into the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	cd k6 && if command -v npm >/dev/null; then npm run --silent format; fi

.PHONY: setup
setup: .venv/.setup ## Put the `lab` command and the programs it needs below .venv and .lab
	@$(BIN)/python -m load_lab.stack.native.install

.PHONY: setup-dev
setup-dev: setup .venv/.setup-dev k6/node_modules/.setup ## The same, and what the tests need

.PHONY: dashboards
dashboards: setup-dev ## Generate grafana/dashboards from grafana/src and docs/dashboards.md
	$(BIN)/python -m grafana.src

.PHONY: env-example
env-example: setup ## Write .env.example and compose's variables from backend/lab_settings/declaration.py
	cd backend && ../$(BIN)/python -m lab_settings.example ..

.PHONY: bench
bench: setup ## Measure the fast code against its targets (15 minutes, nothing else running)
	$(BIN)/lab bench

.PHONY: bench-check
bench-check: setup ## The same, quicker and with lower targets: a check before a merge
	$(BIN)/lab bench --quick

.PHONY: bench-growth
bench-growth: setup ## The same with 10 million bookings (15 to 25 minutes, 10 GB)
	$(BIN)/lab bench --growth

.PHONY: bench-capacity
bench-capacity: setup-dev ## Measure how accurate `lab capacity` is (3 hours; a stopped one goes on)
	$(BIN)/lab up
	$(BIN)/lab set LAB_DETAIL=fast
	PYTHONPATH=tests $(BIN)/python -m tests.benchmarks.capacity $(ARGS)

.PHONY: bench-signals
bench-signals: setup-dev ## Measure what looking for a bottleneck costs the target (10 minutes)
	-$(BIN)/lab down
	PYTHONPATH=tests $(BIN)/python -m tests.benchmarks.signals $(ARGS)

.PHONY: bench-prediction
bench-prediction: setup-dev ## Measure how well a third of the load predicts the capacity (1 hour; a stopped one goes on)
	PYTHONPATH=tests $(BIN)/python -m tests.benchmarks.prediction $(ARGS)

.PHONY: bench-compare
bench-compare: setup-dev ## Measure how well `lab compare` tells (3 hours; a stopped one goes on)
	-$(BIN)/lab down
	PYTHONPATH=tests $(BIN)/python -m tests.benchmarks.comparison $(ARGS)

.PHONY: down
down: ## Stop the stack
	$(BIN)/lab down

.PHONY: lock
lock: setup-dev ## Pin the newest versions that the requirements allow, with hashes
	native/lock.sh

.PHONY: clean
clean: ## Stop the native stack and remove its data, programs and environment
	-$(BIN)/lab down
	-$(BIN)/python -m load_lab.paths | xargs -0 -r rm -rf --
	rm -rf .lab .venv k6/node_modules

.venv/.setup: $(REQUIREMENTS) pyproject.toml native/make-venv.sh
	@native/make-venv.sh "$(PYTHON)"
	@touch $@

.venv/.setup-dev: requirements-dev.txt .venv/.setup
	@echo "Installing what the tests need"
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@touch $@

# The types of k6's own modules; the scripts themselves import nothing from npm.
k6/node_modules/.setup: k6/package-lock.json
	@if command -v npm >/dev/null; then \
		cd k6 && npm ci --silent --no-audit --no-fund && touch node_modules/.setup; \
	else \
		echo "npm is not here: the types and the format of k6/*.js are not checked."; \
	fi
