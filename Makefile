# Everything sets itself up: a fresh machine needs git, make and python3 with venv.

VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
PYTEST := $(BIN)/pytest

DOCKER ?= docker
KUBECTL ?= kubectl
DOCKER_REGISTRY ?=
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
IMAGE := $(if $(DOCKER_REGISTRY),$(DOCKER_REGISTRY)/)longshore:$(VERSION)

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast test-long lint format proto bench-client bench-throughput bench-decisions bench-scale build clean docker-build docker-push install deploy undeploy

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

demo: $(VENV)/.run ## Schedule pods on a simulated cluster, in under a minute
	$(BIN)/longshore demo

test: $(VENV)/.dev ## All tests, the real control plane included (builds it the first time)
	$(PYTEST) -n 2 -m "not control_plane"
	$(BIN)/longshore dev build
	$(PYTEST) -m control_plane

test-fast: $(VENV)/.dev ## The tests that need no control plane
	$(PYTEST) -n 2 -m "not control_plane"

test-long: $(VENV)/.dev ## All tests with their full counts
	$(BIN)/longshore dev build
	LONGSHORE_LONG=1 $(PYTEST) --timeout 1800

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

bench-decisions: $(VENV)/.dev ## Decisions a second in memory, by workload and number of nodes
	$(BIN)/python -m bench.decisions $(ARGS)

bench-scale: $(VENV)/.dev ## Memory and time to the first bind with 5,000 nodes and 100,000 pods
	$(BIN)/python -m bench.scale $(ARGS)

proto: $(VENV)/.dev ## Generate the protobuf code from proto/
	$(UV) sync --frozen --inexact --all-extras --group proto
	$(BIN)/python -m grpc_tools.protoc -Iproto --python_out=src/longshore/kube/_pb \
		--pyi_out=src/longshore/kube/_pb proto/kubernetes.proto

build: $(VENV)/.dev ## Build the wheel and the source distribution into dist/
	$(UV) build

docker-build: ## Build the image, named after DOCKER_REGISTRY if that is set
	$(DOCKER) build --tag $(IMAGE) .

docker-push: ## Push the image
	$(DOCKER) push $(IMAGE)

install: ## Create the service account in the cluster, with all that it may do
	$(KUBECTL) apply -f deploy/scheduler.yaml

deploy: install ## Run the scheduler in the cluster, from the image
	$(KUBECTL) apply -f deploy/configmap.yaml
	sed 's|image: longshore:.*|image: $(IMAGE)|' deploy/deployment.yaml | $(KUBECTL) apply -f -

undeploy: ## Take all of it out of the cluster again
	$(KUBECTL) delete --ignore-not-found -f deploy/deployment.yaml -f deploy/configmap.yaml -f deploy/scheduler.yaml

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
