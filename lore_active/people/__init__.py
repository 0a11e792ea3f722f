"""Participants: how probable their answers are if they answer honestly."""
