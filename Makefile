PYTHON ?= python3
VENV ?= .venv
# Most tests wait for processes and disks, so more of them than there are cores are run at once.
WORKERS ?= 4

BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := check
.PHONY: demo test check format bench bench-peers crash corrupt faults races power soak fuzz mutation frameworks build clean

demo: $(READY)
	$(BIN)/turnwal demo

test: $(READY)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

check: $(READY)
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: $(READY)
	$(BIN)/python -m bench

# What others keep sessions with, each in an environment of its own; OpenHands needs Python 3.12.
PEERS := agent_framework dbos google_adk langgraph openai_agents openhands plot strands

bench-peers: $(READY) $(PEERS:%=.peers/%/.ready)
	$(BIN)/python -m bench.peers
	.peers/plot/bin/python -m bench.peers.plot

crash: $(READY)
	$(BIN)/python -m tests.crash $(if $(KILLS),--kills $(KILLS))

faults: $(READY)
	$(BIN)/python -m tests.faults

corrupt: $(READY)
	$(BIN)/python -m tests.corrupt

races: $(READY)
	$(BIN)/python -m tests.races

power: $(READY)
	$(BIN)/python -m tests.power

soak: $(READY)
	$(BIN)/python -m tests.soak

# An hour of one target: make fuzz SECONDS=3600 ONLY=format-codex
SECONDS ?= 600
ONLY ?=

fuzz: .fuzz/.ready
	.fuzz/bin/python -m tests.fuzz --guided --seconds $(SECONDS) $(ONLY:%=--only %)

mutation: .mutation/.ready
	.mutation/bin/python -m tests.mutation

# Each framework in an environment of its own: what one of them needs another one forbids. OpenHands needs Python 3.12.
FRAMEWORKS ?= claude_code google_adk langgraph openai_agents pydantic_ai strands \
	$(shell $(PYTHON) -c 'import sys; print("openhands" if sys.version_info >= (3, 12) else "")')

frameworks: $(FRAMEWORKS:%=framework-%)

framework-%: .frameworks/%/.ready
	.frameworks/$*/bin/python -m pytest -q -W ignore -c /dev/null --rootdir=. --confcutdir=tests/frameworks \
		tests/frameworks/test_$*.py

build: $(READY)
	$(BIN)/python -m build

clean:
	rm -rf dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

.PRECIOUS: .frameworks/%/.ready .peers/%/.ready
.peers/openhands/.ready: PYTHON := $(shell command -v python3.12 || echo $(PYTHON))
.peers/%/.ready: pyproject.toml
	$(PYTHON) -m venv .peers/$*
	.peers/$*/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	.peers/$*/bin/python -m pip install --quiet --group peer-$*
	touch $@

.fuzz/.ready: pyproject.toml
	$(PYTHON) -m venv .fuzz
	.fuzz/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	.fuzz/bin/python -m pip install --quiet --only-binary atheris --editable . --group fuzz || { \
		echo "atheris has no wheel for $$($(PYTHON) -V) on this machine; it has for CPython 3.11 to 3.14 on Linux (x86-64): " \
		"make fuzz PYTHON=python3.12, or fuzz without it: $(BIN)/python -m tests.fuzz --inputs 100000" >&2; exit 1; }
	touch $@

.mutation/.ready: pyproject.toml
	$(PYTHON) -m venv .mutation
	.mutation/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	.mutation/bin/python -m pip install --quiet --editable . --group mutation
	touch $@

.frameworks/%/.ready: pyproject.toml
	@[ '$*' != openhands ] || $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 12))' || { \
		echo "openhands needs Python 3.12 or newer: make framework-openhands PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv .frameworks/$*
	.frameworks/$*/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	.frameworks/$*/bin/python -m pip install --quiet --editable . --group framework-$*
	touch $@

# The stamp is touched last, so that an installation that was broken off is made again.
# pip is upgraded first: dependency groups need pip 25.1, and a new venv gets the older one that came with Python.
$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "turnwal needs Python 3.11 or newer, and '$(PYTHON)' is not; name one: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable . --group dev
	touch $@
