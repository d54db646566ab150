"""The version of the package; below everything, so that whatever reports it need not import the package's face."""

__version__ = "0.2.0.dev0"
