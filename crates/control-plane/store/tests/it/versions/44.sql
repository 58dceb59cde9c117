INSERT INTO cuts VALUES ('team', 'server', 'docs', 0, 1);
UPDATE cut_changes SET n = 1 WHERE id = 1;
