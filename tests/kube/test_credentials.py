"""The credentials for the API server, and how long they are cached."""

import asyncio
import base64
from pathlib import Path

import pytest
from tests.kube.clock import Clock

from longshore.errors import UserError
from longshore.kube.credentials import TOKEN_FILE_AGE, Fixed, TokenFile, basic, bearer


@pytest.fixture
def clock() -> Clock:
    return Clock()


class TestFixed:
    @pytest.mark.parametrize(
        ("header", "expected"),
        [
            (None, None),
            (bearer("t"), "Bearer t"),
            (basic("docker", "p:ä"), "Basic " + base64.b64encode("docker:p:ä".encode()).decode()),
        ],
    )
    async def test_a_fixed_header_stays_the_same(self, header: str | None, expected: str | None) -> None:
        credentials = Fixed(header)
        credentials.invalidate()
        assert await credentials.authorization() == expected


class TestTokenFile:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        path = tmp_path / "token"
        path.write_text(" one\n")
        return path

    def test_a_rotated_token_is_read_after_a_while(self, path: Path, clock: Clock) -> None:
        credentials = TokenFile(path, clock=clock)
        path.write_text("two")
        clock.now += TOKEN_FILE_AGE - 1
        assert asyncio.run(credentials.authorization()) == "Bearer one"
        clock.now += 1
        assert asyncio.run(credentials.authorization()) == "Bearer two"

    def test_a_rotated_token_is_read_immediately_after_a_401(self, path: Path, clock: Clock) -> None:
        credentials = TokenFile(path, clock=clock)
        path.write_text("two")
        credentials.invalidate()
        assert asyncio.run(credentials.authorization()) == "Bearer two"

    @pytest.mark.parametrize("content", [None, "", "\n"])
    def test_the_old_token_is_kept_while_there_is_no_new_one(
        self, path: Path, clock: Clock, content: str | None
    ) -> None:
        credentials = TokenFile(path, clock=clock)
        path.unlink()
        if content is not None:
            path.write_text(content)
        clock.now += TOKEN_FILE_AGE
        assert asyncio.run(credentials.authorization()) == "Bearer one"

    def test_an_empty_token_file_is_reported(self, path: Path) -> None:
        path.write_text("")
        with pytest.raises(UserError, match="is empty"):
            TokenFile(path)
