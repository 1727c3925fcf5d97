# The front door. `make demo` and `make test` do everything from a fresh clone;
# docs/building.md says what each target needs and what can be set.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

BUILD ?= build
JOBS ?= $(shell nproc)
# extra arguments: for cmake, for the demo and for the test runner
CMAKE_ARGS ?=
ARGS ?=
# which part of the product `make matrix` runs: the i-th of n
SHARE ?= 0/1
# how long `make fuzz` runs random tile programs
FUZZ_SECONDS ?= 7200
VENV := .venv/bin
PYTHON_SOURCES := $(wildcard python test tools examples benchmarks)
CXX_SOURCES = $(shell git ls-files '*.cpp' '*.h')

.PHONY: help demo test matrix bench fuzz wheel format lint tidy clean setup setup-test configure build python
# the steps depend on each other; ninja is what runs in parallel
.NOTPARALLEL:

help:
	@echo "make demo    install what is missing, build, quantize a real model's weights"
	@echo "make test    install what is missing, build, run lit, gtest and pytest"
	@echo "make matrix  every combination of scaling modes, hours of it (SHARE=0/10: a tenth)"
	@echo "make bench   benchmarks against peers, in one run"
	@echo "make fuzz    sanitizers, each fuzzer for ten minutes, random tile programs for two hours"
	@echo "make wheel   self-contained wheels in dist/"
	@echo "make format  reformat C++ and Python;  make lint  check them;  make tidy  clang-tidy"
	@echo "make clean   remove the build tree (the venv stays: rm -rf .venv)"

setup:
	@tools/setup

setup-test:
	@tools/setup test

# CMake reruns itself when its files change; this is for the first time, and for a
# tree that was configured by hand before there was a venv.
configure: setup
	@test -e $(BUILD)/build.ninja && grep -q '^DITHER_ENABLE_PYTHON:[A-Z]*=ON' $(BUILD)/CMakeCache.txt || \
	  cmake --preset release -B $(BUILD) -DPython3_EXECUTABLE=$(CURDIR)/$(VENV)/python $(CMAKE_ARGS)

build: configure
	@ninja -C $(BUILD) -j$(JOBS)

python: configure
	@ninja -C $(BUILD) -j$(JOBS) dither-python

demo: python
	@$(VENV)/python examples/quantize_model.py $(ARGS)

test: setup-test build
	@$(VENV)/python tools/run_tests.py --build $(BUILD) --jobs $(JOBS) $(ARGS)

matrix: python setup-test
	@MATRIX_SHARE=$(SHARE) PYTHONPATH=$(BUILD)/python $(VENV)/python -m pytest -q -n $(JOBS) test/python/ops/test_modes.py test/python/ops/test_fused_modes.py $(ARGS)

bench: setup-test build
	@$(VENV)/python -m benchmarks $(ARGS)

fuzz: setup-test build
	@$(VENV)/python tools/run_tests.py --build $(BUILD) --jobs $(JOBS) --only sanitize --fuzz-seconds 600 $(ARGS)
	@$(VENV)/python test/fuzz/operators --seconds 600 --seed $$(date +%s)000
	@$(VENV)/python test/fuzz/calls --seconds 600 --seed $$(date +%s)000 --reduce
	@$(VENV)/python test/fuzz/programs --seconds $(FUZZ_SECONDS) --seed $$(date +%s)000000 --jobs $(JOBS) --reduce

wheel: configure
	@$(VENV)/python tools/build_wheel.py --build $(BUILD) --jobs $(JOBS) $(ARGS)

format: setup-test
	@tools/need clang-format-22
	@$(if $(CXX_SOURCES),clang-format-22 -i $(CXX_SOURCES))
	@$(VENV)/ruff format $(PYTHON_SOURCES)
	@$(VENV)/ruff check --fix $(PYTHON_SOURCES)

lint: setup-test
	@tools/need clang-format-22
	@$(if $(CXX_SOURCES),clang-format-22 --dry-run -Werror $(CXX_SOURCES))
	@$(VENV)/ruff format --check $(PYTHON_SOURCES)
	@$(VENV)/ruff check $(PYTHON_SOURCES)
	@$(VENV)/mypy

tidy: build
	@tools/need clang-tidy-22
	@run-clang-tidy-22 -quiet -p $(BUILD) -j $(JOBS) $(filter %.cpp,$(CXX_SOURCES))

clean:
	@rm -rf $(BUILD) dist
