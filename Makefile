# `make demo` shows a study, `make check` tests quickly, `make test` tests everything.
# Each target installs what it needs into .venv, with Python 3.11 or newer.

PYTHON ?= python3
BIN := .venv/bin
BENCH := .venv-bench/bin

.PHONY: help demo check test test-compare test-salmon test-cpus qemu kernels lint bench bench-fit bench-paper bench-answers bench-stops bench-kinds bench-kinds-speed bench-bayes-factors \
	bench-materials bench-forecast calibrate-forecast bench-salmon bench-compare bench-large bench-learner bench-load \
	bench-reliability bench-pages bench-flags \
	bench-monitor bench-portability bench-replay bench-report chromium html-validate screenshots pictures reference site clean

help:
	@echo "make demo         a study of colours in your browser, answered by bots (BOTS=0: by you)"
	@echo "make check        lint, types and fast unit tests (under a minute)"
	@echo "make test         lint, types and all tests"
	@echo "make test-cpus    numerical tests as on other processors (about half an hour)"
	@echo "make test-salmon  our exports, read by Salmon itself (installs PyTorch)"
	@echo "make bench        all benchmarks; tables are written to docs/benchmarks/"
	@echo "make bench-fit    speed of a fit, compared with the reference implementation"
	@echo "make bench-paper  ranks and accuracies in the settings of the LORE paper"
	@echo "make bench-answers  answers needed, ranks found and stopping (hours; restartable)"
	@echo "make bench-stops  where studies stop in worlds that look like life (hours; restartable)"
	@echo "make bench-bayes-factors  calibration of the Bayes factor of a further dimension (restartable)"
	@echo "make bench-kinds  trials and seconds that each kind of question takes (hours; restartable)"
	@echo "make bench-kinds-speed  refits, audits and selections by kind of question"
	@echo "make bench-materials  Fisher and random selection on human answers (restartable)"
	@echo "make bench-forecast  how often the forecast range is right (restartable)"
	@echo "make calibrate-forecast  calibrate the forecast (after a change of the stopping rule)"
	@echo "make bench-salmon  comparison with Salmon's adaptive sampler"
	@echo "make bench-compare  LORE and cblearn's methods on human answers (restartable)"
	@echo "make bench-large  fits and selection for thousands of items (ten minutes)"
	@echo "make bench-learner  seconds taken by refits, selections and audits"
	@echo "make bench-portability  cost of computing the same bits on every machine"
	@echo "make bench-load    response times with many participants at once"
	@echo "make bench-monitor  the monitor of a large study, with many participants"
	@echo "make bench-report  time and size of a report"
	@echo "make bench-reliability  kills, damage, crowds and an hour of load (long; restartable)"
	@echo "make bench-replay  time of a replay; exports of a million answers"
	@echo "make bench-flags  how often honest and careless participants are flagged (half an hour)"
	@echo "make bench-pages  time and size of a participant's page"
	@echo "make screenshots  screenshots of every page, for docs/"
	@echo "make pictures     pictures of the documentation that are drawn from simulated studies"
	@echo "make reference    pages of docs/reference/ that are generated from the code"
	@echo "make site         docs/ as a web site, in build/site"
	@echo "make clean        remove environments and caches"

# Bytecode is compiled and cached at first import: compiling it for whole packages at installation,
# their tests included, takes longer.
unexport PYTHONDONTWRITEBYTECODE
PIP := -m pip install --quiet --disable-pip-version-check --no-compile

# Installs a Debian package, where that is allowed.
debian = command -v apt-get >/dev/null && { test "$$(id -u)" = 0 || sudo -n true 2>/dev/null; } && { \
	root=; test "$$(id -u)" = 0 || root="sudo -n"; \
	$$root apt-get update -qq $(BRIEFLY) && $$root apt-get install -qq -y $(BRIEFLY) --no-install-recommends $(1); }
# Without a network, or with a slow one, nothing waits for it.
BRIEFLY := -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20 -o Acquire::Retries=1

# What it needs to run, which is a fraction of what development needs.
.venv/.runtime: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "lore-active needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python $(PIP) -e .
	@touch $@

.venv/.installed: .venv/.runtime
	$(BIN)/python $(PIP) -e '.[dev]'
	@touch $@

# Salmon and cblearn require different versions of the same packages.
.venv-salmon/.installed: pyproject.toml
	$(PYTHON) -m venv .venv-salmon
	.venv-salmon/bin/python $(PIP) torch==2.13.0
	.venv-salmon/bin/python $(PIP) -e '.[salmon]' 'pytest>=8' 'hypothesis>=6.100'
	@touch $@

.venv-compare/.installed: pyproject.toml
	$(PYTHON) -m venv .venv-compare
	.venv-compare/bin/python $(PIP) \
	  -e '.[compare]' 'pytest>=8' 'hypothesis>=6.100'
	@touch $@

.venv-bench/.installed: pyproject.toml
	$(PYTHON) -m venv .venv-bench
	$(BENCH)/python $(PIP) -e '.[bench]'
	@touch $@

# A study of colours with BOTS simulated participants; DIR=folder keeps it, PORT=9000 listens there.
BOTS ?= 5
PORT ?= 8000
demo: .venv/.runtime
	$(BIN)/lore-active demo $(DIR) --bots $(BOTS) --port $(PORT)

lint: .venv/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Tests that need neither a browser nor a server process.
check: lint
	$(BIN)/python -m pytest -q tests/unit

# Two jobs at a time: both environments, then the linters while kernels compile. Then the tests, in
# three processes even on two cores: browsers and servers are often waited for.
test:
	$(MAKE) -j 2 .venv/.installed .venv-compare/.installed lint kernels chromium html-validate test-compare
	$(BIN)/python -m pytest -rs -n 3 --dist loadfile --no-loadscope-reorder --durations 15

