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
