"""`longshore conformance`: compare the engine with recorded decisions of the real kube-scheduler."""

import sys

import click


@click.command(
    "conformance",
    epilog="Example: longshore conformance tests/data/cases.jsonl.gz tests/data/expected.jsonl.gz",
)
@click.argument("cases", type=click.Path())
@click.argument("expected", type=click.Path())
@click.option(
    "--shared",
    is_flag=True,
    help="Use one engine for all cases of a family and change its cluster between them.",
)
@click.option(
    "--differences",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="How many differing cases to show in full.",
)
def command(*, cases: str, expected: str, shared: bool, differences: int) -> None:
    """Compare the engine with recorded decisions of kube-scheduler 1.36.3.

    CASES and EXPECTED are files of JSON lines, plain or gzipped. The feasible nodes, the rejecting plugin
    with its code and reasons, every plugin's weighted score, the totals and the outcome of preemption must be
    the same. The exit code is 1 if any case differs.
    """
    from longshore.sim.conformance import examine, read_cases, read_expected

    given, answers = read_cases(cases), read_expected(expected)
    agreed: dict[str, int] = {}
    total: dict[str, int] = {}
    shown = 0
    with click.progressbar(
        examine(given, answers, shared=shared),
        length=len(given),
        file=sys.stderr,
        hidden=not sys.stderr.isatty(),
    ) as progress:
        for case, found in progress:
            total[case.family] = total.get(case.family, 0) + 1
            agreed[case.family] = agreed.get(case.family, 0) + (not found)
            if found and shown < differences:
                shown += 1
                click.echo(f"{case.id} differs:")
                for difference in found:
                    click.echo(f"  {difference.what}")
                    click.echo(f"    expected: {difference.expected}")
                    click.echo(f"    actual:   {difference.actual}")
    width = max(map(len, total), default=0)
    for family, number in total.items():
        click.echo(f"{family:<{width}}  {agreed[family]}/{number}")
    click.echo(f"agreement: {sum(agreed.values())}/{len(given)}")
    if sum(agreed.values()) != len(given) or not given:
        sys.exit(1)
