"""One store per test process."""

import pytest

from malformed.runner import Server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Server:
    return Server(tmp_path_factory.mktemp("cache"))
