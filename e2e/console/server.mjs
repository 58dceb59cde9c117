// A small MCP server over standard input and output. With the word `broken`, it ends at once.

import { createInterface } from 'node:readline';

if (process.argv[2] === 'broken') {
  console.error('the file of accounts is missing');
  process.exit(3);
}

const TOOLS = ['status', 'history'].map((name) => ({
  name,
  description: `Shows the ${name} <b>of a folder</b>`,
  inputSchema: { type: 'object' },
}));

const results = {
  initialize: {
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'small', version: '1' },
  },
  'tools/list': { tools: TOOLS },
  ping: {},
};

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  if (id === undefined) return;
  const result = results[method];
  const error = { code: -32601, message: 'this method is not known' };
  const answer = result ? { jsonrpc: '2.0', id, result } : { jsonrpc: '2.0', id, error };
  process.stdout.write(`${JSON.stringify(answer)}\n`);
});