# Compiled once for all test processes.
kernels: .venv/.installed
	$(BIN)/python -c 'from lore_active.warmup import warm; warm()'

# Tests that need cblearn, which requires an older NumPy than the other tests use.
test-compare: .venv-compare/.installed kernels
	.venv-compare/bin/python -m pytest -q tests/compare

# Everything but the pages, with each library's own choice of instructions for other processors;
# then the portable instructions on emulated ones. SkylakeX needs a processor with AVX-512.
NATIVE := LORE_ACTIVE_INSTRUCTION_SET=native OPENBLAS_NUM_THREADS=1
COMPUTING := -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder --ignore tests/browser \
	--ignore tests/processors
test-cpus: .venv/.installed kernels qemu
	$(NATIVE) OPENBLAS_CORETYPE=Haswell $(BIN)/python $(COMPUTING)
	if grep -qw avx512f /proc/cpuinfo; then \
	  $(NATIVE) OPENBLAS_CORETYPE=SkylakeX $(BIN)/python $(COMPUTING); \
	else echo "This processor has no AVX-512: SkylakeX was not tried."; fi
	$(NATIVE) OPENBLAS_CORETYPE=Nehalem $(BIN)/python $(COMPUTING)
	$(NATIVE) NUMBA_CPU_NAME=generic $(BIN)/python $(COMPUTING)
	$(BIN)/python -m pytest -q tests/processors

qemu:
	@command -v qemu-x86_64 >/dev/null || { $(call debian,qemu-user); } || \
	  { echo "qemu-x86_64 (Debian's package qemu-user) is missing and cannot be installed here."; exit 1; }

# Tests that need Salmon: not part of `test`, because PyTorch alone is hundreds of megabytes.
test-salmon: .venv-salmon/.installed
	.venv-salmon/bin/python -m pytest -q tests/salmon

# The browser tests need Chromium. Debian's is installed where that is allowed; where it is not, pytest
# says that they were skipped, and continuous integration fails.
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || { $(call debian,chromium); } || \
	  echo "Chromium is missing and cannot be installed here: browser tests will be skipped."
	@command -v pdftoppm >/dev/null || { $(call debian,poppler-utils); } || \
	  echo "pdftoppm (Debian's package poppler-utils) is missing: printed reports will not be examined."

# Where there is no npm, pytest says that the pages were not validated, and continuous integration fails.
HTML_VALIDATE := build/html-validate/node_modules/html-validate/package.json
html-validate:
	@test -f $(HTML_VALIDATE) || { command -v npm >/dev/null && mkdir -p build/html-validate && \
	  npm install --prefix build/html-validate --silent --no-save --no-package-lock --no-audit --no-fund \
	    --fetch-timeout=60000 --fetch-retries=1 \
	    html-validate@10.17.0; } || \
	  echo "html-validate cannot be installed here (it needs npm): pages will not be validated."

screenshots: .venv/.installed chromium
	$(BIN)/python -m tests.browser.screenshots
	$(BIN)/python -m docs.screenshots.take

pictures: .venv/.installed
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m docs.pictures.smallest_dimension

reference: .venv/.installed
	$(BIN)/python -m docs.reference.make

# Broken links, and pages that are missing from the navigation, are errors.
site: .venv/.installed
	$(BIN)/mkdocs build --strict --quiet
	@echo "Open build/site/index.html"

bench: bench-fit bench-paper bench-answers bench-stops bench-materials bench-salmon bench-compare bench-learner

bench-fit: .venv-bench/.installed
	$(BENCH)/python -m benchmarks.speed.fit

bench-paper: .venv/.installed
	$(BIN)/python -m benchmarks.peers.paper

# One BLAS thread per process: the runs themselves use all cores.
bench-answers: .venv/.installed
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.answers

# STOPS selects: make bench-stops STOPS="--only circle --seeds 4"
bench-stops: .venv/.installed
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.stops $(STOPS)

bench-bayes-factors: .venv/.installed
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.bayes_factors

bench-kinds: .venv/.installed
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.kinds

bench-materials: .venv/.installed
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.materials

bench-forecast: .venv/.installed
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.forecast

# Simulates the studies that forecasts are computed from; run it after a change of the stopping rule.
calibrate-forecast: .venv/.installed
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.forecast --calibrate

bench-salmon: .venv-salmon/.installed
	.venv-salmon/bin/python -m benchmarks.peers.salmon

bench-compare: .venv-bench/.installed
	$(BENCH)/python -m benchmarks.peers.comparison

bench-load: .venv/.installed
	$(BIN)/python -m benchmarks.load.load

bench-monitor: .venv/.installed
	$(BIN)/python -m benchmarks.load.monitor

bench-report: .venv/.installed
	$(BIN)/python -m benchmarks.speed.report

bench-reliability: .venv/.installed
	$(BIN)/python -m benchmarks.reliability.reliability
	$(BIN)/python -m benchmarks.reliability.file_loss

bench-replay: .venv/.installed
	$(BIN)/python -m benchmarks.speed.replay

bench-flags: .venv/.installed
	$(BIN)/python -m benchmarks.flags

bench-pages: .venv/.installed
	$(BIN)/python -m benchmarks.speed.pages

bench-portability: .venv/.installed
	$(BIN)/python -m benchmarks.speed.portability

bench-large: .venv/.installed
	$(BIN)/python -m benchmarks.speed.large

bench-kinds-speed: .venv/.installed
	$(BIN)/python -m benchmarks.speed.kinds

bench-learner: .venv/.installed
	$(BIN)/python -m benchmarks.speed.learner

clean:
	rm -rf .venv .venv-bench .venv-compare .venv-salmon .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
