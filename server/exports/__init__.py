"""Exports: answers, embeddings and logs as files, in the formats of several programs."""
