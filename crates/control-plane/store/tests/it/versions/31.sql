UPDATE workspaces SET runtime_requests = 0 WHERE id = 'team';
