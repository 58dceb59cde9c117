// The program of a run: a client of the TypeScript SDK, which reports to the spec at DESK_URL and
// makes the calls that the answers name. It ends with the first answer that names none.

import { createRequire } from 'node:module';
import { join } from 'node:path';

const { DESK_URL, DESK_PEERS, NARTHEX_MCP_URL, NARTHEX_RUN_ID, NARTHEX_RUN_TOKEN } = process.env;
const peer = createRequire(join(DESK_PEERS, 'package.json'));
const { Client } = peer('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = peer(
  '@modelcontextprotocol/sdk/client/streamableHttp.js',
);

async function reported(report) {
  const body = JSON.stringify({ run: NARTHEX_RUN_ID, ...report });
  return (await fetch(DESK_URL, { method: 'POST', body })).json();
}

const client = new Client({ name: 'console-spec', version: '1' });
const requestInit = { headers: { Authorization: `Bearer ${NARTHEX_RUN_TOKEN}` } };
await client.connect(new StreamableHTTPClientTransport(new URL(NARTHEX_MCP_URL), { requestInit }));

async function called(call) {
  try {
    return { result: await client.callTool(call) };
  } catch (error) {
    return { error: String(error) };
  }
}

const { tools } = await client.listTools();
let order = await reported({ tools: tools.map((tool) => tool.name) });
while (order.call) order = await reported(await called(order.call));
await client.close();
process.exit();
