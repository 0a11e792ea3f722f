"""Exports: answers, embeddings and logs as files, for people and for other programs."""
