# The two commands that do all the set-up: `make demo` and `make test`.
VENV ?= .venv
BIN := $(VENV)/bin
INSTALL_INPUTS := pyproject.toml constraints.txt scripts/install
PYTEST ?= $(BIN)/python -m pytest

.PHONY: help demo test check drill bench-peers format clean
.DEFAULT_GOAL := help

help:  ## What there is to make
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/make \1\t\2/' | expand -t 16

demo: $(VENV)/.installed-demo  ## Install, fetch the model, play a tournament (about four minutes on two cores)
	$(BIN)/arena run examples/demo.toml --db demo.db --fresh --serve

test: $(VENV)/.installed-dev  ## Every fast test (under ten minutes on two cores)
	$(PYTEST) -m "not drill"

check: $(VENV)/.installed-dev  ## Linters, types on sources and tests, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

drill: $(VENV)/.installed-dev  ## Long sweeps, fuzzers and kill drills
	$(PYTEST) -m drill --timeout 7200

bench-peers: $(VENV)/.installed-dev  ## Beside vLLM, llama.cpp and transformers (installs them, 3 GB; about an hour)
	scripts/install-peers .peers $(BIN)/python
	$(BIN)/python -m pip install --quiet 'matplotlib>=3.9'
	$(BIN)/python -m benchmarks.peers

format: $(VENV)/.installed-dev  ## Put the sources in order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## Remove the virtual environment and caches (not the databases)
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist

$(VENV)/.installed-demo: $(INSTALL_INPUTS)
	@scripts/install $(VENV) local,endpoint,mqtt,web
	@touch $@

$(VENV)/.installed-dev: $(INSTALL_INPUTS)
	@scripts/install $(VENV) local,endpoint,mqtt,postgres,web,test,dev
	@touch $@ $(VENV)/.installed-demo
