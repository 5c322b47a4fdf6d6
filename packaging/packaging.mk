# Builds what is published: the wheel, packages, the documentation site. The Makefile includes this file.
.PHONY: wheel test-wheel

WHEEL_VENV := .venv-wheel
# A separate environment, so that `make setup` stays quick.
$(WHEEL_VENV)/.requirements: requirements.txt requirements-wheel.txt
	test -x $(WHEEL_VENV)/bin/python || $(PYTHON) -m venv $(WHEEL_VENV)
	$(WHEEL_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-wheel.txt
	touch $@

# Builds a wheel for glibc 2.28 (RHEL 8) and newer and CPython 3.11 and newer, independent of this machine's versions.
wheel: $(WHEEL_VENV)/.requirements
	VENV=$(WHEEL_VENV) tools/build_wheel.sh

# Tests the wheel in the oldest root file system that can be had here, without a compiler: record, diagnose, report, agent.
test-wheel: $(WHEEL_VENV)/.requirements
	VENV=$(WHEEL_VENV) tools/test_wheel.sh

.PHONY: packages static-agent test-packages site release-check
# Builds the agent's Debian and RPM packages from the newest wheel in dist/.
packages:
	tools/build_packages.sh

# Builds a static agent in dist/, for machines with a glibc older than 2.28.
static-agent: $(WHEEL_VENV)/.requirements
	VENV=$(WHEEL_VENV) tools/build_static_agent.sh

# Installs the packages, runs the agent, and removes them.
test-packages:
	tools/test_packages.sh

DOCS_VENV := .venv-docs
$(DOCS_VENV)/.requirements: requirements-docs.txt
	test -x $(DOCS_VENV)/bin/python || $(PYTHON) -m venv $(DOCS_VENV)
	$(DOCS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-docs.txt
	touch $@

# Builds the documentation as pages with an offline search: site/index.html. A warning is an error.
SPHINX := $(DOCS_VENV)/bin/python -m sphinx --quiet --fail-on-warning --keep-going --jobs auto -c packaging/site
site: $(DOCS_VENV)/.requirements
	rm -rf site
	$(SPHINX) -d build/site/en docs site/en
	$(SPHINX) -d build/site/ja -D language=ja -D root_doc=ja/index docs site/ja
	cp packaging/site/index.html site/

# Checks a release and prints one line per check. ONLY="versions licences" runs only these two.
release-check:
	$(BIN)/python tools/release_check.py $(ONLY)
