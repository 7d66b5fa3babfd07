# Every target sets up its virtual environment on first use; only Python 3.11+ is required.
PYTHON ?= python3
VENV := .venv
# Where the models are that the benchmarks measure.
MODELS ?= .bench-models
BIN := $(VENV)/bin
# An interpreter with tensorflow; the default environment is created if it is missing (1.6 GB).
PYTHON_ORACLE ?= .venv-oracle/bin/python
# uv, if it is there, installs in seconds what takes pip a minute; `make UV= ...` leaves it out.
UV ?= $(shell command -v uv 2>/dev/null)
# $(call make_venv,INTERPRETER,FOLDER) and $(call install,FOLDER) with the packages after it
make_venv = $(if $(UV),$(UV) venv --quiet --seed --allow-existing --no-python-downloads --python "$$(command -v $(1) || echo $(1))" $(2),$(1) -m venv $(2))
install = $(if $(UV),$(UV) pip install --quiet --python $(1)/bin/python,$(1)/bin/python -m pip install --quiet --disable-pip-version-check)
PIP := $(call install,$(VENV)) -c constraints.txt
BUILD := $(if $(UV),--installer uv)
# Each process would compile every module again, and tests start hundreds.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: serve environment test test-extras test-ray test-package test-tritonclient test-kserve fuzz fuzz-properties docs lint types bench bench-models oracle protos clean test-browser test-newer-python test-oldest console-screenshots

serve: $(VENV)/.serve  ## Serve the example models on this machine: ports 8501 (REST), 8500 (gRPC)
	exec $(BIN)/runstep serve --host=127.0.0.1

# One installation instead of five, each of which builds the package.
environment: | $(VENV)/bin/python  ## Install what all targets need that run in .venv
	$(PIP) -e '.[fast,test,docs,browser,dev]'
	touch $(addprefix $(VENV)/.,serve test docs browser dev)

test: $(VENV)/.test  ## Run all tests
	$(BIN)/python -m pytest -n auto --dist worksteal

test-browser: $(VENV)/.browser  ## Run the console's tests; requires chromium on the PATH
	@command -v chromium >/dev/null || { \
	  echo 'make test-browser requires chromium on the PATH; on Debian: apt-get install chromium' >&2; exit 1; }
	RUNSTEP_TEST_BROWSER=1 $(BIN)/python -m pytest -n 0 tests/browser

console-screenshots: $(VENV)/.browser  ## Make a picture of every page of the console, in .screenshots
	$(BIN)/python -m tools.console_screenshots .screenshots

# A newer Python than that of the other targets, for the tests of the packages. The files that are left
# out measure the memory of ops, which depends on it least, and take a third of the time.
PYTHON_NEWER ?= python3.13
NEWER := $(addprefix tests/unit/,runtime server runstep) \
  $(addprefix --ignore=tests/unit/runtime/,kernels/test_kernels_memory.py executors/test_executors_memory.py \
  op_packages/text/test_text_memory.py framework/resources/test_resources_held.py \
  framework/data/test_element_growth.py)
test-newer-python: .venv-newer/.test  ## Run most unit tests on a newer Python, or on PYTHON_NEWER
	.venv-newer/bin/python -m pytest -n auto --dist worksteal $(NEWER) \
	  || .venv-newer/bin/python -m pytest -n 0 --last-failed $(NEWER)

.venv-newer/.test: pyproject.toml constraints.txt
	$(call make_venv,$(PYTHON_NEWER),.venv-newer)
	$(call install,.venv-newer) -c constraints.txt \
	  -e '.[fast,test,docs]'
	touch $@

# The oldest versions that pyproject.toml allows.
test-oldest: .venv-oldest/.test  ## Run the unit tests with the oldest packages that are allowed
	.venv-oldest/bin/python -m pytest -n auto --dist worksteal tests/unit

.venv-oldest/.test: pyproject.toml
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check uv
	.venv-oldest/bin/uv pip install --quiet --python .venv-oldest/bin/python \
	  --resolution lowest-direct -e '.[fast,test,docs]'
	touch $@

# Clients that need an older protobuf than the server, each in an environment of its own.
test-tritonclient: $(VENV)/.test .venv-tritonclient/bin/python  ## Run tritonclient's calls on the server
	$(BIN)/python -m pytest -n 0 tests/integration/test_protocol_clients.py -k tritonclient

test-kserve: $(VENV)/.test .venv-kserve/bin/python  ## Run KServe's client on the server
	$(BIN)/python -m pytest -n 0 tests/integration/test_protocol_clients.py -k kserve

.venv-tritonclient/bin/python:
	$(call make_venv,$(PYTHON),.venv-tritonclient)
	$(call install,.venv-tritonclient) 'tritonclient[http,grpc]>=2.60,<3'

.venv-kserve/bin/python:
	$(call make_venv,$(PYTHON),.venv-kserve)
	$(call install,.venv-kserve) 'kserve>=0.15,<1'

# The extras whose tests `make test` skips.
EXTRAS := text,forests,jax,openvino

# What fails beside other work is run once more, alone.
test-extras: .venv-extras/.extras  ## Install the extras in an environment of their own, and run their tests
	.venv-extras/bin/python -m pytest -n auto --dist worksteal tests/extras \
	  || .venv-extras/bin/python -m pytest -n 0 --last-failed tests/extras

