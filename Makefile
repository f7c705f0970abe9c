# Everything runs in a virtual environment of its own; only Python >= 3.11, pip and make are needed.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: demo test test-docs lint format bench clean

demo: $(VENV)/.ready
	@mkdir -p demo
	$(BIN)/relboltz run examples/gluons.toml --out demo/gluons.nc --force
	$(BIN)/relboltz plot demo/gluons.nc --out demo

test: $(VENV)/.ready lint
	$(BIN)/python -m pytest

test-docs: $(VENV)/.ready
	$(BIN)/python -m pytest -m docs

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.ready
	$(BIN)/relboltz bench

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'Python 3.11 or later is needed: make PYTHON=python3.12 ...')"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

clean:
	rm -rf $(VENV) demo build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache
