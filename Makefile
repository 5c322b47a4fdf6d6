# The few commands of the project; `make setup` first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name '*.[choS]' -o -name Cargo.toml) Cargo.toml Cargo.lock
CATALOGUES := $(patsubst %.po,%.mo,$(wildcard src/iodock/locale/*/LC_MESSAGES/iodock.po))

.PHONY: setup demo test test-all test-rest test-mutations test-prometheus test-slurm test-grid-engine test-moosefs test-programs \
	test-darshan test-ior test-mpi check reference messages bench pairs bpf clean

setup: $(VENV)/.built $(CATALOGUES)

$(VENV)/.requirements: requirements.txt requirements-dev.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	touch $@

# Rebuilt only when Rust sources change: Python sources are used where they lie.
$(VENV)/.built: $(VENV)/.requirements pyproject.toml $(RUST_SOURCES)
	IODOCK_COMMIT=$$(tools/commit.sh) VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --release --locked
	touch $@

# Translations as the program reads them; only the .po files are kept in git.
%.mo: %.po tools/messages.py $(VENV)/.requirements
	$(BIN)/python tools/messages.py --compile
	touch $@

# The main job on a small program of the casebook: record it, see what is found, record it mended, see what that
# has brought, write the report.
DEMO ?= src/iodock/program/casebook/cases/open-close
demo: setup
	$(BIN)/iodock record --force -o demo-before.iodock -- $(BIN)/python $(DEMO)/before.py demo.log 8000
	$(BIN)/iodock record --force -o demo-after.iodock -- $(BIN)/python $(DEMO)/after.py demo.log 8000
	rm -f demo.log
	$(BIN)/iodock diff --per run --top 3 demo-before.iodock demo-after.iodock
	$(BIN)/iodock report demo-before.iodock -o demo.html
	@echo "open demo.html in a browser; next: .venv/bin/iodock diagnose demo-before.iodock"

# Tests start Python hundreds of times: without compiled modules each start compiles all of iodock again.
unexport PYTHONDONTWRITEBYTECODE
# Most tests wait for programs: two at a time take half as long on two cores.
TESTS_AT_ONCE ?= 2
# More options of pytest.
PYTEST_MORE ?=
PYTEST := $(BIN)/python -m pytest -n $(TESTS_AT_ONCE) --dist worksteal $(PYTEST_MORE)
# What a contributor needs, in minutes.
test: setup
	cargo test --workspace --quiet
	$(PYTEST) -m "not whole"

# Everything that ends by itself here: besides `make test` hostile programs in all back ends, killed processes, browsers,
# a real Slurm, Grid Engine, MooseFS and Prometheus. What can't be tried here is skipped and says so.
test-all: test test-rest

# What `make test` leaves out. Tests that print a measurement, or that another test starts, are neither.
WHOLE_SLURM := tests/trials/whole_slurm.py tests/trials/whole_slurm_health.py tests/trials/whole_slurm_actions.py \
	tests/trials/whole_slurm_facts.py tests/trials/whole_slurm_merge.py tests/trials/whole_slurm_mpi.py tests/trials/whole_digests.py
WHOLE_MOOSEFS := tests/trials/whole_moosefs.py
WHOLE_GRID_ENGINE := tests/trials/whole_grid_engine.py
test-rest: setup
	cargo test --workspace --quiet --tests -- --ignored --skip cost_of_a_line
	$(BIN)/python -m pytest -rs $(PYTEST_MORE) $(WHOLE_SLURM) $(WHOLE_MOOSEFS) $(WHOLE_GRID_ENGINE)
	@program=$$(tools/prometheus.sh) || [ $$? = 3 ] || exit 1; IODOCK_PROMETHEUS="$$program" $(PYTEST) -m whole

# Thousands of inputs that were damaged by chance, for every reader: no crash, no hang, no silent loss. A case that
# fails is made again by what it prints: tests/trials/mutated.py --seed S --only N.
MUTATIONS ?= 2000
SEED ?= 1
test-mutations: setup
	cargo build --quiet --locked -p iodock-agent
	PYTHONPATH=tests/kit $(BIN)/python tests/trials/mutated.py --count $(MUTATIONS) --seed $(SEED)

# Prometheus itself scrapes real agents while a collector takes their pushes: what is read back must agree. Where there
# is none it is fetched: release 2.53.3 of github.com/prometheus/prometheus, against its sha256sums.txt, or Debian's.
test-prometheus: setup
	cargo build --quiet --locked -p iodock-agent
	@if program=$$(tools/prometheus.sh); then \
		IODOCK_PROMETHEUS="$$program" $(BIN)/python -m pytest tests/centre/prometheus/test_prometheus_real.py tests/centre/portal/test_collector_metrics.py; \
	elif [ $$? = 3 ]; then echo "skipped: test-prometheus, there is no Prometheus to be had here"; \
	else exit 1; fi

# A real Slurm of two nodes in temporary folders and namespaces, and jobs of known bytes: needs root and, of Debian,
# slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge libslurm-dev. Says so and passes where they are missing.
test-slurm: setup
	cargo build --quiet --locked -p iodock-agent
	$(BIN)/python -m pytest -rs $(PYTEST_MORE) $(WHOLE_SLURM)

# Digests in the output of jobs of a real Grid Engine: needs root and, of Debian, gridengine-master gridengine-exec
# gridengine-client. Says so and passes where they are missing.
test-grid-engine: setup
	$(BIN)/python -m pytest -rs $(PYTEST_MORE) $(WHOLE_GRID_ENGINE)

# A real MooseFS on two machines that are namespaces: load, a stopped master, a restart and nothing, one round each. Needs
# root and, of Debian, moosefs-master moosefs-chunkserver moosefs-client. Says so and passes where they are missing.
# 20 rounds each take half an hour: benches/moosefs_rounds.py --agent target/release/iodock-agent.
test-moosefs: setup
	cargo build --quiet --locked -p iodock-agent
	$(BIN)/python -m pytest -rs $(WHOLE_MOOSEFS)

# More than 100 real programs, each by every back end: output, files, status and calls beside those alone and under
# strace. Takes an hour or more, wants strace and root (for bpf); programs that are not here are skipped, and it says which.
# One alone: tests/trials/programs_everywhere.py --only NAME.
test-programs: setup
	PYTHONPATH=tests/kit $(BIN)/python tests/trials/programs_everywhere.py

# Every value of Darshan's logs beside PyDarshan's, which is installed into a folder of its own (300 MB). LOGS names a
# folder of more logs, such as a copy of darshan-hpc/darshan-logs. Says so and passes where PyDarshan can't be had.
LOGS ?=
DARSHAN_BIN := .venv-darshan/bin
test-darshan:
	test -x $(DARSHAN_BIN)/python || $(PYTHON) -m venv .venv-darshan
	@if $(DARSHAN_BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-darshan.txt; then \
		IODOCK_PYDARSHAN="$(abspath $(DARSHAN_BIN))/python" $(if $(LOGS),IODOCK_DARSHAN_LOGS="$(abspath $(LOGS))") \
			cargo test --quiet -p iodock-darshan --test samples pydarshan -- --nocapture; \
	else echo "skipped: test-darshan, PyDarshan can't be installed here"; fi

# IOR and mdtest, built with Open MPI and MPICH, are recorded: calls and bytes of each interface are those that they say
# and those of independent counters. Takes four minutes; IOR is fetched from github.com/hpc/ior (IOR_REPOSITORY names
# another place). Says so and passes where it can't be had.
test-ior: setup
	@if folders=$$(tools/ior.sh); then \
		IODOCK_IOR="$$folders" $(PYTEST) --dist loadscope -rP tests/trials/ior_runs.py; \
	elif [ $$? = 3 ]; then echo "skipped: test-ior, there is no IOR to be had here"; \
	else exit 1; fi

# MPICH 4.3 and 5.0 and Open MPI 5.0 of PyPI, MPI-5's ABI, and mpi4py: calls and bytes of MPI-IO beside a counter. Each is
# installed into an environment of its own (400 MB). Takes five minutes. Says so and passes where they can't be had.
test-mpi: setup
	@if folders=$$(tools/mpis.sh); then \
		IODOCK_MPIS="$$folders" $(PYTEST) tests/trials/mpi_wheels.py; \
	elif [ $$? = 3 ]; then echo "skipped: test-mpi, other MPI libraries can't be installed here"; \
	else exit 1; fi

check: setup
	cargo fmt --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	$(BIN)/ruff check src tests benches tools
	$(BIN)/ruff format --check src tests benches tools
	$(BIN)/mypy

reference: setup
	COLUMNS=100 $(BIN)/python tools/reference.py
	$(BIN)/python tools/casebook.py

# New texts of the code into the catalogues; lists what is to be translated.
messages: setup
	$(BIN)/python tools/messages.py

bench: setup
	$(BIN)/python benches/import_speed.py
	$(BIN)/python benches/analysis_speed.py
	$(BIN)/python benches/record_cost.py
	$(BIN)/python benches/backends.py
	$(BIN)/python benches/health_engine.py
	cargo run --quiet --release -p iodock-agent --example job_stats_speed

# Programs with an I/O fault and the same mended as the advice says: was it right, and did it bring what was promised?
pairs: setup
	$(BIN)/python benches/pairs.py

# The bpf back end's programs from their C sources; the object is committed, so that nobody else needs the compiler.
bpf: $(VENV)/.requirements
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-wheel.txt
	$(BIN)/python tools/bpf.py

include packaging/packaging.mk

clean:
	rm -rf $(VENV) .venv-wheel .venv-docs dist build target site $(CATALOGUES)
