"""Processes: the supervisor, the web, worker and backup processes, and bots."""
