# The project's commands. Run `make setup` first.
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

# Built again only when Rust sources change. Python sources are used in place (an editable install).
$(VENV)/.built: $(VENV)/.requirements pyproject.toml $(RUST_SOURCES)
	IODOCK_COMMIT=$$(tools/commit.sh) VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --release --locked
	touch $@

# Compiles the translations that the program reads. Only the .po files are in git.
%.mo: %.po tools/messages.py $(VENV)/.requirements
	$(BIN)/python tools/messages.py --compile
	touch $@

# Shows the main job on a small program of the casebook: records it, diagnoses it, records the corrected program,
# compares both, and writes the report.
DEMO ?= src/iodock/program/casebook/cases/open-close
demo: setup
	$(BIN)/iodock record --force -o demo-before.iodock -- $(BIN)/python $(DEMO)/before.py demo.log 8000
	$(BIN)/iodock record --force -o demo-after.iodock -- $(BIN)/python $(DEMO)/after.py demo.log 8000
	rm -f demo.log
	$(BIN)/iodock diff --per run --top 3 demo-before.iodock demo-after.iodock
	$(BIN)/iodock report demo-before.iodock -o demo.html
	@echo "open demo.html in a browser; next: .venv/bin/iodock diagnose demo-before.iodock"

# Tests start Python hundreds of times. Without bytecode files, each start would compile all of iodock again.
unexport PYTHONDONTWRITEBYTECODE
# Most tests wait for programs, so two at a time take half as long on two cores.
TESTS_AT_ONCE ?= 2
# Further options for pytest.
PYTEST_MORE ?=
PYTEST := $(BIN)/python -m pytest -n $(TESTS_AT_ONCE) --dist worksteal $(PYTEST_MORE)
# The tests that a contributor runs. They take some minutes.
test: setup
	cargo test --workspace --quiet
	$(PYTEST) -m "not whole"

# Runs every test that needs no second machine: `make test`, hostile programs in all back ends, killed processes, browsers,
# a real Slurm, Grid Engine, MooseFS and Prometheus. A test whose program is missing is skipped and says so.
test-all: test test-rest

# The tests that `make test` leaves out. Tests that only print a measurement, or that another test starts, are in neither.
WHOLE_SLURM := tests/trials/whole_slurm.py tests/trials/whole_slurm_health.py tests/trials/whole_slurm_actions.py \
	tests/trials/whole_slurm_facts.py tests/trials/whole_slurm_merge.py tests/trials/whole_slurm_mpi.py tests/trials/whole_digests.py
WHOLE_MOOSEFS := tests/trials/whole_moosefs.py
WHOLE_GRID_ENGINE := tests/trials/whole_grid_engine.py
test-rest: setup
	cargo test --workspace --quiet --tests -- --ignored --skip cost_of_a_line
	$(BIN)/python -m pytest -rs $(PYTEST_MORE) $(WHOLE_SLURM) $(WHOLE_MOOSEFS) $(WHOLE_GRID_ENGINE)
	@program=$$(tools/prometheus.sh) || [ $$? = 3 ] || exit 1; IODOCK_PROMETHEUS="$$program" $(PYTEST) -m whole

# Gives every reader thousands of randomly damaged inputs: no crash, no hang, no silent loss. A case that fails prints
# its seed and number; tests/trials/mutated.py --seed S --only N repeats it.
MUTATIONS ?= 2000
SEED ?= 1
test-mutations: setup
	cargo build --quiet --locked -p iodock-agent
	PYTHONPATH=tests/kit $(BIN)/python tests/trials/mutated.py --count $(MUTATIONS) --seed $(SEED)

# A real Prometheus scrapes agents that also push to a collector. Both must return the same values. If Prometheus is not
# installed, release 2.53.3 is fetched from github.com/prometheus/prometheus (checked against its sha256sums.txt), or
# Debian's package.
test-prometheus: setup
	cargo build --quiet --locked -p iodock-agent
	@if program=$$(tools/prometheus.sh); then \
		IODOCK_PROMETHEUS="$$program" $(BIN)/python -m pytest tests/centre/prometheus/test_prometheus_real.py tests/centre/portal/test_collector_metrics.py; \
	elif [ $$? = 3 ]; then echo "skipped: test-prometheus, there is no Prometheus to be had here"; \
	else exit 1; fi

