UPDATE workspaces SET audits_contents = 1 WHERE id = 'team';
