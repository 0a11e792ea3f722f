"""Input of answers: validated triplets from arrays, data frames and files."""
