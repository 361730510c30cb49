"""Pods with as many fields as those of a typical web service, from twenty templates.

The API server sets the defaults, as in a real cluster. The status is what a kubelet writes.
"""

from typing import Any

TEMPLATES = 20


def pod(index: int) -> dict[str, Any]:
    """Return the pod with this number, as a controller creates it."""
    template = index % TEMPLATES
    app = f"service-{template}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{app}-7d9c5b8f6-{index:05d}",
            "labels": {
                "app.kubernetes.io/name": app,
                "app.kubernetes.io/instance": f"{app}-prod",
                "app.kubernetes.io/version": f"1.{template}.0",
                "app.kubernetes.io/managed-by": "Helm",
                "pod-template-hash": "7d9c5b8f6",
            },
            "annotations": {
                "prometheus.io/scrape": "true",
                "prometheus.io/port": "9090",
                "checksum/config": f"{template:064x}",
                "kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z",
            },
        },
        "spec": {
            "schedulerName": "none",
            "priority": 0,
            "terminationGracePeriodSeconds": 30,
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "containers": [
                _container("server", app, template, cpu="500m", memory="512Mi", port=8080),
                _container("sidecar", "mesh-proxy", template, cpu="100m", memory="128Mi", port=15090),
            ],
            "volumes": [
                {"name": "config", "configMap": {"name": f"{app}-config"}},
                {"name": "cache", "emptyDir": {}},
            ],
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": "topology.kubernetes.io/zone",
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": {"app.kubernetes.io/name": app}},
                }
            ],
            "affinity": {
                "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "weight": 100,
                            "podAffinityTerm": {
                                "labelSelector": {"matchLabels": {"app.kubernetes.io/name": app}},
                                "topologyKey": "kubernetes.io/hostname",
                            },
                        }
                    ]
                }
            },
        },
    }


def _container(name: str, image: str, template: int, *, cpu: str, memory: str, port: int) -> dict[str, Any]:
    probe = {"httpGet": {"path": "/healthz", "port": port}, "periodSeconds": 10, "failureThreshold": 3}
    return {
        "name": name,
        "image": f"registry.example.com/team/{image}:1.{template}.0",
        "imagePullPolicy": "IfNotPresent",
        "args": ["--config=/etc/config/config.yaml", "--log-level=info", f"--shard={template}"],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            {"name": "LOG_FORMAT", "value": "json"},
            {"name": "TEMPLATE", "value": str(template)},
        ],
        "ports": [{"name": "http", "containerPort": port, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}},
        "livenessProbe": probe,
        "readinessProbe": probe,
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/config", "readOnly": True},
            {"name": "cache", "mountPath": "/var/cache/app"},
        ],
    }


def running_status(index: int) -> dict[str, Any]:
    """Return the status that the kubelet writes when the pod runs."""
    started = "2026-01-01T00:00:05Z"
    address = f"10.{index >> 16 & 255}.{index >> 8 & 255}.{index & 255}"
    template = index % TEMPLATES
    conditions = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"]
    images = (("server", f"service-{template}"), ("sidecar", "mesh-proxy"))
    return {
        "status": {
            "phase": "Running",
            "hostIP": "192.0.2.1",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "startTime": started,
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": started} for kind in conditions
            ],
            "containerStatuses": [
                {
                    "name": name,
                    "image": f"registry.example.com/team/{image}:1.{template}.0",
                    "imageID": f"registry.example.com/team/{image}@sha256:{template:064x}",
                    "containerID": f"containerd://{index:064x}",
                    "ready": True,
                    "started": True,
                    "restartCount": 0,
                    "lastState": {},
                    "state": {"running": {"startedAt": started}},
                }
                for name, image in images
            ],
        }
    }
