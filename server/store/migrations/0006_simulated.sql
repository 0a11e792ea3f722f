-- Participants that are programs (`serve --bots`): marked when they arrive, and never changed.

ALTER TABLE participants ADD COLUMN simulated INTEGER NOT NULL DEFAULT 0
    CHECK (simulated IN (0, 1));

CREATE INDEX simulated_participants ON participants (id) WHERE simulated = 1;
CREATE INDEX simulated_events ON events (id) WHERE kind IN ('simulated_out', 'simulated_stop');
