"""Checks that optional dependencies are installed."""

from sire_core.errors import ConfigurationError


def need_torch(what: str) -> None:
    """Raise if torch is not installed, before anything is paid or computed."""
    try:
        import torch  # noqa: F401 - only whether it is there
    except ImportError as error:
        raise ConfigurationError(f'{what} needs torch: pip install "sire-rag[torch]"') from error
