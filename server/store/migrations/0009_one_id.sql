-- Questions have one id: the learner no longer numbers them itself. In studies of earlier versions,
-- queries.learner and steps.pending keep its numbers.

DROP INDEX queries_of_step;
CREATE INDEX queries_of_step ON queries (step) WHERE step IS NOT NULL;
