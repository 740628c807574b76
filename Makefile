# make demo and make test do all the set-up: an own virtual environment, then the job.
PYTHON ?= python3
VENV   := .venv
EXE    := $(if $(filter Windows_NT,$(OS)),.exe)
BIN    := $(VENV)/$(if $(EXE),Scripts,bin)
# Empty, it installs the newest versions: make test CONSTRAINTS=
CONSTRAINTS ?= constraints.txt
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check $(addprefix -c ,$(CONSTRAINTS))

.PHONY: demo test test-slow test-bounds test-oldest torture mutants slips lint format bench versus kernels \
        docs pictures api licences dist release-check clean help

help:
	@echo "make demo       the paper's first experiment, with a table and a figure"
	@echo "make test       the test suite"
	@echo "make test-slow  the tests that take long"
	@echo "make test-bounds  the tests with bounds checked in kernels, then a part without compilation"
	@echo "make torture MINUTES=10 SEED=0  random files, runs, kills and disks; goes on where it stopped"
	@echo "make mutants    planted slips, and which of them the tests see (hours; ONLY=io for a part)"
	@echo "make slips      new slips at random (SEED=1 COUNT=60 ONLY=io), each on the tests that reach it"
	@echo "make test-oldest  the tests with the oldest supported dependencies, in an own environment"
	@echo "make lint       ruff, mypy, spelling, one sentence a line; make format mends what it can"
	@echo "make docs       the site: docs/_build/html/index.html; make docs QUICK=1 runs no examples"
	@echo "make dist       sdist and wheel, checked, and tried out in an empty environment"
	@echo "make api        takes over changes of the public names (tests/public_api.txt)"
	@echo "make pictures   the drawings of docs/figures; make licences: docs/licences.md"
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
# NumPy warns of what compiled code does in silence: integers that wrap around, of which hashes are
# made, and numbers that become infinite, which runs and readers look for themselves.
WRAPPED := -W "ignore:overflow encountered:RuntimeWarning" \
           -W "ignore:invalid value encountered in scalar:RuntimeWarning"
PLAIN   := tests/kernels tests/io tests/rows tests/fused tests/test_integrity.py tests/objectives
test-bounds: $(VENV)/.test
	NUMBA_BOUNDSCHECK=1 $(BOUNDS) $(BIN)/python -m pytest -n auto -m "not slow"
	NUMBA_DISABLE_JIT=1 PYTHONWARNINGS="ignore:overflow encountered" \
	  $(BIN)/python -m pytest -n auto -m "not slow" $(WRAPPED) $(PLAIN)

MINUTES ?= 5
SEED    ?= 0
torture: $(VENV)/.test
	$(BIN)/python -m torture --minutes $(MINUTES) --seed $(SEED)

# New slips at random; what the tests reach is traced once (rm -r out/reach to trace it again).
COUNT   ?= 60
slips: $(VENV)/.test
	$(PIP) coverage
	test -d out/reach || $(BIN)/python -m pytest -q -n auto -m "not slow" -p torture.reach
	$(BIN)/python -m torture.draw --count $(COUNT) --seed $(SEED) $(if $(ONLY),--parts $(ONLY))

mutants: $(VENV)/.test
	$(BIN)/python -m torture.mutants $(if $(ONLY),--only $(ONLY))

lint: $(VENV)/.lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/codespell
	$(BIN)/python tools/sentences.py

format: $(VENV)/.lint
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/python tools/sentences.py --write

# The site; warnings are errors. Examples that have not changed are not run again.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -q -W --keep-going $(if $(QUICK),-D plot_gallery=0) docs docs/_build/html
	$(BIN)/python tools/links.py docs/_build/html
	@echo "open docs/_build/html/index.html"

pictures: $(VENV)/.core
	$(BIN)/python docs/pictures/ideas.py
	$(BIN)/python docs/pictures/measured.py

api: $(VENV)/.test
	$(BIN)/python tools/public_api.py --write

licences: $(VENV)/.docs
	$(BIN)/python tools/licences.py

# Before a release: tag, package, CITATION.cff and changelog name one version (TAG=v0.1.0).
release-check:
	$(PYTHON) tools/release.py $(TAG)

dist: $(VENV)/.dist
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/python tools/dist.py dist

# The lower bounds of pyproject.toml, really installed, in an environment of their own.
OLDEST    := .venv-oldest
OLDESTBIN := $(OLDEST)/$(if $(EXE),Scripts,bin)
test-oldest: $(OLDEST)/.test
	NUMBA_CACHE_DIR=$(CURDIR)/out/oldest $(OLDESTBIN)/python -m pytest -n auto -m "not slow"

$(OLDEST)/.test: pyproject.toml constraints-oldest.txt
	$(PYTHON) -m venv $(OLDEST)
	$(OLDESTBIN)/python -m pip install --quiet --disable-pip-version-check \
	  -c constraints-oldest.txt -e ".[test,torch]"
	@touch $@

bench: $(VENV)/.versus
	$(BIN)/python benchmarks/targets.py
	$(BIN)/python benchmarks/versus/run.py
	$(BIN)/python benchmarks/certified.py
	$(BIN)/python benchmarks/report.py

kernels: $(VENV)/.test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest benchmarks/kernels --benchmark-only -q -p no:xdist

versus: $(VENV)/.versus
	$(BIN)/python benchmarks/versus/run.py
	$(BIN)/python benchmarks/report.py

# One stamp file for each set of packages: what is installed is not installed again.
$(BIN)/python$(EXE):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "adafw needs Python 3.11 or newer; set PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(BIN)/python$(EXE) pyproject.toml constraints.txt
	$(PIP) -e ".[plot]"
	@touch $@

$(VENV)/.test: $(BIN)/python$(EXE) pyproject.toml constraints.txt
	$(PIP) -e ".[test,torch]"
	@touch $@

$(VENV)/.docs: $(BIN)/python$(EXE) pyproject.toml constraints.txt
	$(PIP) -e ".[docs]"
	@touch $@

$(VENV)/.dist: $(BIN)/python$(EXE) pyproject.toml constraints.txt
	$(PIP) -e ".[dist]"
	@touch $@

$(VENV)/.versus: $(VENV)/.test
	$(PIP) copt celer skglm glum
	@touch $@

$(VENV)/.lint: $(VENV)/.test
	$(PIP) -e ".[lint]"
	@touch $@

clean:
	find src -name '*.nb[ic]' -delete
	rm -rf docs/_build docs/api docs/gallery $(OLDEST)
	rm -rf $(VENV) out dist .pytest_cache .ruff_cache .mypy_cache .hypothesis .benchmarks
