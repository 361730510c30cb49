"""Images that nodes already have."""

from tests.plugins.one_plugin import cluster_of, scores

from longshore.cluster import PodInfo
from longshore.framework import CycleState
from longshore.plugins import ImageLocality
from longshore.plugins.imagelocality import full_name
from longshore.testing import node, pod

PLUGIN = ImageLocality()
MIB = 2**20
EMPTY = node("empty")


def test_an_image_on_all_nodes_counts_with_its_full_size() -> None:
    # (511.5 - 23) / (1000 - 23) MiB
    holder = node("n1").image("web:1", size=1023 * MIB // 2)
    assert scores(PLUGIN, pod("a").image("web:1"), holder) == {"n1": 50}


def test_an_image_counts_by_the_share_of_nodes_that_have_it() -> None:
    holder = node("n1").image("web:1", size=1023 * MIB)
    assert scores(PLUGIN, pod("a").image("web:1"), holder, EMPTY) == {"n1": 50, "empty": 0}


def test_small_images_make_no_difference_and_very_large_ones_are_capped() -> None:
    small, huge = node("small").image("web:1", size=45 * MIB), node("huge").image("db:1", size=2**40)
    assert scores(PLUGIN, pod("a").image("web:1"), small, huge) == {"small": 0, "huge": 0}
    assert scores(PLUGIN, pod("a").image("db:1"), small, huge) == {"small": 0, "huge": 100}


def test_all_images_of_the_pod_count_including_those_of_volumes() -> None:
    holder = node("n1").image("web:1", size=500 * MIB).image("model:1", size=500 * MIB)
    incoming = pod("a").image("web:1").image_volume("model:1")
    assert scores(PLUGIN, incoming, holder) == {"n1": 100}


def test_every_container_raises_the_size_for_the_full_score() -> None:
    holder = node("n1").image("web:1", size=1000 * MIB)
    # (1000 - 23) / (2000 - 23)
    assert scores(PLUGIN, pod("a").image("web:1").init_container("setup"), holder) == {"n1": 49}


def test_without_any_of_the_images_the_score_is_one_number() -> None:
    cluster = cluster_of(node("n1").image("other:1", size=500 * MIB), EMPTY)
    answer = PLUGIN.score(CycleState(), PodInfo.of(pod("a").image("web:1")), cluster.all_nodes())
    assert isinstance(answer, int)
    assert answer == 0


def test_a_name_without_a_tag_means_the_latest() -> None:
    assert full_name("web") == "web:latest"
    assert full_name("registry:5000/web") == "registry:5000/web:latest"
    assert full_name("registry:5000/web:1") == "registry:5000/web:1"
    assert full_name("web@sha256:abc") == "web@sha256:abc"
