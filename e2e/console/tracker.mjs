// A small MCP server of issues, which needs a key in its environment and never shows it.

import { createInterface } from 'node:readline';

const { TRACKER_KEY, TRACKER_TEAM } = process.env;
if (!TRACKER_KEY) {
  console.error('TRACKER_KEY is missing');
  process.exit(1);
}

const TOOLS = [
  {
    name: 'search_issues',
    description: 'Finds issues',
    annotations: { readOnlyHint: true },
    inputSchema: { type: 'object' },
  },
  {
    name: 'create_issue',
    description: 'Creates an issue',
    inputSchema: {
      type: 'object',
      required: ['title'],
      properties: { title: { type: 'string' } },
    },
  },
];

const texts = {
  search_issues: () => `no issue of ${TRACKER_TEAM} is open`,
  create_issue: ({ title }) =>
    `created “${title}” for ${TRACKER_TEAM} with a key of ${TRACKER_KEY.length} characters`,
};

const results = {
  initialize: () => ({
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'tracker', version: '1' },
  }),
  'tools/list': () => ({ tools: TOOLS }),
  'tools/call': ({ name, arguments: given = {} }) => ({
    content: [{ type: 'text', text: texts[name](given) }],
  }),
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
