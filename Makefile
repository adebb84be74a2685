# Every target makes .venv from nothing when it is missing and reuses it when it is there.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo gallery test quick check format docs browser clean

demo: .venv/ready
	$(BIN)/python examples/demo.py

# Every application of the gallery at a small budget, with its picture in demo/gallery.
gallery: .venv/gallery
	$(BIN)/python -m nestbo.gallery

.venv/gallery: .venv/ready
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[gallery]'
	touch $@

test: .venv/ready
	$(BIN)/python -m pytest -n 2

# While editing: the first case of every test, without those that start processes.
quick: .venv/ready
	$(BIN)/python -m pytest -n 2 --quick

check: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy --strict --follow-imports silent tests/typed/user.py
	$(BIN)/codespell
	$(BIN)/python docs/sentences.py
	$(BIN)/python -m pytest -n 2

format: .venv/ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# site/index.html; python -m http.server -d site serves it, with a search.
docs: .venv/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# All comparisons of the documentation, in as many calls as it takes; RUNS is where they stand, DEVICE is cpu or cuda.
# make evidence OPTIONS=--plan only says how long it takes.
RUNS ?= runs
DEVICE ?= cpu
evidence: .venv/ready
	$(BIN)/python benchmarks/rivals.py evidence --out $(RUNS) --device $(DEVICE) --pages docs $(OPTIONS)

.venv/docs: .venv/ready
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	touch $@

# The tests of the report look at it in Debian's Chromium; without it, or without the right to install it, they skip.
browser:
	command -v chromedriver || (apt-get -qq -o APT::Sandbox::User=root update && \
	DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends --yes chromium chromium-driver)

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv demo dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
