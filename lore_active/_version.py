"""The version of lore-active; apart, so that every module can name it."""

__version__ = "0.1.0"
