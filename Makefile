# Every target sets up what it needs; nothing is done twice while nothing changed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PAIRS ?= 1000000
SEED ?= $(shell date +%Y%m%d)
SECONDS ?= 60

# Compiled modules are kept, whatever the shell says: tests and the demo start many processes.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup java postgresql demo test lint bench experiments hunt fuzz slow sanitize clean

help:            ## this list
	@grep -hE '^[a-z]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 12

setup: $(READY)  ## a virtual environment in .venv with the package in it

CORE := setup.py $(wildcard src/palio/model/*.pyx src/palio/documents/*.pyx src/palio/matching/*.pyx src/palio/matching/*.pxi src/palio/matching/native/*.h)

$(READY): pyproject.toml $(CORE)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Palio needs Python 3.11 or later; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
		{ echo "Python's venv module is missing; on Debian: apt-get install python3-venv"; exit 1; }
	@echo "Installing Palio and what its tests need into $(VENV) (some minutes the first time)."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

# What the system has to have is installed where that is allowed and asked for least: by whoever needs it, on
# Debian, for root. It is said before. Elsewhere what needs it is left out, which is said too.
INSTALL = test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	echo "$(1), so $(2) is installed now (apt-get install $(2))." && \
	DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet=2 $(2) >/dev/null

# Spark runs on Java 17 or later.
java:
	@command -v java >/dev/null || { $(call INSTALL,Spark needs Java and there is none,default-jre-headless); } || \
		echo "There is no Java here: what needs Spark is left out (on Debian: apt-get install default-jre-headless)."

# The store's tests start a PostgreSQL of their own.
postgresql:
	@command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || \
		{ $(call INSTALL,Tests of the store need PostgreSQL and there is none,postgresql); } || \
		echo "There is no PostgreSQL here: its tests are left out (on Debian: apt-get install postgresql)."

demo: $(READY) java  ## a stream against thousands of filters, five brokers of which one is killed, then Spark
	@$(BIN)/palio demo

# Four workers on two cores: tests that start processes wait for half of their time.
test: $(READY) java postgresql  ## all tests but the slow ones
	$(BIN)/python -m pytest -n 4

# One of them runs all the other tests, on two cores: it comes last and alone.
slow: $(READY) java postgresql  ## the slow tests (three quarters of an hour on two cores)
	$(BIN)/python -m pytest -n 2 -m slow --ignore=tests/test_without_compiler.py
	$(BIN)/python -m pytest -m slow tests/test_without_compiler.py

lint: $(READY)   ## ruff, mypy and the layering rule
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY) java  ## measurements, each beside a yardstick of the same run
	@$(BIN)/palio bench filters
	@$(BIN)/palio bench matching
	@$(BIN)/palio bench hints
	@$(BIN)/palio bench reading
	@$(BIN)/palio bench poset --filters 10000
	@$(BIN)/palio bench routing --subscriptions 10000
	@$(BIN)/palio bench store
	@$(BIN)/palio bench security
	@$(BIN)/palio bench neighbours
	@$(BIN)/palio bench spark

experiments: $(READY)  ## the ready experiments, with reports in palio-sim/ (more than an hour on two cores)
	@for name in siena strategies growth durable; do $(BIN)/palio sim run $$name --resume || exit; done

hunt: $(READY)   ## look for a wrong answer about filters: make hunt PAIRS=1000000 SEED=7
	$(BIN)/python -m tests.hunt --pairs $(PAIRS) --seed $(SEED)

fuzz: $(READY)   ## look for bytes that the decoders cannot bear: make fuzz SECONDS=3600
	nice -n 19 $(BIN)/python -m tests.fuzz --seconds $(SECONDS)

# The core, built with the sanitizers into build/, and its tests on it. Leaks are not looked for: Python has its own.
sanitize: $(READY)  ## the core's tests under the address and undefined-behaviour sanitizers
	PALIO_SANITIZE=1 $(BIN)/python setup.py --quiet build --build-base build/sanitize --build-lib build/sanitize/lib
	@ls build/sanitize/lib/palio/matching/core.*.so >/dev/null
	PYTHONPATH=build/sanitize/lib PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0:detect_odr_violation=0 \
	UBSAN_OPTIONS=print_stacktrace=1 \
	LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libstdc++.so.6)" \
		$(BIN)/python -m pytest -s -p no:cacheprovider tests/matching

clean:           ## remove the virtual environment and all caches
	rm -rf $(VENV) src/palio/matching/core.c src/palio/matching/core.*.so src/palio/model/quick.c src/palio/model/quick.*.so src/palio/documents/quick.c src/palio/documents/quick.*.so .hypothesis .mypy_cache .ruff_cache .pytest_cache .import_linter_cache build src/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
