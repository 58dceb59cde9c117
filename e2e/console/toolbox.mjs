// A small MCP server whose tools have arguments: one greets, and one says that it is destructive.

import { createInterface } from 'node:readline';

const TOOLS = [
  {
    name: 'greet',
    description: 'Greets <b>someone</b>',
    annotations: { readOnlyHint: true },
    inputSchema: {
      type: 'object',
      required: ['name'],
      properties: {
        name: { type: 'string', description: 'The name' },
        count: { type: 'integer', default: 1 },
        mood: { enum: ['glad', 'calm'] },
        words: { type: 'array', items: { type: 'string' } },
        place: { type: 'object', properties: { town: { type: 'string' } } },
        rest: { type: 'object' },
      },
    },
  },
  {
    name: 'wipe',
    description: 'Removes everything',
    annotations: { destructiveHint: true },
    inputSchema: { type: 'object' },
  },
];

function called({ name, arguments: given = {} }) {
  const text =
    name === 'greet' ? `hello ${given.name} <script>alert(1)</script>` : 'everything is gone';
  return { content: [{ type: 'text', text }] };
}

const results = {
  initialize: () => ({
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'toolbox', version: '1' },
  }),
  'tools/list': () => ({ tools: TOOLS }),
  'tools/call': called,
  ping: () => ({}),
};

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const result = results[method]?.(params ?? {});
  const error = { code: -32601, message: 'this method is not known' };
  const answer = result ? { jsonrpc: '2.0', id, result } : { jsonrpc: '2.0', id, error };
  process.stdout.write(`${JSON.stringify(answer)}\n`);
});
