"""HTTP extenders in the configuration file."""

import pytest
from tests.config.configurations import configuration, loaded, problems

from longshore.config import ManagedResource, NodeResourcesFitArgs, Webhook, WebhookTLS


def test_all_fields_of_an_extender_are_read() -> None:
    (webhook,) = configuration(
        """
        extenders:
        - urlPrefix: https://extender:8443/v1
          filterVerb: filter
          preemptVerb: preempt
          prioritizeVerb: prioritize
          bindVerb: bind
          weight: 5
          enableHTTPS: true
          tlsConfig:
            serverName: extender
            certFile: /etc/tls/client.crt
            keyData: aGVsbG8=
            caFile: /etc/tls/ca.crt
          httpTimeout: 100ms
          nodeCacheCapable: true
          managedResources:
          - name: example.com/gpu
            ignoredByScheduler: true
          - name: example.com/nic
          ignorable: true
        """
    ).webhooks
    assert webhook == Webhook(
        url_prefix="https://extender:8443/v1",
        filter_verb="filter",
        preempt_verb="preempt",
        prioritize_verb="prioritize",
        bind_verb="bind",
        weight=5,
        enable_https=True,
        tls_config=WebhookTLS(
            server_name="extender",
            cert_file="/etc/tls/client.crt",
            key_data=b"hello",
            ca_file="/etc/tls/ca.crt",
        ),
        http_timeout=0.1,
        node_cache_capable=True,
        managed_resources=(
            ManagedResource("example.com/gpu", ignored_by_scheduler=True),
            ManagedResource("example.com/nic"),
        ),
        ignorable=True,
    )


@pytest.mark.parametrize("timeout", ["", ", httpTimeout: 0s", ", httpTimeout: null"])
def test_the_default_timeout_of_an_extender_is_five_seconds(timeout: str) -> None:
    (webhook,) = configuration(f"extenders: [{{urlPrefix: http://x, filterVerb: f{timeout}}}]").webhooks
    assert webhook == Webhook(url_prefix="http://x", filter_verb="f", http_timeout=5.0)


def test_ignorable_extenders_are_called_last() -> None:
    webhooks = configuration(
        "extenders: [{urlPrefix: http://a, ignorable: true}, {urlPrefix: http://b}, {urlPrefix: http://c}]"
    ).webhooks
    assert [webhook.url_prefix for webhook in webhooks] == ["http://b", "http://c", "http://a"]


def test_resources_managed_by_an_extender_are_ignored_by_the_fit_filter() -> None:
    managed = "managedResources: [{name: example.com/gpu, ignoredByScheduler: true}, {name: example.com/nic}]"
    result = loaded(f"extenders: [{{urlPrefix: http://a, {managed}}}]")
    fit = result.configuration.profiles[0].args["NodeResourcesFit"]
    assert fit == NodeResourcesFitArgs(ignored_resources=("example.com/gpu",))
    assert result.warnings == ()


def test_resources_managed_by_an_extender_replace_the_ignored_resources_of_the_filter() -> None:
    result = loaded(
        """
        extenders:
        - urlPrefix: http://a
          managedResources: [{name: example.com/gpu, ignoredByScheduler: true}]
        profiles:
        - pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [example.com/nic]}}]
        """
    )
    fit = result.configuration.profiles[0].args["NodeResourcesFit"]
    assert fit == NodeResourcesFitArgs(ignored_resources=("example.com/gpu",))
    assert result.warnings == (
        "profiles[0].pluginConfig: "
        "the resources that extenders manage replace the ignoredResources of NodeResourcesFit",
    )


@pytest.mark.parametrize(
    ("webhook", "problem"),
    [
        (
            "filterVerb: f",
            "urlPrefix: missing; it must be the address of the extender, http://… or https://…",
        ),
        ("urlPrefix: x:80", 'urlPrefix: must begin with http:// or https://, found "x:80"'),
        (
            "urlPrefix: http://x, prioritizeVerb: p",
            "weight: missing; an extender with a prioritizeVerb needs a weight of at least 1",
        ),
        (
            "urlPrefix: http://x, prioritizeVerb: p, weight: 0",
            "weight: must be a whole number of at least 1, found the number 0",
        ),
        (
            "urlPrefix: http://x, httpTimeout: -1s",
            "httpTimeout: must not be negative; leave it out for 5s",
        ),
        (
            "urlPrefix: http://x, httpTimeout: 30",
            "httpTimeout: must be a duration such as 15s or 1m30s, found the number 30",
        ),
        (
            "urlPrefix: http://x, tlsConfig: {insecure: true, caFile: /ca}",
            "tlsConfig.insecure: not allowed together with a certificate authority; remove one of them",
        ),
        (
            "urlPrefix: http://x, tlsConfig: {certFile: /cert}",
            "tlsConfig: a client certificate and its key are needed together",
        ),
        (
            "urlPrefix: http://x, tlsConfig: {caData: hello!}",
            "tlsConfig.caData: must be base64; write it with `base64 -w0`",
        ),
        (
            "urlPrefix: http://x, managedResources: [{name: cpu}]",
            'managedResources[0].name: must be an extended resource such as example.com/gpu, found "cpu"',
        ),
        (
            "urlPrefix: http://x, managedResources: [{name: a.kubernetes.io/b}]",
            "managedResources[0].name: must be an extended resource such as example.com/gpu, "
            'found "a.kubernetes.io/b"',
        ),
        ("urlPrefix: http://x, filterverb: f", 'filterverb: unknown field; did you mean "filterVerb"?'),
    ],
)
def test_an_invalid_extender_is_refused(webhook: str, problem: str) -> None:
    assert problems(f"extenders: [{{{webhook}}}]") == (f"extenders[0].{problem}",)


def test_a_resource_managed_by_two_extenders_is_refused() -> None:
    one = "{urlPrefix: http://x, managedResources: [{name: example.com/gpu}]}"
    assert problems(f"extenders: [{one}, {one}]") == (
        'extenders[1].managedResources[0].name: "example.com/gpu" is already managed; '
        "only one extender can manage a resource",
    )


def test_two_extenders_that_bind_are_refused() -> None:
    one = "{urlPrefix: http://x, bindVerb: bind}"
    assert problems(f"extenders: [{one}, {{urlPrefix: http://y}}, {one}]") == (
        "extenders: only one extender may have a bindVerb, found extenders[0] and extenders[2]",
    )
