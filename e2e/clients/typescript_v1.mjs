// Driver for the TypeScript SDK v1: a client of the legacy era.

import { allTools, headers, peer, run } from './common.mjs';

await run('typescript-v1', async (opts) => {
  if (opts.era !== 'legacy') throw new Error(`the v1 SDK has no ${opts.era} era`);
  const { Client } = peer(opts, '@modelcontextprotocol/sdk/client/index.js');
  const client = new Client({ name: 'narthex-e2e-typescript-v1', version: '1' });
  const transport = open(opts);
  await client.connect(transport);
  try {
    const tools = await allTools((cursor) => client.listTools({ cursor }));
    const result = await client.callTool({ name: opts.tool, arguments: opts.arguments });
    const protocol = transport.protocolVersion ?? null; // Only known over HTTP.
    if (opts.url) await transport.terminateSession();
    return { era: 'legacy', protocol, tools, result };
  } finally {
    await client.close();
  }
});

function open(opts) {
  if (opts.command) {
    const { StdioClientTransport } = peer(opts, '@modelcontextprotocol/sdk/client/stdio.js');
    const [command, ...args] = opts.command;
    return new StdioClientTransport({ command, args });
  }
  const { StreamableHTTPClientTransport } = peer(
    opts,
    '@modelcontextprotocol/sdk/client/streamableHttp.js',
  );
  return new StreamableHTTPClientTransport(new URL(opts.url), {
    requestInit: { headers: headers(opts) },
  });
}
