"""The items of a study: lists, stimulus files, coordinates, and their display."""
