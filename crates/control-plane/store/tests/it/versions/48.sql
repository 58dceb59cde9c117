UPDATE mcp_clients SET agent = '', profile = 'work' WHERE id = 'cli_00000000000000ee';
