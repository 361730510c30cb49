"""The comparison of the answers of both schedulers."""

from typing import Any

from tests.compare.two_schedulers import Answers, Arena

from longshore.api import Pod


def differences(answers: Answers) -> list[str]:
    """Return the differences between the answers.

    For a pod without a node, all messages must be equal. For a pod with a node, all scores must be equal, and
    the chosen node must be one of the best.
    """
    kube, longshore, explanation = answers.kube, answers.longshore, answers.explanation
    if explanation.error:
        return [explanation.error]
    if bool(kube.node) != bool(longshore.node):
        return [f"kube-scheduler: {kube}", f"Longshore: {longshore}"]
    if not kube.node:
        pairs = zip(kube.comparable, longshore.comparable, strict=True)
        found = [
            f"kube-scheduler: {theirs}\n     Longshore: {ours}" for theirs, ours in pairs if theirs != ours
        ]
        return found + [f"explained as feasible: {node}" for node in explanation.feasible]
    found = _about_choice(answers)
    for answer in (kube, longshore):
        named = answer.document["metadata"]
        text = f"Successfully assigned {named['namespace']}/{named['name']} to {answer.node}"
        if answer.event != ("Normal", "Scheduled", "Binding", text):
            found.append(f"event {answer.event}")
    return found


def _about_choice(answers: Answers) -> list[str]:
    explanation, scores = answers.explanation, answers.scores
    if not scores and len(explanation.feasible) != 1:
        return [f"kube-scheduler had one choice, explained as feasible: {explanation.feasible}"]
    found = []
    if scores:
        for node in sorted({*scores, *explanation.scores}):
            theirs, ours = scores.get(node, {}), explanation.scores.get(node, {})
            found += [
                f"{node} {plugin}: kube-scheduler {theirs.get(plugin)}, Longshore {ours.get(plugin)}"
                for plugin in sorted({*theirs, *ours})
                if theirs.get(plugin) != ours.get(plugin)
            ]
    best = max(explanation.totals.values())
    for answer in (answers.kube, answers.longshore):
        if explanation.totals.get(answer.node) != best:
            found.append(f"{answer.node} was taken, with {explanation.totals.get(answer.node)} of {best}")
    return found


def agree(arena: Arena, asked: Pod, *, profile: str = "", **spec: Any) -> Answers:
    answers = arena.both(asked, profile=profile, **spec)
    found = differences(answers)
    assert not found, "\n".join([asked.metadata.name, *found])
    return answers
