"""What `lore-active plan` and `lore-active simulate` run."""
