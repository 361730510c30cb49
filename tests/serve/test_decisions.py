"""The port that serves decisions about pods, without an API server that could authenticate callers."""

from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from tests.serve.engines import Observed
from tests.serve.test_server import LOOPBACK, WELL, get

from longshore.engine import Engine
from longshore.kube.config import Connection
from longshore.kube.credentials import Fixed
from longshore.serve import serving
from longshore.serve.decisions import DecisionRoute


def test_decisions_are_not_shown_while_the_api_server_cannot_be_reached() -> None:
    observed = Observed(Engine())
    away = Connection(server="http://127.0.0.1:1", ssl=None, credentials=Fixed(None))
    route = DecisionRoute(observed.engine.records, lambda: away)
    with serving(observed.registry, WELL, port=0, address=LOOPBACK, decisions=route) as port:
        status, text = get(port, "/debug/pods/default/web", headers={"Authorization": "Bearer mine"})
        assert status == 503
        assert "the API server cannot be reached to authorize the request" in text
        assert get(port, "/healthz") == (200, "ok")


async def test_a_token_from_another_machine_is_not_taken_over_plain_http() -> None:
    route = DecisionRoute(Engine().records, lambda: Connection(server="", ssl=None, credentials=Fixed(None)))
    application = web.Application()
    route.add_to(application)
    asked = make_mocked_request("GET", "/debug/pods/default/web", {"Authorization": "Bearer mine"})
    match = await application.router.resolve(asked)
    asked = asked.clone(remote="192.0.2.7")
    asked._match_info = match
    answer = await match.handler(asked)
    assert isinstance(answer, web.Response)
    assert (answer.status, "HTTPS" in str(answer.text)) == (403, True)
