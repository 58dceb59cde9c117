-- Definitions of one name are looked for with each one that is new: without these, a server that lists
-- thousands is read through for each of them.
CREATE INDEX definitions_named ON definitions (workspace, server, kind, name);
CREATE INDEX live_definitions_named ON live_definitions (place, server, kind, name);
