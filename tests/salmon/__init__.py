"""Tests that run beside Salmon itself, in an environment of its own (`make test-salmon`)."""
