-- Who has the turn in a session: by whose message its runs act. `turn_user` of a run is a human's id,
-- `nobody`, or empty as long as its driver has it. `turn` is the number of the last change of that,
-- so that other daemons notice; of a run that begins, that of the last change of any run.
ALTER TABLE runs ADD COLUMN turn_user TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN turn BIGINT NOT NULL DEFAULT 0;

CREATE INDEX runs_by_turn ON runs (turn);

-- Grows with every turn that somebody takes.
CREATE TABLE turns (
    id BIGINT NOT NULL PRIMARY KEY,
    n BIGINT NOT NULL
);

INSERT INTO turns (id, n) VALUES (1, 0);
