# The only front door. Every target sets up what it needs: `make demo` and `make test` work on a fresh machine.
SHELL := /bin/bash
.DEFAULT_GOAL := help
# npm brings the project's own Node 26; it must win over the machine's.
export PATH := $(CURDIR)/node_modules/.bin:$(PATH)

.PHONY: help demo test check unit kernel e2e long laws e2e-cluster dev-cluster soak soak-alone simulate bench build chart image dev fmt packages packages-browser no-stages gen

help: ## list the targets
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

# How long what comes before it takes on this machine is a part of what the demo prints at its end.
demo: export TKE_ENI_STAGES := $(CURDIR)/dist/stages
demo: no-stages packages build ## the whole system on this machine, a page by two load balancers, four things that go wrong and a Pod that moves: see it recover (about a minute)
	@node test/e2e/demo.ts

test: packages packages-browser node_modules/.installed ## everything that needs no Kubernetes binaries: checks, unit, kernel, end to end
	@node tools/run-tests.ts check unit kernel e2e --without=cluster

check: node_modules/.installed ## format, lint, layers, types, docs; no test
	@node tools/run-tests.ts check

unit: node_modules/.installed ## tests that need neither root nor kernel
	@node tools/run-tests.ts unit

kernel: packages node_modules/.installed ## netlink, sysctl and data plane against the real kernel, in network namespaces
	@node tools/run-tests.ts kernel

e2e: packages node_modules/.installed ## packaged executables and agent in a small VPC of network namespaces
	@node tools/run-tests.ts e2e

long: packages node_modules/.installed ## what takes longest of unit and e2e: whole tables of cases, every crash point, all states of the protocol; WITHIN=20 leaves out files that would begin after 20 minutes
	@node tools/run-tests.ts long $(if $(WITHIN),--within=$(WITHIN))

laws: packages node_modules/.installed ## all laws with ten times the runs; SEED=random draws another seed, WITHIN=20 as with long
	@node tools/run-tests.ts laws $(if $(WITHIN),--within=$(WITHIN))

e2e-cluster: packages-cluster build ## a real cluster of kubelets, deployed into and broken; KUBE_ASSETS=<folder with Kubernetes' server binaries>
	@node tools/run-tests.ts cluster

dev-cluster: packages-cluster build ## the same cluster, kept until Ctrl-C, to look around in with kubectl
	@node test/cluster/main.ts

soak: soak-alone simulate ## 14,000 Pods come and go amid faults and kills, then the audit, new seeds of the simulation, the suite long, and all laws with ten times the runs on a new seed; SEED=1 or SOAK="--seed 1" repeats, WITHIN=20 leaves out files of long and laws that would begin after 20 minutes each
	@SEED=$${SEED:-random} node tools/run-tests.ts long laws $(if $(WITHIN),--within=$(WITHIN))

soak-alone: packages build ## the same Pods, faults and audit without what follows
	@node test/soak/main.ts $(SOAK)

# Without WITHIN it takes ten minutes, with it a third of that.
simulate: node_modules/.installed ## new seeds of the simulation for WITHIN=5 / 3 minutes, or ten; a failing script is shrunk; SEED=1 chooses the first
	@node test/simulation/main.ts --shrink --within=$(shell awk -v minutes='$(or $(WITHIN),30)' 'BEGIN { print (minutes + 0 > 0 ? minutes / 3 : minutes) }')

bench: packages build ## ours and the peers side by side, four minutes; tables and bench/results.json (docs/testing.md: what runs by name)
	@node bench/main.ts

build: node_modules/.installed ## package the executables into dist/
	@tools/timed.sh "executables: make build" node tools/build.ts

chart: node_modules/.installed ## the Helm chart in dist/helm/tke-eni, made of the manifests
	@node tools/chart.ts

image: packages node_modules/.installed chart ## container images as tar files in dist/images, without Docker or a registry; and the chart
	@node tools/image.ts $(IMAGE)

dev: node_modules/.installed ## type-check and unit tests, again on each change
	@tsc --noEmit --watch --preserveWatchOutput -p . & trap "kill $$!" EXIT; ava --watch 'test/**/*.test.ts' '!test/{kernel,e2e,vpc,demo}/**' '!test/**/*.long.test.ts'

fmt: node_modules/.installed ## format and mend what the linter can
	@biome check --write .

gen: node_modules/.installed ## write again the docs, definitions and message tables that are made of the source
	@node tools/gen-docs.ts

no-stages:
	@mkdir -p dist && rm -f dist/stages

packages:
	@tools/timed.sh "Debian packages" tools/require-packages.sh

# The tests that look at a page are skipped, and counted, where there is no browser to be had.
packages-browser: packages
	@tools/require-packages.sh browser || echo "no browser could be installed: its tests will be skipped" >&2

packages-cluster: node_modules/.installed
	@node test/cluster/check-assets.ts
	@tools/require-packages.sh cluster

node_modules/.installed: package.json package-lock.json
	tools/timed.sh "npm ci" npm ci --no-audit --no-fund --loglevel=error
	@rm -f node_modules/.bin/nft # a file tracer of that name; nft is nftables' here
	@touch $@
