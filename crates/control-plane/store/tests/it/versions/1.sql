INSERT INTO workspaces (id, name)
    VALUES ('team', 'Größe');
