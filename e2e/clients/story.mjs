// An agent that may not write files, with a client that can lead its user to a page: it is refused,
// makes the call that the refusal names, shows the page of the request, is still refused, waits
// until somebody has decided, and tries again in the same run. Each step is a JSON line; the last
// one has `step: "done"`.

import { headers, peer, run } from './common.mjs';

await run('story', async (opts) => {
  const { Client, StreamableHTTPClientTransport } = peer(opts, '@modelcontextprotocol/client');
  const requestInit = { headers: headers(opts) };
  const client = new Client(
    { name: 'narthex-e2e-story', version: '1' },
    {
      capabilities: { elicitation: { url: {} } },
      versionNegotiation: { mode: opts.era === 'modern' ? { pin: '2026-07-28' } : opts.era },
    },
  );
  const user = ledBy(client);
  const transport = { requestInit, fetch: user.fetch };
  await client.connect(new StreamableHTTPClientTransport(new URL(opts.url), transport));
  try {
    // From here on it holds results against the schemas that tools say of them.
    await client.listTools();
    const write = () => client.callTool({ name: opts.tool, arguments: opts.arguments });
    const refused = await write();
    tell('refused', refused);
    const ask = refused._meta['narthex/error'].details.ask.calls[0];
    tell('asked', await client.callTool(ask));
    const shown = await user.page;
    const answered = await user.accepted;
    const heading = /<h1>(.*?)<\/h1>/.exec(await (await fetch(shown.url)).text())?.[1];
    tell('shown', { ...shown, era: client.getProtocolEra(), answered, heading });
    tell('still refused', await write());
    const { request_id } = ask.arguments;
    tell('decided', await decision(opts.events, requestInit.headers, request_id));
    // The modern era has no such notification: there the same call tells.
    if (client.getProtocolEra() === 'legacy') tell('completed', await user.completed);
    const result = await client.callTool(ask);
    tell('stands', { result, pages: user.pages() });
    return { step: 'done', era: client.getProtocolEra(), result: await write() };
  } finally {
    await client.close();
  }
});

function tell(step, result) {
  console.log(JSON.stringify({ step, result }));
}

/**
 * A user who opens each page that the client leads them to, and decides nothing there. The SDK
 * knows elicitation in URL mode in both eras: in the modern one it gives the question of a result
 * of the type `input_required` to the same handler, and repeats the call with the answer.
 */
function ledBy(client) {
  const [page, accepted, completed] = [1, 2, 3].map(() => Promise.withResolvers());
  let pages = 0;
  client.setRequestHandler('elicitation/create', ({ params }) => {
    pages += 1;
    page.resolve(params);
    return { action: 'accept' };
  });
  const complete = 'notifications/elicitation/complete';
  client.setNotificationHandler(complete, ({ params }) => completed.resolve(params));
  return {
    page: page.promise,
    /** What the answer to the question was sent with; only once the gateway has taken it. */
    accepted: accepted.promise,
    completed: completed.promise,
    pages: () => pages,
    async fetch(url, init) {
      const answer = await fetch(url, init);
      const { method, params, result } = init?.body ? JSON.parse(init.body) : {};
      const answers = [result, ...Object.values(params?.inputResponses ?? {})];
      if (answers.some((one) => one?.action === 'accept')) {
        accepted.resolve({ by: method ?? 'response', status: answer.status });
      }
      return answer;
    },
  };
}

/** Follows the events of the run's session to the decision on the request. */
async function decision(url, sent, request) {
  const answer = await fetch(url, { headers: { ...sent, Accept: 'text/event-stream' } });
  if (!answer.ok) throw new Error(`the events answered ${answer.status}: ${await answer.text()}`);
  let rest = '';
  for await (const part of answer.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + part).split('\n');
    rest = lines.pop();
    for (const line of lines.filter((line) => line.startsWith('data:'))) {
      const event = JSON.parse(line.slice('data:'.length));
      const isDecision = ['permission.granted', 'permission.denied'].includes(event.type);
      if (isDecision && event.payload.request_id === request) return event;
    }
  }
  throw new Error('the events ended without a decision');
}
