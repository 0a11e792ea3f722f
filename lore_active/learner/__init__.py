"""The learner: selects questions, fits answers, estimates the rank, decides when to stop."""
