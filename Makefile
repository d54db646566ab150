# Everything runs in an environment of its own, .venv; a second run finds it there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-slow lint benchmark-quick benchmark-quality clean

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[all,dev]"
	touch $(STAMP)

demo: $(STAMP)  ## index our sample corpus, ask three two-document questions, show evidence and reasons
	$(BIN)/sire demo

test: $(STAMP)  ## everything that is quick: under five minutes on two cores
	$(BIN)/python -m pytest -m "not slow" -n 2 -q

test-slow: $(STAMP)  ## stress, kill loops, version matrix
	$(BIN)/python -m pytest -m slow -q

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

benchmark-quick: $(STAMP)  ## speed and memory of indexing, loading and searching, as ratios
	$(BIN)/python benchmarks/index_speed.py --quick

benchmark-quality: $(STAMP)  ## recall of every set of SIRE_DATA without a model; goes on where it was interrupted
	$(BIN)/python benchmarks/quality.py

clean:
	rm -rf $(VENV) build dist
