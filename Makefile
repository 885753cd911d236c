# Everything one does in a checkout. `make demo` and `make test` are the two to know; each says what
# it is doing and does only what is not yet done.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 20
PYTHON := .venv/bin/python
# A second install of the same tree must not see the user's own environment.
unexport PYTHONPATH PYTHONHOME

say = @printf '\n\033[1m== %s\033[0m\n' "$(1)"

.PHONY: help setup setup-dev build install demo test test-full test-cpp test-python test-torch2 \
  test-torch-newest web view test-web wheel test-wheel lint format zoo zoo-quick bench fuzz sanitize clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what the demo needs (apt packages as root, .venv)
	@scripts/setup.sh

setup-dev:
	@scripts/setup.sh --dev

# --- use -----------------------------------------------------------------------------------------

install: setup ## build the package and install it and the command into .venv
	@scripts/install.sh

demo: install ## run examples/memory_leak_demo.py and print the diagnosis
	$(call say,running examples/memory_leak_demo.py)
	@scripts/demo.sh

web: ## build the viewer's page and install it with the package
	@scripts/setup.sh --web
	@scripts/web.sh build
	@scripts/install.sh

view: web ## open the viewer on the newest run of the demo
	@[ -n "$$(ls -d build/demo/run-* 2> /dev/null)" ] || scripts/demo.sh
	@.venv/bin/msmemscope view build/demo

# --- build and test ------------------------------------------------------------------------------

build: setup-dev ## build everything with its tests into build/
	@scripts/build.sh build

test: ## all tests that fit in 12 minutes: C++, Python on both PyTorches, zoo, fuzzer, sanitizers
	@scripts/test.sh

test-full: ## everything, before an issue is resolved
	@scripts/test.sh --full

test-cpp: build ## the C++ tests
	$(call say,C++ tests)
	@ctest --test-dir build --output-on-failure -j$(JOBS)

test-python: setup-dev install build ## the Python tests and hostile programs, on .venv's PyTorch and build/
	$(call say,Python tests)
	@MSMEMSCOPE_BUILD_DIR=$(CURDIR)/build $(PYTHON) -m pytest tests/python $(PYTEST_ARGS)
	$(call say,hostile programs)
	@MSMEMSCOPE_BUILD_DIR=$(CURDIR)/build $(PYTHON) -m pytest tests/hostile $(PYTEST_ARGS)

test-torch2: setup-dev install ## the Python tests on the installed package and a PyTorch >= 2.6 with its own Python
	$(call say,Python tests on the second PyTorch)
	@scripts/test_torch.sh trixie $(PYTEST_ARGS)

test-torch-newest: setup-dev install ## the Python tests, on the newest PyTorch of Debian unstable
	$(call say,Python tests on the newest PyTorch)
	@scripts/test_torch.sh sid $(PYTEST_ARGS)

test-web: setup-dev web ## the viewer's page: unit tests, and its story in a headless browser
	$(call say,the viewer's page)
	@scripts/web.sh test
	@scripts/web.sh e2e

wheel: setup-dev web ## the wheel for every CPython and every Linux with glibc >= 2.28, into dist/
	@packaging/wheel.sh

test-wheel: wheel ## the demo from the wheel, in a fresh virtual environment without a compiler
	$(call say,the wheel)
	@packaging/try_wheel.sh

zoo: setup-dev install ## diagnose every program of tests/zoo; prints the share that is right
	$(call say,the zoo)
	@$(PYTHON) tests/zoo/run_zoo.py $(ZOO_ARGS)

fuzz: setup-dev ## feed the trace reader with bad input for FUZZ_SECONDS each
	@scripts/fuzz.sh $(FUZZ_SECONDS)

sanitize: setup-dev ## C++ tests under ASan + UBSan; with MEMSCOPE_TEST_FULL=1 the capture tests under TSan
	@scripts/sanitize.sh

bench: setup-dev install ## measure; prints the tables of docs/benchmarks.md
	@scripts/build.sh bench
	@$(PYTHON) bench/run_bench.py $(BENCH_ARGS)

# --- style ---------------------------------------------------------------------------------------

lint: setup-dev ## clang-format, clang-tidy, ruff, mypy
	@scripts/lint.sh

format: setup-dev ## rewrite the sources as clang-format and ruff want them
	@git ls-files -co --exclude-standard -- '*.h' '*.c' '*.cc' | xargs -r clang-format-14 -i
	@.venv/bin/ruff format --quiet . && .venv/bin/ruff check --quiet --fix .

clean: ## remove what was built; the cache outside the checkout stays
	rm -rf build build-asan build-tsan build-fuzz build-lint build-bench build-site .venv
