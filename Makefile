# Thin on purpose: every line below also works by hand.
#
#   make lab                 set up, then JupyterLab at lesson 00          make lab PORT=8890
#   make test                set up, then everything CI runs
#   make lab PYTHON=python3.12      the same with another Python (3.11 to 3.13)

PYTHON ?= python3
# A Python that you named yourself replaces a .venv that was made with another one; the default keeps it.
BOOTSTRAP = $(PYTHON) scripts/bootstrap.py$(if $(filter file default,$(origin PYTHON)),, --this-python)
# nbgrader starts `alembic` by name. Not exported for all: then `python3` above would be the one in .venv.
WITH_VENV = PATH="$$PWD/.venv/bin:$$PATH"

.PHONY: lab test check bench exercises lock clean

lab:
	@$(BOOTSTRAP)
	@$(WITH_VENV) .venv/bin/course lab$(if $(PORT), --port $(PORT))

test:
	@$(BOOTSTRAP) --dev
	.venv/bin/python scripts/ensure_chromium.py
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy sandbox
	.venv/bin/lint-imports
	$(WITH_VENV) .venv/bin/python -m pytest tests -n 2 --dist loadfile
	$(WITH_VENV) .venv/bin/python -m pytest --nbval solutions --nbval-sanitize-with tests/nbval_sanitize.cfg --nbval-cell-timeout 120 -p no:cacheprovider

# Run every lesson and solution, without the tests.
check:
	@$(BOOTSTRAP)
	$(WITH_VENV) .venv/bin/course check

bench:
	@$(BOOTSTRAP) --dev
	$(WITH_VENV) .venv/bin/python -m tests.bench

# Generate exercises/ from solutions/.
exercises:
	@$(BOOTSTRAP)
	$(WITH_VENV) .venv/bin/course exercises

# The newest versions that pyproject.toml allows, into constraints.txt.
lock:
	$(PYTHON) scripts/lock.py

# Everything that the lines above made, except your own work.
clean:
	rm -rf .venv .venv-setup.log build .pytest_cache .ruff_cache .mypy_cache .import_linter_cache *.egg-info
