"""Answers in: validated comparisons of items, from arrays, frames and files."""
