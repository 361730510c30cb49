"""The syntax of names."""

import pytest

from longshore.api.names import is_dns_label, is_dns_subdomain, is_qualified_name


@pytest.mark.parametrize(
    ("name", "is_label", "is_subdomain"),
    [
        ("shop", True, True),
        ("shop.eu", False, True),
        ("n" * 63, True, True),
        ("n" * 64, False, True),
        ("n" * 254, False, False),
        ("Shop", False, False),
        ("..", False, False),
        ("a/b", False, False),
        ("shop\n", False, False),
        ("", False, False),
    ],
)
def test_namespaces_are_dns_labels_and_pods_are_dns_subdomains(
    name: str, *, is_label: bool, is_subdomain: bool
) -> None:
    assert (is_dns_label(name), is_dns_subdomain(name)) == (is_label, is_subdomain)


@pytest.mark.parametrize("name", ["app", "example.com/app", "App_1.x", "a" * 63, "d" * 253 + "/app"])
def test_a_label_key_is_a_name_with_or_without_a_domain(name: str) -> None:
    assert is_qualified_name(name)


@pytest.mark.parametrize(
    "name", ["", "/app", "example.com/", "a/b/c", "Example.com/app", "a" * 64, "d" * 254 + "/app"]
)
def test_a_label_key_with_an_empty_or_illegal_part_is_rejected(name: str) -> None:
    assert not is_qualified_name(name)
