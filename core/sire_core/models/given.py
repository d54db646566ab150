"""What somebody passed as a language model, and what to do where it is none."""

from __future__ import annotations

from sire_core.errors import ConfigurationError
from sire_core.keywords import kind_of

__all__ = ["check_language_model"]

_FORMS = (
    "pass one of sire_core.models, for example OpenAIChat('gpt-4o-mini') of sire_core.models.openai.client, or an "
    "object with fingerprint and async complete(prompt, ...)"
)
_ADAPTERS = {
    "langchain_core": "that is a model of LangChain: pass it as llm=... of langchain_sire (SireRetriever and others), "
    "or wrap it as langchain_sire.LangChainChat(model)",
    "llama_index": "that is a model of LlamaIndex: pass it as llm=... of llama_index_sire (SireRetriever and others), "
    "or wrap it as llama_index_sire.LlamaIndexModel(model)",
}
"""By the package of a class: how its models are passed."""


def check_language_model(given: object, forms: str = "") -> None:
    """Refuse what cannot be asked; None is fine.

    Args:
        given: What was passed.
        forms: What is taken here, for the message.

    Raises:
        ConfigurationError: It is a class, a model of a framework, or something else.
    """
    if given is None:
        return
    is_class = isinstance(given, type)
    form = given if isinstance(given, type) else type(given)
    packages = {base.__module__.partition(".")[0] for base in form.__mro__}
    theirs = (
        "" if hasattr(form, "fingerprint") else next((_ADAPTERS[name] for name in _ADAPTERS if name in packages), "")
    )
    if not is_class and not theirs and callable(getattr(given, "complete", None)):
        return
    raise ConfigurationError(f"{kind_of(given)} is no language model; {forms or theirs or _FORMS}.")
