# Everything runs in an environment of its own, .venv; a second run finds it there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Where there is room in memory, the folders of tests are there: thousands of small indexes are written and deleted.
ROOM := $(shell df -k --output=avail /dev/shm 2>/dev/null | awk 'NR == 2 && $$1 > 4000000 { print "TMPDIR=/dev/shm" }')

.PHONY: demo docs test test-slow lint benchmark-quick benchmark-quality benchmark-peers benchmark-scale release clean

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[all,dev]"
	touch $(STAMP)

demo: $(STAMP)  ## index our sample corpus, ask three two-document questions, show evidence and reasons
	$(BIN)/sire demo

# Three workers use two cores: one of them often waits for a process, a server or a clock. Threads of libraries would only
# wait for one another; a file's fixtures are made once; processes that tests start read compiled code.
test: $(STAMP)  ## everything that is quick, on two cores
	$(ROOM) OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= \
	  $(BIN)/python -m pytest -m "not slow" -n 3 --dist loadfile --no-loadscope-reorder -q

test-slow: $(STAMP)  ## stress, kill loops, version matrix
	$(BIN)/python -m pytest -m slow -q

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tests/checks/imports.py
	$(BIN)/python tests/checks/words.py
	$(BIN)/python benchmarks/fault_bank.py --check

benchmark-quick: $(STAMP)  ## speed and memory of indexing, loading and searching, as ratios
	$(BIN)/python benchmarks/index_speed.py --quick

benchmark-quality: $(STAMP)  ## recall of every set of SIRE_DATA without a model; goes on where it was interrupted
	$(BIN)/python benchmarks/quality.py

benchmark-peers: $(STAMP)  ## beside other libraries, each in an environment of its own; goes on in build/peers where it was interrupted
	$(BIN)/python benchmarks/peers/install.py
	$(BIN)/python benchmarks/peers/run.py

SIZES ?= 3000 10000 30000
RECIPES ?= flat sire pagerank iier
benchmark-scale: $(STAMP)  ## how cost grows with the corpus: make benchmark-scale SIZES="10000 30000 100000"
	$(BIN)/python benchmarks/growth.py --sizes $(SIZES) --recipes $(RECIPES) --json build/growth.json

docs: $(STAMP)  ## the documentation as a site in build/site; a warning is an error
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	$(BIN)/python docs/pictures/make.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

release: $(STAMP)  ## make release VERSION=0.2.0: sets versions, builds, checks in empty environments; publishes nothing
	$(BIN)/python -m pip install --quiet --disable-pip-version-check build twine
	$(BIN)/python distributions/release.py $(VERSION)

clean:
	rm -rf $(VENV) build dist