# Starts a real Slurm with two nodes in temporary folders and namespaces, and runs jobs whose bytes are known. Needs root
# and the Debian packages slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge libslurm-dev. If they are missing,
# it says so and passes.
test-slurm: setup
	cargo build --quiet --locked -p iodock-agent
	$(BIN)/python -m pytest -rs $(PYTEST_MORE) $(WHOLE_SLURM)

# Checks that jobs of a real Grid Engine get a digest in their output. Needs root and the Debian packages
# gridengine-master gridengine-exec gridengine-client. If they are missing, it says so and passes.
test-grid-engine: setup
	$(BIN)/python -m pytest -rs $(PYTEST_MORE) $(WHOLE_GRID_ENGINE)

# Runs a real MooseFS on two namespaces that act as machines, one round each: load, a stopped master, a restart, and no
# event. Needs root and the Debian packages moosefs-master moosefs-chunkserver moosefs-client. If they are missing, it says
# so and passes. 20 rounds of each take half an hour: benches/moosefs_rounds.py --agent target/release/iodock-agent.
test-moosefs: setup
	cargo build --quiet --locked -p iodock-agent
	$(BIN)/python -m pytest -rs $(WHOLE_MOOSEFS)

# Records more than 100 real programs with every back end, and compares output, files and exit status with the program
# alone, and calls with strace. Takes an hour or more. Needs strace, and root for bpf. Programs that are not installed
# are skipped and listed. A single program: tests/trials/programs_everywhere.py --only NAME.
test-programs: setup
	PYTHONPATH=tests/kit $(BIN)/python tests/trials/programs_everywhere.py

# Compares every value of Darshan's logs with PyDarshan, which is installed into a separate folder (300 MB). LOGS names a
# folder with more logs, such as a copy of darshan-hpc/darshan-logs. If PyDarshan can't be installed, it says so and passes.
LOGS ?=
DARSHAN_BIN := .venv-darshan/bin
test-darshan:
	test -x $(DARSHAN_BIN)/python || $(PYTHON) -m venv .venv-darshan
	@if $(DARSHAN_BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-darshan.txt; then \
		IODOCK_PYDARSHAN="$(abspath $(DARSHAN_BIN))/python" $(if $(LOGS),IODOCK_DARSHAN_LOGS="$(abspath $(LOGS))") \
			cargo test --quiet -p iodock-darshan --test samples pydarshan -- --nocapture; \
	else echo "skipped: test-darshan, PyDarshan can't be installed here"; fi

# Builds IOR and mdtest with Open MPI and MPICH, records them, and compares calls and bytes of each interface with their
# own output and with independent counters. Takes four minutes. IOR is fetched from github.com/hpc/ior (IOR_REPOSITORY
# names another place). If it can't be fetched, it says so and passes.
test-ior: setup
	@if folders=$$(tools/ior.sh); then \
		IODOCK_IOR="$$folders" $(PYTEST) --dist loadscope -rP tests/trials/ior_runs.py; \
	elif [ $$? = 3 ]; then echo "skipped: test-ior, there is no IOR to be had here"; \
	else exit 1; fi

# Compares calls and bytes of MPI-IO with an independent counter, for MPICH 4.3 and 5.0 and Open MPI 5.0 from PyPI, the ABI
# of MPI-5, and mpi4py. Each is installed into a separate environment (400 MB). Takes five minutes. If they can't be
# installed, it says so and passes.
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

# Adds new texts of the code to the catalogues, and lists those without a translation.
messages: setup
	$(BIN)/python tools/messages.py

bench: setup
	$(BIN)/python benches/import_speed.py
	$(BIN)/python benches/analysis_speed.py
	$(BIN)/python benches/record_cost.py
	$(BIN)/python benches/backends.py
	$(BIN)/python benches/health_engine.py
	cargo run --quiet --release -p iodock-agent --example job_stats_speed

# Measures programs with an I/O fault before and after the advice is followed, and compares the gain with the forecast.
pairs: setup
	$(BIN)/python benches/pairs.py

# Builds the BPF programs from their C sources. The object is committed, so a normal build does not need the compiler.
bpf: $(VENV)/.requirements
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-wheel.txt
	$(BIN)/python tools/bpf.py

include packaging/packaging.mk

clean:
	rm -rf $(VENV) .venv-wheel .venv-docs dist build target site $(CATALOGUES)
