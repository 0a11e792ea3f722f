"""The web side of lore-active: serves studies to participants and experimenters."""
