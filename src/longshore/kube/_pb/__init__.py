"""Generated from proto/kubernetes.proto by `make proto`."""
