# What is given to others: the wheel, packages, the site of documents. The Makefile includes this.
.PHONY: wheel test-wheel

WHEEL_VENV := .venv-wheel
# An environment of its own, so that `make setup` stays as quick as it is.
$(WHEEL_VENV)/.requirements: requirements.txt requirements-wheel.txt
	test -x $(WHEEL_VENV)/bin/python || $(PYTHON) -m venv $(WHEEL_VENV)
	$(WHEEL_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-wheel.txt
	touch $@

# A wheel for glibc 2.28 (RHEL 8) and newer, any CPython from 3.11 on, whatever this machine runs.
wheel: $(WHEEL_VENV)/.requirements
	VENV=$(WHEEL_VENV) tools/build_wheel.sh

# The wheel in the oldest root that can be had here, by a user without a compiler: record, diagnose, report, agent.
test-wheel: $(WHEEL_VENV)/.requirements
	VENV=$(WHEEL_VENV) tools/test_wheel.sh

.PHONY: packages static-agent test-packages site release-check
# The agent for Debian and RPM systems, from the newest wheel in dist/.
packages:
	tools/build_packages.sh

# The agent without any library of the system, in dist/, for machines with a glibc older than 2.28.
static-agent: $(WHEEL_VENV)/.requirements
	VENV=$(WHEEL_VENV) tools/build_static_agent.sh

# Installs them, runs the agent, takes them away again.
test-packages:
	tools/test_packages.sh

DOCS_VENV := .venv-docs
$(DOCS_VENV)/.requirements: requirements-docs.txt
	test -x $(DOCS_VENV)/bin/python || $(PYTHON) -m venv $(DOCS_VENV)
	$(DOCS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-docs.txt
	touch $@

# The documents as pages with a search that works offline: site/index.html. A warning is an error.
SPHINX := $(DOCS_VENV)/bin/python -m sphinx --quiet --fail-on-warning --keep-going --jobs auto -c packaging/site
site: $(DOCS_VENV)/.requirements
	rm -rf site
	$(SPHINX) -d build/site/en docs site/en
	$(SPHINX) -d build/site/ja -D language=ja -D root_doc=ja/index docs site/ja
	cp packaging/site/index.html site/

# What a release must be, each thing in one line; ONLY="versions licences" checks those.
release-check:
	$(BIN)/python tools/release_check.py $(ONLY)
