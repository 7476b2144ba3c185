# `make demo` and `make test` are each all that is needed after cloning: they make .venv, install, and run.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help demo test test-all lint format bench-kernels clean

help:
	@echo "make demo       from text that this machine has to a trained, evaluated model, in minutes"
	@echo "make test       the tests that CI runs"
	@echo "make test-all   those and the slow ones"
	@echo "make lint       ruff"
	@echo "make bench-kernels TEXT=FILE [PEERS=FOLDER]   MB/s of the text kernels, and of the peers on the same documents"

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Headrace needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V). Try: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[train,eval,dev]'
	@touch $@

demo: $(STAMP)
	$(BIN)/python -m examples.demo

test: $(STAMP)
	$(BIN)/python -m pytest

test-all: $(STAMP)
	$(BIN)/python -m pytest -m "not gpu"

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# TEXT: JSON lines or Parquet with a field `text`. PEERS: a folder for the peers' environments; without it only our own kernels are timed.
bench-kernels: $(STAMP)
	$(BIN)/python -m benchmarks.kernels $(TEXT) $(if $(PEERS),--peers $(PEERS))

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache headrace-demo
