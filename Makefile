# Everything runs in a virtual environment of its own; only Python >= 3.11, pip and make are needed.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: demo test docs test-docs dist lint format bench clean

demo: $(VENV)/.ready-demo
	@mkdir -p demo
	$(BIN)/relboltz run examples/gluons.toml --out demo/gluons.nc --force
	$(BIN)/relboltz plot demo/gluons.nc --out demo

test: $(VENV)/.ready lint
	$(BIN)/python -m pytest

docs: $(VENV)/.ready-docs
	$(BIN)/python docs/tables.py
	$(BIN)/python -m sphinx -q -W --keep-going -b html -d docs/_build/trees docs docs/_build/html
	@echo "open docs/_build/html/index.html"

test-docs: $(VENV)/.ready-docs
	$(BIN)/python -m pytest -m docs --durations=10

dist: $(VENV)/.ready-docs
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dist]"
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python tests/installed.py dist $(WHOLE)

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.ready
	$(BIN)/relboltz bench

$(VENV)/.ready-demo: pyproject.toml constraints.txt
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'Python 3.11 or later is needed: make PYTHON=python3.12 ...')"
	@echo "setting up $(VENV), once"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/.ready: $(VENV)/.ready-demo
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

$(VENV)/.ready-docs: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev,docs]"
	@touch $@

clean:
	rm -rf $(VENV) demo build dist docs/_build *.egg-info .pytest_cache .mypy_cache .ruff_cache
