"""The learner: asks, takes in answers, refits, audits, decides."""
