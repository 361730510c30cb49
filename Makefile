# Everything sets itself up: a fresh machine needs git, make and python3 with venv.

VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
PYTEST := $(BIN)/pytest
# More than there are cores: the tests of the control plane wait most of the time.
WORKERS ?= 4

DOCKER ?= docker
KUBECTL ?= kubectl
DOCKER_REGISTRY ?=
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
IMAGE := $(if $(DOCKER_REGISTRY),$(DOCKER_REGISTRY)/)longshore:$(VERSION)
AGENTS ?= safe
OUR_IMAGE := sed -e 's|image: longshore:.*|image: $(IMAGE)|'

.DEFAULT_GOAL := help
# The tests start hundreds of short processes, which take twice as long without compiled modules.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help demo test test-fast test-long lint format proto bench-client bench-throughput bench-static bench-podsets bench-decisions bench-scale bench-unschedulable bench-extender build clean docker-build docker-push install uninstall deploy undeploy deploy-apart undeploy-apart deploy-static undeploy-static deploy-extender undeploy-extender

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

demo: $(VENV)/.run ## Schedule pods on a simulated cluster, in under a minute
	$(BIN)/longshore demo

test: $(VENV)/.dev ## All tests, the real control plane included (builds it the first time)
	$(BIN)/longshore dev build
	$(PYTEST) -n $(WORKERS) --durations 20

test-fast: $(VENV)/.dev ## The tests that need no control plane
	$(PYTEST) -n 2 --durations 20 -m "not control_plane"

test-long: $(VENV)/.dev ## All tests with their full counts
	$(BIN)/longshore dev build
	LONGSHORE_LONG=1 $(PYTEST) --timeout 1800 -n $(WORKERS) --durations 20

lint: $(VENV)/.dev ## Formatting, lint, types and layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev ## Format the code and mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench-client: $(VENV)/.bench ## The client beside the official one and a bare HTTP client
	$(BIN)/python -m bench.client

bench-throughput: $(VENV)/.dev ## Pods a second beside kube-scheduler's (ARGS="--nodes 5000 --pods 10000")
	$(BIN)/python -m bench.throughput $(ARGS)

bench-static: $(VENV)/.dev ## Pinned pods a second of `longshore static`, beside what the API server takes
	$(BIN)/python -m bench.static $(ARGS)

bench-podsets: $(VENV)/.dev ## A pod set from its trigger to its last bind, and what held sets cost
	$(BIN)/python -m bench.podsets $(ARGS)

bench-decisions: $(VENV)/.dev ## Decisions a second in memory, by workload and number of nodes
	$(BIN)/python -m bench.decisions $(ARGS)

bench-scale: $(VENV)/.dev ## Memory and time to the first bind with 5,000 nodes and 100,000 pods
	$(BIN)/python -m bench.scale $(ARGS)

bench-unschedulable: $(VENV)/.dev ## Pods a second beside 10,000 pods of higher priority that fit nowhere
	$(BIN)/python -m bench.unschedulable $(ARGS)

bench-extender: $(VENV)/.dev ## What agents cost behind kube-scheduler, and as plugins
	$(BIN)/python -m bench.extender $(ARGS)

proto: $(VENV)/.dev ## Generate the protobuf code from proto/
	$(UV) sync --frozen --inexact --all-extras --group proto
	$(BIN)/python -m grpc_tools.protoc -Iproto --python_out=src/longshore/kube/_pb \
		--pyi_out=src/longshore/kube/_pb proto/kubernetes.proto
	$(BIN)/python -m grpc_tools.protoc -Iproto --python_out=src/longshore/podset/_pb \
		--pyi_out=src/longshore/podset/_pb proto/planner.proto

build: $(VENV)/.dev ## Build the wheel and the source distribution into dist/
	$(UV) build

docker-build: ## Build the image, named after DOCKER_REGISTRY if that is set
	$(DOCKER) build --tag $(IMAGE) .

docker-push: ## Push the image
	$(DOCKER) push $(IMAGE)

install: ## Bring the kinds of pod sets into the cluster, and the service account of the scheduler
	$(KUBECTL) apply -f deploy/crds -f deploy/scheduler.yaml

uninstall: ## Take the kinds of pod sets out of the cluster, and with them every trigger and plan
	$(KUBECTL) delete --ignore-not-found -f deploy/crds

deploy: install ## Run the scheduler in the cluster, from the image
	$(KUBECTL) apply -f deploy/triggers.yaml -f deploy/configmap.yaml
	$(OUR_IMAGE) deploy/deployment.yaml | $(KUBECTL) apply -f -

undeploy: ## Take it out of the cluster again; triggers and plans stay, `uninstall` takes those
	$(KUBECTL) delete --ignore-not-found -f deploy/deployment.yaml -f deploy/configmap.yaml -f deploy/triggers.yaml \
		-f deploy/scheduler.yaml

deploy-apart: install ## The same in three parts: the scheduler, the trigger controller and a planner
	$(KUBECTL) apply -f deploy/configmap.yaml
	$(OUR_IMAGE) deploy/controller.yaml | $(KUBECTL) apply -f -
	$(OUR_IMAGE) deploy/planner.yaml | $(KUBECTL) apply -f -
	$(OUR_IMAGE) -e 's|--controllers=triggers|--controllers=none|' deploy/deployment.yaml | $(KUBECTL) apply -f -
	$(KUBECTL) delete --ignore-not-found -f deploy/triggers.yaml

undeploy-apart: undeploy ## Take the three out again, with the namespace planner-system and all that is in it
	$(KUBECTL) delete --ignore-not-found -f deploy/controller.yaml -f deploy/planner.yaml

deploy-static: ## Run the static scheduler in the cluster, from the image
	$(OUR_IMAGE) deploy/static.yaml | $(KUBECTL) apply -f -

undeploy-static: ## Take the static scheduler out of the cluster again
	$(KUBECTL) delete --ignore-not-found -f deploy/static.yaml

deploy-extender: ## Run kube-scheduler with agents as my-scheduler (AGENTS=safe.congestion, or any of deploy/extender)
	$(KUBECTL) apply -f deploy/extender/service-account.yaml
	$(OUR_IMAGE) deploy/extender/extender.$(AGENTS).yaml | $(KUBECTL) apply -f -

undeploy-extender: ## Take my-scheduler out of the cluster again, whatever its agents
	$(KUBECTL) delete --ignore-not-found -f deploy/extender/extender.safe.yaml -f deploy/extender/service-account.yaml

clean: ## Remove what was installed and built here
	rm -rf $(VENV) dist

$(UV):
	python3 -m venv $(VENV)
	$(BIN)/python -m pip install --quiet uv

# One stamp for each set of dependencies; --inexact leaves what another one has installed.
$(VENV)/.run: pyproject.toml uv.lock | $(UV)
	$(UV) sync --frozen --inexact --no-dev
	touch $@

$(VENV)/.dev: pyproject.toml uv.lock | $(UV)
	$(UV) sync --frozen --inexact --all-extras
	touch $@

$(VENV)/.bench: pyproject.toml uv.lock | $(UV)
	$(UV) sync --frozen --inexact --all-extras --group bench
	touch $@
