"""Reads the webhooks from `extenders` in the file: the HTTP extenders that the scheduler calls."""

import base64
import binascii

from longshore.api.names import is_extended_resource
from longshore.config.base import Settings
from longshore.config.fields import INT64_MAX, Fields
from longshore.config.problems import quoted

_TIMEOUT = 5.0
_EXTENDED_RESOURCE = "an extended resource such as example.com/gpu"


class ManagedResource(Settings):
    name: str
    ignored_by_scheduler: bool = False


class WebhookTLS(Settings):
    """TLS settings of a webhook. Data takes precedence over the file of the same name."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


class Webhook(Settings):
    """An HTTP extender.

    A verb that is empty is not called. If the webhook manages resources, it is called only for pods that
    request one of them. As in kube-scheduler, `enable_https` without a certificate authority disables the
    verification of certificates.
    """

    url_prefix: str
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    enable_https: bool = False
    tls_config: WebhookTLS | None = None
    # The longest time in seconds that a call may take.
    http_timeout: float = _TIMEOUT
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    # If a call fails, the pod is scheduled without the webhook.
    ignorable: bool = False


def read_webhooks(fields: Fields) -> tuple[Webhook, ...]:
    """Return the webhooks in the order in which they are called. Ignorable webhooks are the last."""
    managed: set[str] = set()
    webhooks = fields.each("extenders", lambda webhook: _webhook(webhook, managed))
    binders = [number for number, webhook in enumerate(webhooks) if webhook.bind_verb]
    if len(binders) > 1:
        places = " and ".join(f"extenders[{number}]" for number in binders)
        fields.problem("extenders", f"only one extender may have a bindVerb, found {places}")
    return tuple(sorted(webhooks, key=lambda webhook: webhook.ignorable))


def _webhook(fields: Fields, managed: set[str]) -> Webhook:
    prefix = fields.needed_text("urlPrefix", "the address of the extender, http://… or https://…")
    if prefix and not prefix.startswith(("http://", "https://")):
        fields.problem("urlPrefix", f"must begin with http:// or https://, found {quoted(prefix)}")
    prioritize = fields.text("prioritizeVerb")
    if prioritize and not fields.given("weight"):
        fields.problem("weight", "missing; an extender with a prioritizeVerb needs a weight of at least 1")
    timeout = fields.duration("httpTimeout", _TIMEOUT)
    if timeout < 0:
        fields.problem("httpTimeout", "must not be negative; leave it out for 5s")
    return Webhook(
        url_prefix=prefix,
        filter_verb=fields.text("filterVerb"),
        preempt_verb=fields.text("preemptVerb"),
        prioritize_verb=prioritize,
        bind_verb=fields.text("bindVerb"),
        weight=fields.integer("weight", at_least=1 if prioritize else 0, at_most=INT64_MAX),
        enable_https=fields.flag("enableHTTPS"),
        tls_config=fields.optional("tlsConfig", _tls),
        http_timeout=timeout or _TIMEOUT,
        node_cache_capable=fields.flag("nodeCacheCapable"),
        managed_resources=fields.each("managedResources", lambda resource: _managed(resource, managed)),
        ignorable=fields.flag("ignorable"),
    )


def _tls(fields: Fields) -> WebhookTLS:
    tls = WebhookTLS(
        insecure=fields.flag("insecure"),
        server_name=fields.text("serverName"),
        cert_file=fields.text("certFile"),
        key_file=fields.text("keyFile"),
        ca_file=fields.text("caFile"),
        cert_data=_data(fields, "certData"),
        key_data=_data(fields, "keyData"),
        ca_data=_data(fields, "caData"),
    )
    if tls.insecure and (tls.ca_file or tls.ca_data):
        fields.problem("insecure", "not allowed together with a certificate authority; remove one of them")
    if bool(tls.cert_file or tls.cert_data) != bool(tls.key_file or tls.key_data):
        fields.report.problem(fields.path, "a client certificate and its key are needed together")
    return tls


def _data(fields: Fields, name: str) -> bytes:
    text = fields.text(name)
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        fields.problem(name, "must be base64; write it with `base64 -w0`")
        return b""


def _managed(fields: Fields, seen: set[str]) -> ManagedResource:
    name = fields.needed_text("name", _EXTENDED_RESOURCE)
    if name and not is_extended_resource(name):
        fields.problem("name", f"must be {_EXTENDED_RESOURCE}, found {quoted(name)}")
    elif name and name in seen:
        fields.problem("name", f"{quoted(name)} is already managed; only one extender can manage a resource")
    seen.add(name)
    return ManagedResource(name, fields.flag("ignoredByScheduler"))
