# Everything here works on a machine that has Python 3.10 or later, make and git.
#   make demo   trace a script whose input is slow, and print the report
#   make test   run the tests
#   make lint   check style and types
#   make bench  time a check beside other linters
#   make bench-trace  what a trace adds to a step and to a run, how long a profile takes to read
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Public Keras code to time a check on.
CORPUS := tf-models-official==2.20.0

# TensorFlow has wheels for these Pythons; a newer python3 still serves everything but the trace.
FIND_PYTHON := for python in python3 python3.13 python3.12 python3.11 python3.10; do \
	  $$python -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null && break; \
	  python=; \
	done; \
	[ -n "$$python" ] || { echo "Python 3.10 to 3.13 is needed and was not found" >&2; exit 1; }

.PHONY: demo test lint bench bench-trace clean

demo: $(STAMP)
	@$(BIN)/tflint-gpu trace --output-format full fixtures/slow_input/train.py; \
	status=$$?; [ $$status -le 1 ] || exit $$status

# The tests that start TensorFlow measure time, so nothing else runs beside them.
test: $(STAMP)
	$(BIN)/python -m pytest -q -n 2 -m "not trace and not install"
	$(BIN)/python -m pytest -q -m "trace or install"

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group bench
	@corpus=$$(mktemp -d) && trap 'rm -rf "$$corpus"' EXIT && \
	$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --dest "$$corpus" $(CORPUS) && \
	$(BIN)/python -m zipfile -e "$$corpus"/*.whl "$$corpus/tree" && \
	$(BIN)/python benchmarks/static.py --name "$(CORPUS)" "$$corpus/tree"

bench-trace: $(STAMP)
	$(BIN)/python benchmarks/probe.py
	$(BIN)/python benchmarks/report_time.py
	$(BIN)/python benchmarks/profile_reader.py

$(STAMP): pyproject.toml
	@$(FIND_PYTHON); $$python -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[trace]" --group dev
	@touch $@

clean:
	rm -rf $(VENV) .tflint-gpu
