"""Fixtures of tests over real HTTP."""

import pytest


@pytest.fixture(autouse=True)
def _no_key(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(params=["default", "httpx"])
def transport(request, monkeypatch):
    """Both HTTP clients that the openai package may use."""
    if request.param == "httpx":
        monkeypatch.delattr("openai.DefaultAioHttpClient", raising=False)
