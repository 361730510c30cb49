"""An extender with the agent safe, and a file with agents of all kinds."""

import pytest
from tests.serve.extendernodes import AGENTS, CALM, FULL
from tests.serve.extenders import Made, make


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("agents") / "mine.py"
    path.write_text(AGENTS)
    return str(path)


@pytest.fixture
def safe() -> Made:
    made = make("safe")
    made.put(CALM, FULL)
    return made
