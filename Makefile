# What a person runs here. Each target brings what it needs: system packages by name (installed when run as root, else
# the command to run is printed), Python packages in .venv, and the package itself, rebuilt only when a source changed.
#
#   make demo     build, install into .venv, run one scene on the simulator
#   make test     C++ tests, Python tests, examples and acceptance suites
#   make bench    benchmarks against the budgets of docs/architecture.md
#   make soak     10 million random tasks against the model, C++ tests with delays, every suite 20 times (tools/soak)
#   make fuzz     random input, with clang
#   make lint     ruff and clang-format, changing nothing        make format   let them rewrite the sources
#   make clean    remove build results and caches                make distclean   remove .venv as well
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.NOTPARALLEL:

VENV := .venv
STAMPS := $(VENV)/.stamps
PYTHON := $(VENV)/bin/python

# Directories are listed too: theirs is the time that changes when a file is removed.
PACKAGE_SOURCES := CMakeLists.txt pyproject.toml tools/requirements-build.txt \
                   $(shell find src include python -name __pycache__ -prune -o -print)

.PHONY: help demo test bench soak fuzz lint format clean distclean system-build system-test

help:
	@sed -n 's/^#   //p' Makefile

demo: $(STAMPS)/package
	@tools/with_tools python examples/vector_add/test_vector_add.py -p a2a3sim

test: $(STAMPS)/package $(STAMPS)/test | system-test
	@tools/with_tools tools/run_tests

bench: $(STAMPS)/package
	@tools/with_tools python tests/bench/run.py

soak: $(STAMPS)/package $(STAMPS)/test
	@tools/with_tools tools/soak

fuzz:
	@tools/fuzz

lint: $(STAMPS)/lint
	@tools/with_tools tools/lint

format: $(STAMPS)/lint
	@tools/with_tools tools/lint --fix

clean:
	@rm -rf build dist .pytest_cache .ruff_cache .hypothesis
	@find . -path ./$(VENV) -prune -o -name __pycache__ -type d -print0 | xargs -0 rm -rf

distclean: clean
	@rm -rf $(VENV)

# ---- set-up --------------------------------------------------------------------------------------------------------

system-build:
	@tools/system_packages build

system-test:
	@tools/system_packages build test

$(PYTHON): | system-build
	@echo "creating $(VENV)"
	@python3 -m venv $(VENV)

# One stamp per requirements file: installed again only when the file changes.
$(STAMPS)/%: tools/requirements-%.txt | $(PYTHON)
	@echo "installing $<"
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check -r $<
	@mkdir -p $(STAMPS) && touch $@

# No build isolation: the build tools are in .venv already, and build/<wheel tag> stays usable for the next build.
$(STAMPS)/package: $(PACKAGE_SOURCES) $(STAMPS)/build $(STAMPS)/run
	@echo "building and installing the package"
	@tools/with_tools python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps .
	@mkdir -p $(STAMPS) && touch $@
