// An agent that may not write files: it is refused, asks, waits until somebody has decided, and
// tries again in the same run. Each step is a JSON line; the last one has `step: "done"`.

import { headers, peer, run } from './common.mjs';

const REQUEST = 'may-i-write';

await run('story', async (opts) => {
  const { Client, StreamableHTTPClientTransport } = peer(opts, '@modelcontextprotocol/client');
  const requestInit = { headers: headers(opts) };
  const client = new Client(
    { name: 'narthex-e2e-story', version: '1' },
    { versionNegotiation: { mode: opts.era === 'modern' ? { pin: '2026-07-28' } : opts.era } },
  );
  await client.connect(new StreamableHTTPClientTransport(new URL(opts.url), { requestInit }));
  try {
    const write = () => client.callTool({ name: opts.tool, arguments: opts.arguments });
    const refused = await write();
    tell('refused', refused);
    const asked = await client.callTool({
      name: 'mcp__narthex__request_grant',
      arguments: {
        request_id: REQUEST,
        grant_type: 'tool_scope',
        details: { scope: refused.structuredContent.error.details.scopes[0] },
        scope: 'run',
        justification: 'to leave a note',
      },
    });
    tell('asked', asked);
    tell('decided', await decision(opts.events, requestInit.headers));
    return { step: 'done', era: client.getProtocolEra(), result: await write() };
  } finally {
    await client.close();
  }
});

function tell(step, result) {
  console.log(JSON.stringify({ step, result }));
}

/** Follows the events of the run's session to the decision on the request. */
async function decision(url, sent) {
  const answer = await fetch(url, { headers: { ...sent, Accept: 'text/event-stream' } });
  if (!answer.ok) throw new Error(`the events answered ${answer.status}: ${await answer.text()}`);
  let rest = '';
  for await (const part of answer.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + part).split('\n');
    rest = lines.pop();
    for (const line of lines.filter((line) => line.startsWith('data:'))) {
      const event = JSON.parse(line.slice('data:'.length));
      const isDecision = ['permission.granted', 'permission.denied'].includes(event.type);
      if (isDecision && event.payload.request_id === REQUEST) return event;
    }
  }
  throw new Error('the events ended without a decision');
}
