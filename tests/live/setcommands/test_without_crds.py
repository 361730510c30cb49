"""Commands about pod sets on a cluster without their custom resource definitions."""

from tests.live.setcommands.commands import Stage, the_error

from longshore.dev.fixtures import OwnCluster


def test_a_cluster_without_the_definitions_gets_one_line_with_the_command(
    own_cluster: OwnCluster,
) -> None:
    stage = Stage(own_cluster(nodes=1, kwok=False, controller_manager=False), "default", [])
    for arguments in (
        ("trigger", "go"),
        ("trigger", "--list"),
        ("plan", "batch"),
        ("plan", "batch", "--preview"),
        ("verify",),
        ("verify", "--strict"),
    ):
        error = the_error(stage.run(*arguments))
        assert error.startswith("error: the cluster does not know schedule")
        assert error.endswith("s.planner.ciena.io: install them with kubectl apply -f deploy/crds\n")
