# Everything sets itself up in .venv; only Python 3.11 or newer and make are needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
XDIST ?= 2
COMMA := ,

.PHONY: help accuracy demo test test-slow check lint types benchmark pretrained clean

help:  ## what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if v >= (3, 11) else f"Python 3.11 or newer is needed, got {v[0]}.{v[1]}. Try: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(READY)  ## the main job: infer the Heston model from shipped data, write a report (out/demo/report.html)
	$(BIN)/fokkerflow demo --out out/demo

test: $(READY)  ## the test suite (a few minutes on two cores)
	$(BIN)/python -m pytest -n $(XDIST) --dist loadfile -m 'not slow'

test-slow: $(READY)  ## heavy statistical and accuracy runs
	$(BIN)/python -m pytest -n $(XDIST) --dist loadfile -m slow

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

check: lint types test  ## lint, types and tests: what CI runs

accuracy: $(READY)  ## errors of the shipped densities beside the paper's figures (some minutes)
	$(BIN)/fokkerflow benchmark accuracy

benchmark: $(READY)  ## every benchmark; prints, and records into benchmarks/results
	for f in $$(grep -l __main__ benchmarks/*.py); do $(BIN)/python $$f --record || exit 1; done

SHIPPED := fokkerflow/pretrained
TRAIN = $(BIN)/fokkerflow train $(1) -o $(SHIPPED)/$(2).fkf && $(BIN)/fokkerflow certify $(SHIPPED)/$(2).fkf

pretrained: $(READY)  ## train the densities that ship with the package again (half an hour on two cores)
	$(call TRAIN,ou --law default --dt-max 1 --preset fast --set components=2,ou)
	$(call TRAIN,cir --law default --dt-max 1,cir)
	$(call TRAIN,heston --law default --dt-max 1 --preset accurate,heston)
	$(call TRAIN,heston --law wide --dt-max 1 --preset accurate,heston-wide)
	$(call TRAIN,svcev --law default --dt-max 1 --preset accurate --set tail_depth=15,svcev)
	$(call TRAIN,bdfs --law paper --dt-max 0.5 --preset accurate --set 'parents=[[]$(COMMA)[]$(COMMA)[0$(COMMA)1]]' --set 'components=[14$(COMMA)1$(COMMA)14]',bdfs)

clean:  ## remove everything that was made
	rm -rf $(VENV) out .pytest_cache .mypy_cache .ruff_cache .hypothesis
