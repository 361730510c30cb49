"""Where measured load comes from: Prometheus, metrics-server, load-watcher, or annotations of nodes."""
