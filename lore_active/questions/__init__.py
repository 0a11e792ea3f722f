"""Questions: their kinds, the data types, and the pool of questions that may be asked."""
