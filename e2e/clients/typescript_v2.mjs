// Driver for the TypeScript client v2, which negotiates: legacy, auto, or pinned to the modern era.

import { allTools, headers, peer, run } from './common.mjs';

const MODES = { legacy: 'legacy', auto: 'auto', modern: { pin: '2026-07-28' } };

await run('typescript-v2', async (opts) => {
  const { Client } = peer(opts, '@modelcontextprotocol/client');
  const client = new Client(
    { name: 'narthex-e2e-typescript-v2', version: '1' },
    { versionNegotiation: { mode: MODES[opts.era] } },
  );
  const transport = open(opts);
  await client.connect(transport);
  try {
    // Without a cursor this client follows all pages by itself.
    const tools = await allTools((cursor) => client.listTools(cursor ? { cursor } : undefined));
    const result = await client.callTool({ name: opts.tool, arguments: opts.arguments });
    const era = client.getProtocolEra();
    const protocol = client.getNegotiatedProtocolVersion() ?? null;
    if (opts.url && era === 'legacy') await transport.terminateSession();
    return { era, protocol, tools, result };
  } finally {
    await client.close();
  }
});

function open(opts) {
  if (opts.command) {
    const { StdioClientTransport } = peer(opts, '@modelcontextprotocol/client/stdio');
    const [command, ...args] = opts.command;
    return new StdioClientTransport({ command, args });
  }
  const { StreamableHTTPClientTransport } = peer(opts, '@modelcontextprotocol/client');
  return new StreamableHTTPClientTransport(new URL(opts.url), {
    requestInit: { headers: headers(opts) },
  });
}
