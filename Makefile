# make demo, make test: what they need goes into .venv, locked with hashes.

CANDIDATES := python3.12 python3.11 python3.13 python3.14 python3 python
SUITABLE := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(firstword $(foreach p,$(CANDIDATES),$(shell $(p) -c "$(SUITABLE)" >/dev/null 2>&1 && echo $(p))))
ifeq ($(OS),Windows_NT)
BIN := Scripts
PY := .venv/$(BIN)/python.exe
else
BIN := bin
PY := .venv/$(BIN)/python
endif

# A stamp stands for what is installed: this folder, a lock and pyproject.toml.
stamp = .venv/$(1)-$(shell { pwd; cat requirements/$(1).txt pyproject.toml 2>/dev/null; } | cksum | tr ' ' '-')
DEMO := $(call stamp,demo)
TEST := $(call stamp,test)
DOCS := $(call stamp,docs)
RELEASE := $(call stamp,release)

# $(1): demo, test, docs or release; $(2): what a reader should expect
define install
	@echo "Installing requirements/$(1).txt into .venv: $(2), once only ..."
	@rm -f .venv/$(1)-*
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-input \
	  --require-hashes --only-binary :all: -r requirements/$(1).txt
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-input \
	  --no-deps --no-build-isolation -e .
	@touch $@
endef

# What `make check` runs: the rooms of a fit, the rules of the repository, and a kernel and an estimator
# of each kind. Everything else, and what is marked slow, runs with `make test`.
FAST := $(addprefix tests/unit/,data sums solvers pairs nystrom learn \
  kernels/test_vectors.py kernels/test_strings.py kernels/test_registry.py kernels/test_combine.py \
  estimators/test_transformer.py estimators/test_border.py estimators/test_svm.py \
  repo/test_architecture.py repo/test_import_direction.py repo/test_packaging.py \
  repo/test_public_names.py repo/test_walk.py)
# Several processes share the cores: threads without work sleep, and do not spin. One process more than
# there are cores, because some tests wait, for workers to start or to die. Bytecode is kept, whatever the
# shell says: some hundred processes import the package.
SHARED := OPENBLAS_THREAD_TIMEOUT=4 OMP_WAIT_POLICY=passive PYTHONDONTWRITEBYTECODE=
WORKERS := $(shell "$(PYTHON)" -c "import os; print((os.cpu_count() or 1) + 1)" 2>/dev/null)
PYTEST := $(SHARED) $(PY) -m pytest -n $(or $(WORKERS),auto) --dist worksteal

.PHONY: help demo reproduce test check lint coverage docs manual dist smoke workflows lock versions portable mutants clean
help:
	@echo "make demo    install what the demonstration needs, run it"
	@echo "make reproduce  the experiments of the paper (PART=quick: in small, a few minutes)"
	@echo "make check   lint, types and the fast tests: under two minutes, for every change"
	@echo "make test    install everything, then lint, types and all tests: about ten minutes"
	@echo "make portable  all tests as on other processors and in other orders: an hour or two"
	@echo "make mutants  whether the tests notice 500 small errors, one at a time: about half an hour"
	@echo "make lint    ruff and mypy only"
	@echo "make coverage  all tests, and which lines and branches they reach: about half an hour"
	@echo "make docs    the manual, into build/docs"
	@echo "make manual  the tests of the manual, with those of its built pages: links, no network, tables"
	@echo "make dist    sdist and wheel, into dist"
	@echo "make smoke   installs what is in dist into empty environments and tries it: a few minutes"
	@echo "make workflows  checks the files in .github and the settings of services"
	@echo "make lock    resolve requirements/*.txt anew (UPGRADE=--upgrade for the newest)"
	@echo "make versions  the tests with the oldest and newest versions (PART=tests/unit/data: a part)"
	@echo "make clean   remove .venv, caches and builds"

demo: $(DEMO)
	@$(PY) -m reproduction demo

# Everything, or a part: make reproduce PART=quick, PART=table1, PART="flops --quick"
reproduce: $(DEMO)
	$(PY) -m reproduction $(or $(PART),all)

check: lint
	$(PYTEST) -q -m "not slow" $(FAST)

test: lint
	$(PYTEST)

# One setting or some, and a part of the tests: make portable SETTINGS="Prescott order-1" TESTS=tests/unit/solvers
portable: $(TEST)
	$(PY) -m tests.portable $(SETTINGS) $(if $(TESTS),--tests $(TESTS))

# Others, or fewer: make mutants OPTIONS="--seed 2 --number 50 --module solvers/exact". One thread each, as
# mutants are made by fork.
mutants: $(TEST)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(PY) -m tests.mutants $(OPTIONS)

lint: $(TEST)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) -m benchmarks.walk --check

