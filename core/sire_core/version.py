"""The version of the package; below everything, so that whatever reports it need not import the package's face."""

__all__ = ["__version__"]

__version__ = "0.2.0.dev0"
