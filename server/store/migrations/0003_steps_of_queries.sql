-- Replay and restarts ask for the questions of one step.
CREATE INDEX queries_of_step ON queries (step, learner) WHERE step IS NOT NULL;