.venv-extras/.extras: pyproject.toml constraints.txt
	$(call make_venv,$(PYTHON),.venv-extras)
	$(call install,.venv-extras) -c constraints.txt \
	  -e '.[fast,test,$(EXTRAS)]'
	touch $@

# Ray, and the processes of its clusters, in an environment of their own.
# What fails beside other work, as when Ray itself does not start in time, is run once more; the cache
# that says what failed is not that of the tests beside it.
# Without these two, Ray starts a process for each processor of each node before anybody wants one,
# which takes a fifth of the tests' time.
PYTEST_RAY := RAY_enable_worker_prestart=0 RAY_prestart_worker_first_driver=0 \
  .venv-ray/bin/python -m pytest -n 0 -o cache_dir=.venv-ray/.pytest_cache
test-ray: .venv-ray/.ray  ## Install Ray in an environment of its own, and run the tests of sessions and models on it
	$(PYTEST_RAY) tests/extras/ray || $(PYTEST_RAY) --last-failed tests/extras/ray
	$(PYTEST_RAY) tests/integration/targets --target ray

.venv-ray/.ray: pyproject.toml constraints.txt
	$(call make_venv,$(PYTHON),.venv-ray)
	$(call install,.venv-ray) -c constraints.txt \
	  -e '.[fast,test,ray]'
	touch $@

# The wheel and the sdist are built from the files as they are, and the wheel is installed alone.
test-package: $(VENV)/.dev  ## Build the wheel and the sdist, install the wheel in a fresh environment, serve
	rm -rf .venv-package
	$(call make_venv,$(PYTHON),.venv-package)
	$(BIN)/python -m build $(BUILD) --outdir .venv-package/dist . > /dev/null
	rm -rf build
	$(call install,.venv-package) -c constraints.txt "$$(echo .venv-package/dist/*.whl)[fast]"
	$(BIN)/python -m build $(BUILD) --wheel --outdir .venv-package/example examples/op_package > /dev/null
	rm -rf examples/op_package/build examples/op_package/*.egg-info
	$(call install,.venv-package) --no-deps .venv-package/example/*.whl
	$(BIN)/python -m pytest -n 0 tests/integration/test_package.py

# TARGET is one of tests/fuzz/targets (all if it is empty); SEED a new one if it is empty.
TARGET ?=
INPUTS ?= 2000
SEED ?=
fuzz: $(VENV)/.test  ## Run hostile inputs: no crash, no hang, the right code. TARGET=… INPUTS=… SEED=…
	nice -n 19 $(BIN)/python -m tests.fuzz --inputs $(INPUTS) \
	  $(if $(TARGET),--target $(TARGET)) $(if $(SEED),--seed $(SEED))

fuzz-properties: $(VENV)/.test  ## Search for new examples that break a property, until one is found
	while $(BIN)/python -m pytest -n auto --hypothesis-profile new tests/property; do :; done

docs: $(VENV)/.docs  ## Build the documentation site into .site, and check its links
	$(BIN)/python tools/build_docs.py

lint: $(VENV)/.dev  ## Lint and check formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev  ## Check types
	$(BIN)/mypy

bench: $(VENV)/.serve  ## Run the benchmarks; PEERS=PYTHON: beside TensorFlow and other engines
	$(BIN)/python -m bench --bars $(if $(PEERS)$(wildcard $(MODELS)/*/1),--models $(MODELS)) \
	  $(if $(PEERS),--peers $(PEERS))

bench-models: $(PYTHON_ORACLE)  ## Export the models that the benchmarks measure
	$(PYTHON_ORACLE) tools/export/bench_models.py $(MODELS)

oracle: $(VENV)/.serve $(PYTHON_ORACLE)  ## Compare random cases with real TensorFlow, op by op
	$(BIN)/python tools/oracle.py --tensorflow $(PYTHON_ORACLE) --write $(OPS)

# Generated by the oldest protoc whose output every supported protobuf runtime accepts.
protos:  ## Regenerate the protobuf code
	$(PYTHON) -m venv .venv-protos
	.venv-protos/bin/python -m pip install --quiet 'grpcio-tools==1.75.*'
	.venv-protos/bin/python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. protos/*.proto

clean:  ## Remove the virtual environment and caches
	rm -rf $(VENV) .site .venv-package .venv-oracle .venv-tritonclient .venv-kserve .venv-extras .venv-ray .venv-newer .venv-oldest .oracle .bench-models .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist *.egg-info

$(VENV)/bin/python:
	$(call make_venv,$(PYTHON),$(VENV))

.venv-oracle/bin/python:
	$(call make_venv,$(PYTHON),.venv-oracle)
	$(call install,.venv-oracle) 'tensorflow-cpu==2.21.*'

$(VENV)/.serve: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e '.[fast]'
	touch $@

$(VENV)/.test: $(VENV)/.serve
	$(PIP) -e '.[fast,test]'
	touch $@

$(VENV)/.docs: $(VENV)/.serve
	$(PIP) -e '.[fast,docs]'
	touch $@

$(VENV)/.browser: $(VENV)/.test
	$(PIP) -e '.[fast,test,browser]'
	touch $@

$(VENV)/.dev: $(VENV)/.test
	$(PIP) -e '.[fast,test,dev]'
	touch $@
