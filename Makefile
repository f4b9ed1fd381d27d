# Every command of the project. `make demo` and `make test` each set up a fresh Debian machine by themselves.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV := .venv/bin
JOBS ?= 2
# Tests of a file stay together, whose fixtures they share; whoever has nothing left takes half of what another has.
PYTEST := $(VENV)/python -m pytest -n $(JOBS) --dist worksteal
# Otherwise pyright asks the network on each run whether there is a newer one than the lock file's.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
# Some machines tell Python to write no byte code; each worker then compiles all tests anew, in a run's first 11 s.
unexport PYTHONDONTWRITEBYTECODE

# Runs a command while the types are checked; what pyright says comes after, and both must pass.
define beside_types
	log=$$(mktemp); $(VENV)/pyright >"$$log" 2>&1 & types=$$!; \
	trap 'kill $$types 2>/dev/null || true; rm -f "$$log"' EXIT; \
	result=0; $(1) || result=$$?; \
	wait $$types || { result=1; cat "$$log"; echo "types: pyright found errors"; }; \
	exit $$result
endef

.PHONY: help
help:  ## List the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */\1\t/' | \
		while IFS=$$'\t' read -r name text; do printf '  make %-15s %s\n' "$$name" "$$text"; done

.PHONY: demo
demo: setup-demo  ## Compile the digits example; run it on this machine and on an emulated Cortex-M55
	@$(VENV)/python examples/digits/demo.py

.PHONY: demo-camera
demo-camera: setup-demo  ## Compile the camera example, which takes an image line by line; run it likewise
	@$(VENV)/python examples/camera/demo.py

.PHONY: test
test: setup lint  ## What decides, about 15 minutes on two cores: lint, types and all levels of tests, emulated boards included
	@$(call beside_types,$(PYTEST))
	@echo "make test: everything passed"

.PHONY: test-thorough
test-thorough: export BYTEWRIGHT_TESTS := thorough
test-thorough: setup lint  ## Before a feature is called done: all cases of all sweeps, other seeds, more inputs
	@$(call beside_types,$(PYTEST))
	@echo "make test-thorough: everything passed"

.PHONY: check
check: setup lint  ## Before each commit, two minutes: lint, types, the quick unit and golden tests
	@$(call beside_types,$(PYTEST) -m "not slow" tests/unit tests/golden)
	@echo "make check: passed"

.PHONY: bench
bench: setup  ## Measure the models beside other runtimes: time here, instructions on boards (MODELS='kws ad01')
	@$(VENV)/python benchmarks/models.py $(MODELS)

.PHONY: bench-plan
bench-plan: setup  ## Measure the planner beside CP-SAT on the public instances
	@$(VENV)/python benchmarks/plan.py

.PHONY: bench-memory
bench-memory: setup  ## Measure memory beside its bounds, and what it costs: instructions, code, compile time
	@$(VENV)/python benchmarks/memory.py

.PHONY: bench-networks
bench-networks: setup  ## Measure networks of many kinds beside TensorFlow Lite Micro with CMSIS-NN, where it can be built
	@$(VENV)/python benchmarks/networks.py

.PHONY: bench-streams
bench-streams: setup  ## Measure networks over frames as a whole and frame by frame: memory, work, instructions
	@$(VENV)/python benchmarks/streams.py

.PHONY: bench-svdf
bench-svdf: setup  ## Measure what SVDF layers keep between runs, and what it costs, by the products that they may add
	@$(VENV)/python benchmarks/svdf.py

.PHONY: bench-kernels
bench-kernels: setup  ## Measure which kernel serves each operator and type on which instruction set
	@$(VENV)/python benchmarks/kernels.py

.PHONY: bench-core-kernels
bench-core-kernels: setup  ## Measure the same on Arm's cores for microcontrollers, beside TensorFlow Lite Micro where it is
	@$(VENV)/python benchmarks/core_kernels.py

.PHONY: bench-rows
bench-rows: setup  ## Measure what layers by rows cost: host time, instructions, code
	@$(VENV)/python benchmarks/rows.py

.PHONY: faults
faults: setup  ## Put faults into a copy of the sources, one at a time: a test must find each (FAULTS='words of names')
	@$(VENV)/python tools/faults.py $(FAULTS)

.PHONY: format
format: setup  ## Format the Python code and sort its imports
	@$(VENV)/ruff check --quiet --select I --fix .
	@$(VENV)/ruff format .

.PHONY: lint
lint: setup  ## Lint, and check the format
	@$(VENV)/ruff check --quiet --output-format concise .
	@$(VENV)/ruff format --quiet --check .

.PHONY: types
types: setup  ## Check the types (pyright, strict)
	@$(VENV)/pyright

.PHONY: update-golden
update-golden: setup  ## Write the expected texts of the golden tests and the requirements table anew
	@$(PYTEST) -n 0 tests/golden tests/unit/test_requirements_table.py tests/unit/record/test_schema.py --update-golden

.PHONY: update-slow
update-slow: setup  ## Run all tests and write down which are slow: `make check` leaves them out, others begin with them
	@$(PYTEST) --update-slow

.PHONY: digits
digits: setup  ## Train and quantise the digits example again, which writes the examples' models
	@$(VENV)/python examples/digits/train.py
	@$(VENV)/python examples/digits/quantise.py
	@$(VENV)/python examples/camera/write_model.py

.PHONY: setup
setup:  ## Only install what `make test` needs
	@scripts/setup.sh test
	@[[ "$${BYTEWRIGHT_TESTS:-}" != thorough ]] || { scripts/velas.sh && scripts/chromium.sh; }

.PHONY: setup-demo
setup-demo:
	@scripts/setup.sh demo

.PHONY: clean
clean:  ## Remove what was built, but not the virtual environment
	@rm -rf build dist .pytest_cache .ruff_cache .hypothesis
	@find src tests tools examples benchmarks -name __pycache__ -prune -exec rm -rf {} +

.PHONY: distclean
distclean: clean  ## Remove everything that a fresh clone does not have
	@rm -rf .venv src/*.egg-info src/bytewright/plan/_native*.so
