"""One server per test process."""

from collections.abc import Iterator

import pytest

from malformed.runner import Server, serving


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("cache")) as found:
        yield found
