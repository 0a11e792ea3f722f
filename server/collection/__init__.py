"""Data collection: the actions of participants and experimenter, each as one transaction."""
