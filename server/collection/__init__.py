"""Collecting answers: what participants and the experimenter can do, each as one transaction."""
