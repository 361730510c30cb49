"""An engine with a copy of the cluster, which explains the answer of every plugin."""

from typing import Any

import msgspec
from tests.compare.api import CREATION_ORDER, Api, Document

from longshore.api import Change, Pod
from longshore.cluster import PodInfo
from longshore.config.setup import set_up
from longshore.engine import Engine
from longshore.engine.answers.explanation import Explanation, explain


class Twin:
    def __init__(self, api: Api, configuration: str) -> None:
        setup = set_up(configuration)
        self._engine = Engine(setup.configuration, plugins=setup.plugins)
        for kind in CREATION_ORDER:
            for document in api.listed(kind):
                thing: Any = msgspec.convert(document, kind)
                self._engine.receive(Change(None, thing), now=0.0)

    def explain(self, document: Document) -> Explanation:
        """Return the explanation for a pending pod as the API server has it."""
        pod = msgspec.convert(document, Pod)
        return explain(self._engine.chooser(pod.spec.scheduler_name), PodInfo.of(pod))
