"""Sample studies: the template of `lore-active new` and the colours of the demo."""
