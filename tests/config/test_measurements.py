"""The settings of measurements, in the configuration and in a separate file."""

from pathlib import Path

import pytest
from tests.config.configurations import configuration, problems

from longshore.config import InvalidConfiguration, MeasurementSettings, load_measurements
from longshore.errors import UserError

EVERYTHING = """\
provider: prometheus
address: https://prometheus.example.org/select/
interval: 15s
maxAge: 2m
settle: 0s
window: 10m
queries:
  cpu/mean: instance:node_cpu:rate5m * 1000
  cpu/time: timestamp(instance:node_cpu:rate5m)
  cpu/std:
nodeLabel: node
nodeFrom: internalIP
nodePattern: ([^.]+).*
caFile: /etc/ca.pem
tokenFile: /etc/token
headers: {X-Scope-OrgID: team}
"""
SETTINGS = MeasurementSettings(
    provider="prometheus",
    address="https://prometheus.example.org/select",
    interval=15.0,
    max_age=120.0,
    settle=0.0,
    window=600.0,
    queries={
        "cpu/mean": "instance:node_cpu:rate5m * 1000",
        "cpu/time": "timestamp(instance:node_cpu:rate5m)",
        "cpu/std": "",
    },
    node_label="node",
    node_from="internalIP",
    node_pattern="([^.]+).*",
    ca_file="/etc/ca.pem",
    token_file="/etc/token",
    headers={"X-Scope-OrgID": "team"},
)


def test_all_keys_of_measurements_are_read() -> None:
    body = "longshore:\n  measurements:\n" + "".join(f"    {line}\n" for line in EVERYTHING.splitlines())
    assert configuration(body).longshore.measurements == SETTINGS


def test_a_measurements_file_has_the_same_keys(tmp_path: Path) -> None:
    file = tmp_path / "measurements.yaml"
    file.write_text(EVERYTHING)
    assert load_measurements(file) == SETTINGS


def test_a_configuration_without_measurements_has_none() -> None:
    assert configuration("").longshore.measurements is None


def test_an_empty_key_measurements_means_annotations() -> None:
    assert configuration("longshore: {measurements: {}}").longshore.measurements == MeasurementSettings()


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (
            "provider: prom",
            "provider: must be annotations, prometheus, metrics-server or load-watcher, "
            'found the text "prom"',
        ),
        (
            "provider: prometheus",
            "address: missing; it must be the address of the provider, http://HOST:PORT or https://HOST:PORT",
        ),
        (
            "provider: load-watcher, address: localhost:2020",
            "address: must be the address of the provider, http://HOST:PORT or https://HOST:PORT, "
            'found "localhost:2020"',
        ),
        (
            "provider: load-watcher, address: 'http://x:port'",
            "address: must be the address of the provider, http://HOST:PORT or https://HOST:PORT, "
            'found "http://x:port"',
        ),
        (
            "address: http://x",
            "address: is only for prometheus or load-watcher, not for annotations; remove it",
        ),
        (
            "provider: metrics-server, queries: {cpu/mean: up}",
            "queries: is only for prometheus, not for metrics-server; remove it",
        ),
        ("interval: 0s", "interval: must be greater than 0s"),
        ("interval: 30", "interval: must be a duration such as 15s or 1m30s, found the number 30"),
        ("maxAge: 20s", "maxAge: must be greater than interval, 30s"),
        ("settle: -1s", "settle: must not be negative"),
        ("nodelabel: x", 'nodelabel: unknown field; did you mean "nodeLabel"?'),
        (
            "PROMETHEUS, queries: {cpu/maen: up}",
            'queries: there is no measure "cpu/maen"; did you mean "cpu/mean"?',
        ),
        (
            "PROMETHEUS, queries: {cpu/mean: 3}",
            "queries: the query of cpu/mean must be a text, found the number 3",
        ),
        ("PROMETHEUS, nodeLabel: a-b", 'nodeLabel: must be the name of a label, found "a-b"'),
        ("PROMETHEUS, nodeFrom: hostname", 'nodeFrom: must be name or internalIP, found the text "hostname"'),
        (
            "PROMETHEUS, nodePattern: '(a'",
            "nodePattern: must be a regular expression: missing ), unterminated subpattern at position 0",
        ),
        (
            "PROMETHEUS, nodePattern: '(a)(b)'",
            "nodePattern: must have one group (…) that identifies the node, found 2",
        ),
        (
            "PROMETHEUS, caFile: /x, insecureSkipVerify: true",
            "insecureSkipVerify: not allowed together with caFile; remove one of them",
        ),
        ("PROMETHEUS, headers: {'a b': c}", 'headers: "a b" is not a valid name of a header'),
        (
            'PROMETHEUS, headers: {a: "b\\r\\nc: d"}',
            'headers: a must be a text of printable ASCII, found the text "b\\r\\nc: d"',
        ),
        (
            "PROMETHEUS, tokenFile: /x, headers: {authorization: y}",
            "headers: tokenFile already sets Authorization; keep one of them",
        ),
    ],
)
def test_mistakes_are_reported_with_their_path(settings: str, problem: str) -> None:
    settings = settings.replace("PROMETHEUS", "provider: prometheus, address: http://x")
    assert problems(f"longshore: {{measurements: {{{settings}}}}}") == (f"longshore.measurements.{problem}",)


def test_all_mistakes_in_a_measurements_file_are_reported_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text("provider: prometheus\ninterval: 0s\n")
    with pytest.raises(InvalidConfiguration) as failure:
        load_measurements(file)
    assert str(failure.value) == (
        f"{file}: address: missing; it must be the address of the provider, "
        "http://HOST:PORT or https://HOST:PORT; "
        "interval: must be greater than 0s"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty; it must have at least a provider"),
        ("- a", "must be a mapping of settings, found a list"),
        ("a: [", "line 1, column 5: not YAML: "),
    ],
)
def test_an_invalid_measurements_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(text)
    with pytest.raises(InvalidConfiguration) as failure:
        load_measurements(file)
    assert str(failure.value).startswith(f"{file}: {message}")


def test_a_missing_file_is_reported() -> None:
    with pytest.raises(
        UserError, match=r"^cannot read the configuration /no/such: No such file or directory$"
    ):
        load_measurements("/no/such")


@pytest.mark.parametrize(
    ("said", "settle"), [("", 900.0), (", window: 5m", 300.0), (", window: 5m, settle: 30s", 30.0)]
)
def test_settle_is_as_long_as_the_window_unless_it_is_set(tmp_path: Path, said: str, settle: float) -> None:
    file = tmp_path / "measurements.yaml"
    file.write_text(f"{{provider: metrics-server{said}}}")
    assert load_measurements(file).settle == settle
