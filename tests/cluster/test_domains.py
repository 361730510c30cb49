"""Domains of a topology key: sums over the nodes that share a value."""

import numpy as np

from longshore.api import Node
from longshore.cluster import ClusterState
from longshore.testing import node, pod

ZONE = "zone"


def _cluster(**zones: str) -> ClusterState:
    """A cluster of nodes in these zones; an empty text means that the node has no zone."""
    cluster = ClusterState()
    for name, zone in zones.items():
        cluster.add_node(node(name).labels(zone=zone) if zone else node(name))
    return cluster


def test_numbers_are_summed_up_over_the_nodes_of_a_domain() -> None:
    domains = _cluster(n0="a", n1="b", n2="a", n3="").domains.of(ZONE)
    sums = domains.sums(np.array([1, 10, 100, 1000]))
    rows = slice(0, 4)
    assert domains.at(sums, rows).tolist() == [101, 10, 101, 0]
    assert domains.lacking(rows).tolist() == [False, False, False, True]
    assert domains.at(sums, np.array([1])).tolist() == [10]
    assert (domains.populated, domains.lowest(sums), domains.complete) == (2, 10, False)


def test_only_rows_that_count_are_summed_up_but_all_get_the_sum() -> None:
    cluster = _cluster(n0="a", n1="b", n2="a")
    domains = cluster.domains.of(ZONE, np.array([True, False, False]))
    sums = domains.sums(np.array([1, 10, 100]))
    assert domains.at(sums, slice(0, 3)).tolist() == [1, 0, 1]
    assert (domains.populated, domains.lowest(sums), domains.complete) == (1, 1, True)
    assert [domains.counts(row) for row in range(3)] == [True, False, False]


def test_without_any_domain_the_lowest_sum_is_zero() -> None:
    domains = _cluster(n0="").domains.of(ZONE)
    sums = domains.sums(np.array([5]))
    assert (domains.populated, domains.lowest(sums), domains.complete) == (0, 0, False)
    assert domains.at(sums, slice(0, 1)).tolist() == [0]


def test_values_that_nodes_no_longer_have_are_not_domains() -> None:
    cluster = _cluster(n0="a", n1="b", n2="c")
    cluster.domains.of(ZONE)
    cluster.remove_node("n1")
    domains = cluster.domains.of(ZONE)
    sums = domains.sums(np.array([1, 10, 100]))
    assert domains.populated == 2
    assert domains.at(sums, slice(0, 3)).tolist() == [1, 0, 100]
    # A row without a node does not count as lacking the key.
    assert domains.complete


def test_domains_are_shared_until_a_node_changes() -> None:
    cluster = _cluster(n0="a", n1="b")
    domains, version = cluster.domains.of(ZONE), cluster.version(Node)
    cluster.add_pod(pod("a").on("n0"))
    cluster.add_node(node("n0").labels(zone="a"))
    assert cluster.domains.of(ZONE) is domains
    assert cluster.version(Node) == version
    cluster.add_node(node("n0").labels(zone="b"))
    assert cluster.domains.of(ZONE).populated == 1
    assert cluster.version(Node) > version


def test_a_row_that_waits_for_its_node_is_in_a_domain_too() -> None:
    cluster = _cluster(n0="a")
    cluster.domains.of(ZONE)
    cluster.add_pod(pod("a").on("unknown"))
    domains = cluster.domains.of(ZONE)
    assert len(domains.ids) == 2
    assert domains.at(domains.sums(np.array([1, 10])), slice(0, 2)).tolist() == [1, 0]
