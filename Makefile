# make demo and make test do all the set-up: an own virtual environment, then the job.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-slow test-bounds torture mutants lint format bench versus kernels clean help

help:
	@echo "make demo       the paper's first experiment, with a table and a figure"
	@echo "make test       the test suite"
	@echo "make test-slow  the tests that take long"
	@echo "make test-bounds  the tests with bounds checked in kernels, then a part without compilation"
	@echo "make torture MINUTES=10 SEED=0  random files, runs, kills and disks; goes on where it stopped"
	@echo "make mutants    planted slips, and which of them the tests see (hours; ONLY=io for a part)"
	@echo "make lint       ruff and mypy"
	@echo "make bench      all promised ratios and the peers: docs/benchmarks, table and figure"
	@echo "make versus     the peers alone"
	@echo "make kernels    times of single kernels"

demo: $(VENV)/.core
	$(BIN)/python examples/support_vector.py --out out/demo

# Halves of the tests in their order, not one by one in turn: each worker meets a file, what its
# tests share and the kernels they compile once. Who is done first takes over from the other.
test: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow"

test-slow: $(VENV)/.test
	$(BIN)/python -m pytest -m slow

# Compiled code that checks every index, in a cache of its own; then the plain Python that the
# kernels are written in, on the tests that run them at sizes it can bear (all would take a day).
BOUNDS  := NUMBA_CACHE_DIR=$(CURDIR)/out/bounds
PLAIN   := tests/kernels tests/io tests/rows tests/fused tests/test_integrity.py tests/objectives
test-bounds: $(VENV)/.test
	NUMBA_BOUNDSCHECK=1 $(BOUNDS) $(BIN)/python -m pytest -n auto -m "not slow"
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n auto -m "not slow" $(PLAIN)

MINUTES ?= 5
SEED    ?= 0
torture: $(VENV)/.test
	$(BIN)/python -m torture --minutes $(MINUTES) --seed $(SEED)

mutants: $(VENV)/.test
	$(BIN)/python -m torture.mutants $(if $(ONLY),--only $(ONLY))

lint: $(VENV)/.lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.lint
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.versus
	$(BIN)/python benchmarks/targets.py
	$(BIN)/python benchmarks/versus/run.py
	$(BIN)/python benchmarks/report.py

kernels: $(VENV)/.test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest benchmarks/kernels --benchmark-only -q -p no:xdist

versus: $(VENV)/.versus
	$(BIN)/python benchmarks/versus/run.py
	$(BIN)/python benchmarks/report.py

# One stamp file for each set of packages: what is installed is not installed again.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "adafw needs Python 3.11 or newer; set PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) -e ".[plot]"
	@touch $@

$(VENV)/.test: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) -e ".[test,torch]"
	@touch $@

$(VENV)/.versus: $(VENV)/.test
	$(PIP) copt celer skglm
	@touch $@

$(VENV)/.lint: $(VENV)/.test
	$(PIP) -e ".[lint]"
	@touch $@

clean:
	find src -name '*.nb[ic]' -delete
	rm -rf $(VENV) out dist .pytest_cache .ruff_cache .mypy_cache .hypothesis .benchmarks
