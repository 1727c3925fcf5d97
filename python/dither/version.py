"""The version, for those parts of the package that the package itself imports."""

__version__ = "0.1.0"
