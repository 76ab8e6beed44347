# Everything a newcomer needs. `make` lists the targets; each does what it needs first and nothing twice.

VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --no-input
WHEELS := $(PIP) install --quiet --require-hashes --only-binary :all:
DONE   := $(VENV)/.done
ARGS   ?=
N      ?= 50
SEED   ?= 1

# Where the demo's kernel history goes: 2 GiB, beside perfbisect's own builds.
DEMO   := $(or $(PERFBISECT_CACHE_DIR),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/perfbisect)/demo/linux

.DEFAULT_GOAL := help
.PHONY: help setup deps lab demo demo-service test test-end-to-end test-lab test-fast check mutants campaign bench-search lock clean
.DELETE_ON_ERROR:

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# --- what is installed, each with a stamp so that the second call costs nothing ---

$(DONE)/venv: .setup/venv
	@echo "Making $(VENV)"
	@.setup/venv $(VENV)
	@mkdir -p $(DONE) && touch $@

$(DONE)/setup: $(DONE)/venv .setup/runtime.txt pyproject.toml
	@echo "Installing perfbisect into $(VENV) (locked versions, nothing is compiled)"
	@$(WHEELS) -r .setup/runtime.txt
	@$(PIP) install --quiet --no-deps --no-build-isolation -e .
	@touch $@

$(DONE)/dev: $(DONE)/setup .setup/dev.txt
	@echo "Installing the tools of tests and benchmarks"
	@$(WHEELS) --no-deps -r .setup/dev.txt
	@touch $@

$(DONE)/deps: packaging/debian/packages
	@packaging/debian/install @packaging/debian/packages
	@mkdir -p $(DONE) && touch $@

$(DONE)/test-deps: packaging/debian/packages-tests | $(DONE)/deps
	@packaging/debian/install @packaging/debian/packages-tests
	@touch $@

$(DONE)/libvirt: $(DONE)/setup .setup/libvirt.txt | $(DONE)/deps
	@echo "Compiling libvirt-python"
	@$(PIP) install --quiet --require-hashes --only-binary setuptools,wheel,packaging \
		--no-build-isolation -r .setup/libvirt-build.txt
	@$(PIP) install --quiet --require-hashes --no-deps --no-build-isolation -r .setup/libvirt.txt
	@touch $@

setup: $(DONE)/setup  ## .venv with .venv/bin/perfbisect; enough for plan, simulate, compare, --help

deps: $(DONE)/setup $(DONE)/deps $(DONE)/libvirt  ## the Debian packages of packaging/debian/packages, and libvirt-python

lab: deps  ## libvirt running, guest image built: what a bisection in guests needs
	@$(BIN)/perfbisect doctor --fix --quiet

# --- what is done with it ---

demo: deps  ## find a real culprit in a real kernel history (first time about 20 minutes, later one or two)
	@kernels/demo/prepare-history $(DEMO)
	@$(BIN)/perfbisect doctor --fix --quiet
	$(BIN)/perfbisect start --repo $(DEMO) --good rt-00 --bad rt-16 --workload pipe-test $(ARGS)

demo-service: $(DONE)/dev $(DONE)/test-deps lab  ## the service on this machine: nights, an alert, its bisection, page and mail; KEEP=1 to look at the pages
	@$(BIN)/python -m tests.service_demo.play $(if $(KEEP),--keep) $(ARGS)

test: $(DONE)/dev $(DONE)/test-deps lab  ## all tests but the longest case, real kernels in real guests included; ARGS='-k name' for some
	@$(BIN)/python -m pytest -n 2 $(ARGS)

test-end-to-end: $(DONE)/dev lab  ## real kernels from end to end, the longest case too: guests and libvirtd are killed
	@END_TO_END=1 $(BIN)/python -m pytest tests/end_to_end $(ARGS)

test-lab: $(DONE)/dev $(DONE)/test-deps lab  ## the emulated machines with their BMCs, all cases: hours, on a machine that does nothing else
	@LAB=1 $(BIN)/python -m pytest tests/lab $(ARGS)

test-fast: $(DONE)/dev  ## the tests that need neither libvirt nor a compiler, in a few minutes
	@$(BIN)/python -m pytest -n 2 -m "not slow" tests/unit tests/contract tests/golden tests/bad_input $(ARGS)

check: $(DONE)/dev  ## format, lint, types and import rules
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

mutants: $(DONE)/dev  ## mutate N places of FOLDER, drawn by SEED, and see whether tests notice (tests/README.md)
	@$(BIN)/python -m tests.mutation.run $(FOLDER) --number $(N) --seed $(SEED)

campaign: $(DONE)/dev  ## N faults, drawn by SEED, strike bisections on fakes; GUESTS=1: on guests, LAB=1: on machines, WORKERS=1: workers
	@$(BIN)/python -m tests$(if $(LAB),.lab).campaign$(if $(WORKERS),.workers).run $(if $(N),--faults $(N)) $(if $(SEED),--seed $(SEED)) $(if $(GUESTS),--guests) $(ARGS)

bench-search: $(DONE)/dev  ## the planner beside git-bayesect and git bisect: what fits into 10 minutes; the next call goes on
	@$(BIN)/python -m tests.bench.search.run $(ARGS)

# --- for maintainers ---

UV      ?= uv
COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-header --no-annotate

lock:  ## write the lock files of .setup anew (needs uv); LOCK=--upgrade for the newest versions
	$(COMPILE) $(LOCK) --group editable pyproject.toml -o .setup/runtime.txt
	$(COMPILE) $(LOCK) --extra dev --extra bench -c .setup/runtime.txt pyproject.toml -o .setup/dev.txt
	$(COMPILE) $(LOCK) --group pyproject.toml:libvirt-build -o .setup/libvirt-build.txt
	$(COMPILE) $(LOCK) --no-deps --group pyproject.toml:libvirt -o .setup/libvirt.txt

clean:  ## remove .venv and what the tools left; builds, images and bisections stay (perfbisect doctor shows where)
	rm -rf $(VENV) .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	find bisector tests -name __pycache__ -type d -prune -exec rm -rf {} +
