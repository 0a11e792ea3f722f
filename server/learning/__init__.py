"""Learning from a study's journal: the worker, replay, verification, what-if."""