# Lines that numba compiles cannot be seen; pyproject.toml says what else is left out.
coverage: $(TEST)
	$(PY) -m coverage erase
	$(SHARED) $(PY) -m coverage run -m pytest -q -n auto --dist worksteal
	$(PY) -m coverage combine -q
	$(PY) -m coverage report
	@mkdir -p build
	@$(PY) -m coverage json -q -o build/coverage.json
	@$(PY) -c "import json; t = json.load(open('build/coverage.json'))['totals']; \
	print(*(f'{t[name]:.1f} % {name}' for name in ('percent_statements_covered', 'percent_branches_covered')), sep='\n')"

# TAG=v1.2.3: fails unless the version is that of the tag.
dist: $(RELEASE)
	rm -rf dist
	$(PY) -m build --no-isolation
	$(PY) -m twine check --strict dist/*
	@test -z "$$TAG" || ls "dist/kreinlearn-$${TAG#v}-py3-none-any.whl"

# Of what is in dist, whoever has built it; PART="--python python3.13 nothing" tries a part.
smoke:
	@"$(PYTHON)" -m tests.smoke $(PART)

workflows: $(RELEASE)
	.venv/$(BIN)/zizmor --offline --no-progress --persona pedantic .github
	$(PY) -m check_jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(PY) -m check_jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[0-9]*.yml
	$(PY) -m check_jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(PY) -m check_jsonschema --builtin-schema vendor.readthedocs .readthedocs.yaml
	$(PY) -m check_jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

# The examples run, so it takes a few minutes; -W: a warning is an error.
docs: $(DOCS)
	$(PY) -m sphinx -W --keep-going -n -q -b html -d build/doctrees docs build/docs
	@echo "Open build/docs/index.html"

manual: $(TEST) $(DOCS)
	$(PYTEST) -q tests/unit/repo/test_manual.py

# Where .venv is missing or its interpreter is gone, every stamp is void.
ifneq ($(shell $(PY) -c "print(1)" 2>/dev/null),1)
.PHONY: $(PY) $(DEMO) $(TEST) $(DOCS) $(RELEASE)
endif

$(PY):
	@"$(PYTHON)" -c "$(SUITABLE)" >/dev/null 2>&1 || { \
	  echo "kreinlearn needs Python 3.11 or newer with the venv module (Debian, Ubuntu: the" >&2; \
	  echo "package python3-venv); none was found. Name one: make PYTHON=/path/to/python3 demo" >&2; \
	  exit 1; }
	@"$(PYTHON)" -m venv --clear .venv

$(DEMO): | $(PY)
	$(call install,demo,600 MB on disk and a minute or two)

$(TEST): | $(DEMO)
	$(call install,test,1 GB more on disk and one to three minutes)

$(DOCS): | $(DEMO)
	$(call install,docs,1 GB more on disk and one to three minutes)

$(RELEASE): | $(PY)
	$(call install,release,100 MB on disk and half a minute)

# test.txt first, demo.txt and docs.txt within it: `make test` after `make demo` only adds packages.
COMPILE = "$$dir/$(BIN)/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
  --no-header --no-annotate --no-emit-index-url -c requirements/constraints.in $(UPGRADE)
lock:
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && set -e; \
	"$(PYTHON)" -m venv "$$dir"; \
	"$$dir/$(BIN)/python" -m pip install --quiet --disable-pip-version-check uv; \
	$(COMPILE) --extra all --extra test --extra compare -o requirements/test.txt pyproject.toml requirements/build.in; \
	$(COMPILE) --extra plot -c requirements/test.txt -o requirements/demo.txt pyproject.toml requirements/build.in; \
	$(COMPILE) --extra all --extra docs -c requirements/test.txt -o requirements/docs.txt pyproject.toml requirements/build.in; \
	$(COMPILE) -c requirements/test.txt -c requirements/docs.txt -o requirements/release.txt requirements/release.in requirements/build.in; \
	for lock in test demo docs release; do \
	  { echo "# Written by make lock from pyproject.toml and requirements/*.in."; \
	    grep -vE '^(#|--?(i|f|index-url|extra-index-url|find-links|trusted-host)[ =])' requirements/$$lock.txt; \
	  } > "$$dir/$$lock.txt"; \
	  mv "$$dir/$$lock.txt" requirements/$$lock.txt; \
	done

# Fresh environments in a temporary folder: the oldest versions with Python 3.11, the newest with the newest
# that is found. Others: make versions PART="--python 3.12 --setting oldest tests/unit/data"
versions:
	@"$(PYTHON)" -m tests.versions $(PART)

clean:
	rm -rf .venv build dist docs/auto_examples docs/generated .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests benchmarks reproduction -type d -name __pycache__ -prune -exec rm -rf {} +
