"""What holds for every test: nothing is kept in the cache of the user who runs them."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="session")
def _cache_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRAPH2VID_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
