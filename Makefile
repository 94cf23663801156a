# make run    a ledger with a small fleet at work in it, on http://127.0.0.1:8137
# make test   everything that CI checks; `make quick` only what takes no server
# make bench  how fast it is on this machine
# make clean  takes away what the others made

PYTHON ?= python3
VENV := .venv
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check --no-input
export PIP_ROOT_USER_ACTION = ignore

.PHONY: run test quick lint types bench screenshots tools clean
.DELETE_ON_ERROR:

run: $(VENV)/.installed
	$(VENV)/bin/ledgerd demo

# What takes no process of its own comes first, so that a mistake is soon said. The others mostly wait, so there is one
# worker more. `make test WORKERS=0 WAITING=0` runs one by one
WORKERS ?= 2
WAITING ?= 3
QUICK_TESTS := tests/test_*.py tests/unit tests/sim tests/store
SLOW_TESTS := tests/live tests/browser

test: $(VENV)/.installed-test
	$(MAKE) --no-print-directory --jobs=4 --output-sync=line lint types quick
	$(VENV)/bin/pytest --numprocesses $(WAITING) --dist loadgroup $(SLOW_TESTS)

quick: $(VENV)/.installed-test tools
	$(VENV)/bin/pytest --numprocesses $(WORKERS) --dist worksteal $(QUICK_TESTS)

lint: $(VENV)/.installed-test
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check

types: $(VENV)/.installed-test
	$(VENV)/bin/mypy

bench: $(VENV)/.installed-test
	$(VENV)/bin/python -m tests.bench

screenshots: $(VENV)/.installed-test tools
	$(VENV)/bin/python -m tests.browser.screenshots

# The browser tests drive Debian's Chromium; the README's examples use curl, git and jq, the daemons' tests git
TOOLS := chromium curl git jq

tools:
	@missing=""; for tool in $(TOOLS); do command -v $$tool >/dev/null || missing="$$missing $$tool"; done; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $$missing; \
	else \
		echo "The tests need$$missing: apt-get install$$missing" >&2; exit 1; \
	fi

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis screenshots
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "ledgerd needs Python 3.11 or newer: set PYTHON to one, as in make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "Python's venv module is missing: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(PIP) install --quiet --editable .
	touch $@

$(VENV)/.installed-test: pyproject.toml | $(VENV)/bin/python
	$(PIP) install --quiet --editable '.[test]'
	touch $@ $(VENV)/.installed
