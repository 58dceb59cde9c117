-- Nobody knows who made a token of before.
UPDATE access_changes SET n = 4 WHERE id = 1;
