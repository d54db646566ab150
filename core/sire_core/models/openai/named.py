"""The model that a setting names."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from sire_core.others import refuse_folder_text

if TYPE_CHECKING:
    from sire_core.models.openai.client import OpenAIChat

__all__ = ["named_model"]


def named_model(setting: str, name: str) -> OpenAIChat:
    """The model that a setting names, with one set of connections.

    Only the user of this process decides where a request goes, with the key of OPENAI_API_KEY: to the server of
    OPENAI_BASE_URL, or to an address that he gave himself. What an index folder names is not asked.

    Args:
        setting: The setting.
        name: `NAME`, or `NAME@http://host/v1`.

    Raises:
        ConfigurationError: Only an index folder says so; or the package `openai` is missing.
    """
    refuse_folder_text(setting, name)
    return _chat_model(name)


@lru_cache(maxsize=8)
def _chat_model(name: str) -> OpenAIChat:
    from sire_core.models.openai.client import OpenAIChat

    model, _, address = name.partition("@http")
    return OpenAIChat(model, base_url=f"http{address}" if address else None)
