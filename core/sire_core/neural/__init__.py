"""Everything that trains with torch: perspectives learned by a graph network and scorers of evidence chains."""

from sire_core.errors import ConfigurationError

__all__ = ["need_torch"]


def need_torch(what: str) -> None:
    """Say that torch is missing before anything is paid or computed.

    Args:
        what: Who needs it, as the message begins.

    Raises:
        ConfigurationError: torch is not installed.
    """
    try:
        import torch  # noqa: F401 - only whether it is there
    except ImportError as error:
        raise ConfigurationError(f'{what} needs torch: pip install "sire-rag[torch]"') from error
