# Each target creates .venv by itself. A fresh machine needs only git, make and python3 with venv.

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

format: $(VENV)/.dev ## Format the code and fix what can be fixed automatically
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench-client: $(VENV)/.bench ## Compare the client with the official one and with a bare HTTP client
	$(BIN)/python -m bench.client

bench-throughput: $(VENV)/.dev ## Pods per second, compared with kube-scheduler (ARGS="--nodes 5000 --pods 10000")
	$(BIN)/python -m bench.throughput $(ARGS)

bench-static: $(VENV)/.dev ## Pinned pods per second of `longshore static`, compared with a client that only writes
	$(BIN)/python -m bench.static $(ARGS)

bench-podsets: $(VENV)/.dev ## Time of a pod set from its trigger to its last bind, and the cost of held sets
	$(BIN)/python -m bench.podsets $(ARGS)

bench-decisions: $(VENV)/.dev ## Decisions per second in memory, by workload and number of nodes
	$(BIN)/python -m bench.decisions $(ARGS)

bench-scale: $(VENV)/.dev ## Memory and time to the first bind with 5,000 nodes and 100,000 pods
	$(BIN)/python -m bench.scale $(ARGS)

bench-unschedulable: $(VENV)/.dev ## Pods per second while 10,000 pods of higher priority fit nowhere
	$(BIN)/python -m bench.unschedulable $(ARGS)

bench-extender: $(VENV)/.dev ## The cost of agents as an extender of kube-scheduler, and as plugins
	$(BIN)/python -m bench.extender $(ARGS)

proto: $(VENV)/.dev ## Generate the protobuf code from proto/
	$(UV) sync --frozen --inexact --all-extras --group proto
	$(BIN)/python -m grpc_tools.protoc -Iproto --python_out=src/longshore/kube/_pb \
		--pyi_out=src/longshore/kube/_pb proto/kubernetes.proto
	$(BIN)/python -m grpc_tools.protoc -Iproto --python_out=src/longshore/podset/_pb \
		--pyi_out=src/longshore/podset/_pb proto/planner.proto

build: $(VENV)/.dev ## Build the wheel and the source distribution into dist/
	$(UV) build

docker-build: ## Build the image; DOCKER_REGISTRY, if set, is part of its name
	$(DOCKER) build --tag $(IMAGE) .

docker-push: ## Push the image
	$(DOCKER) push $(IMAGE)

install: ## Install the custom resource definitions of pod sets, and the service account of the scheduler
	$(KUBECTL) apply -f deploy/crds -f deploy/scheduler.yaml

uninstall: ## Remove the custom resource definitions of pod sets, with all triggers and plans
	$(KUBECTL) delete --ignore-not-found -f deploy/crds

deploy: install ## Run the scheduler in the cluster, from the image, with triggers and the built-in planner
	$(KUBECTL) apply -f deploy/triggers.yaml -f deploy/configmap.yaml
	$(OUR_IMAGE) deploy/deployment.yaml | $(KUBECTL) apply -f -

undeploy: ## Remove the scheduler from the cluster; triggers and plans stay, `uninstall` removes them
	$(KUBECTL) delete --ignore-not-found -f deploy/deployment.yaml -f deploy/configmap.yaml -f deploy/triggers.yaml \
		-f deploy/scheduler.yaml

deploy-apart: install ## Run the scheduler, the trigger controller and a planner as three deployments
	$(KUBECTL) apply -f deploy/configmap.yaml
	$(OUR_IMAGE) deploy/controller.yaml | $(KUBECTL) apply -f -
	$(OUR_IMAGE) deploy/planner.yaml | $(KUBECTL) apply -f -
	$(OUR_IMAGE) -e 's|--controllers=triggers|--controllers=none|' deploy/deployment.yaml | $(KUBECTL) apply -f -
	$(KUBECTL) delete --ignore-not-found -f deploy/triggers.yaml

undeploy-apart: undeploy ## Remove these three, and the namespace planner-system with everything in it
	$(KUBECTL) delete --ignore-not-found -f deploy/controller.yaml -f deploy/planner.yaml

deploy-static: ## Run the static scheduler in the cluster, from the image
	$(OUR_IMAGE) deploy/static.yaml | $(KUBECTL) apply -f -

undeploy-static: ## Remove the static scheduler from the cluster
	$(KUBECTL) delete --ignore-not-found -f deploy/static.yaml

deploy-extender: ## Run kube-scheduler with agents as my-scheduler (AGENTS=safe.congestion, or others in deploy/extender)
	$(KUBECTL) apply -f deploy/extender/service-account.yaml
	$(OUR_IMAGE) deploy/extender/extender.$(AGENTS).yaml | $(KUBECTL) apply -f -

undeploy-extender: ## Remove my-scheduler from the cluster, with any agents
	$(KUBECTL) delete --ignore-not-found -f deploy/extender/extender.safe.yaml -f deploy/extender/service-account.yaml

clean: ## Remove .venv and dist
	rm -rf $(VENV) dist

$(UV):
	python3 -m venv $(VENV)
	$(BIN)/python -m pip install --quiet uv

# One stamp file for each set of dependencies; --inexact keeps what another set has installed.
$(VENV)/.run: pyproject.toml uv.lock | $(UV)
	$(UV) sync --frozen --inexact --no-dev
	touch $@

$(VENV)/.dev: pyproject.toml uv.lock | $(UV)
	$(UV) sync --frozen --inexact --all-extras
	touch $@

$(VENV)/.bench: pyproject.toml uv.lock | $(UV)
	$(UV) sync --frozen --inexact --all-extras --group bench
	touch $@
