UPDATE workspaces SET models = '[{"id":"m5","short_names":["m"]}]' WHERE id = 'team';
