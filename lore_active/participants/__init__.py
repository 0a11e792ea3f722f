"""Participants: response quality, by tests of honest answering."""
