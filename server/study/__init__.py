"""A study on disk: study.toml, its items, and opening its folder."""
