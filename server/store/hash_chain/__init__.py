"""The hash chain over every stored row: recording it and verifying it."""
