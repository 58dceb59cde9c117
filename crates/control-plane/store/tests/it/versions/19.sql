UPDATE workspaces SET oauth_on_orchestrators = 'on_attended' WHERE id = 'team';
