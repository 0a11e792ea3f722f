"""The items of a study: lists, stimulus files, positions, and how pages show them."""
