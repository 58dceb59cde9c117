// A server built with the TypeScript SDK that has everything the conformance suites ask for.
//
// It serves both eras at one URL: 2026-07-28 by the SDK's handler, and older revisions in sessions.
// What it lists and answers is in everything.json. It prints one JSON line with its `url`.

import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const { tools, results, asks, prompts, messages, resources, templates, contents } = JSON.parse(
  readFileSync(new URL('everything.json', import.meta.url), 'utf8'),
);
// The pinned packages are installed outside of the source tree.
const peer = createRequire(join(process.argv[2], 'package.json'));
const sdk = peer('@modelcontextprotocol/server');
const node = peer('@modelcontextprotocol/node');

const { ProtocolError, ProtocolErrorCode, inputRequired } = sdk;
const codec = sdk.createRequestStateCodec({ key: randomUUID() + randomUUID() });
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const invalid = (text, data) => new ProtocolError(ProtocolErrorCode.InvalidParams, text, data);
const said = (text) => ({ content: [{ type: 'text', text }] });

/** A document with `$name` replaced by the arguments of these names. */
function filled(document, args) {
  const put = (_, value) =>
    typeof value === 'string' ? value.replace(/\$(\w+)/g, (all, name) => args[name] ?? all) : value;
  return JSON.parse(JSON.stringify(document, put));
}

/** What a tool or prompt still has to ask, or nothing when all answers are there. */
async function asked(name, args, ctx) {
  const rounds = asks[name];
  if (!rounds) return undefined;
  const state = ctx.mcpReq.requestState() ?? { round: 0 };
  const answers = ctx.mcpReq.inputResponses ?? {};
  let round = state.round;
  if (Object.keys(rounds[round]).every((key) => answers[key] || !wants(name, key, ctx))) round += 1;
  if (round === rounds.length) return undefined;
  const open = Object.entries(rounds[round]).filter(([key]) => wants(name, key, ctx));
  const inputRequests = filled(Object.fromEntries(open), args);
  return inputRequired({ inputRequests, requestState: await codec.mint({ round }) });
}

/** One tool asks only for what the client has declared. */
function wants(name, key, ctx) {
  if (name !== 'test_input_required_result_capabilities') return true;
  return Boolean(ctx.mcpReq.envelope?.['io.modelcontextprotocol/clientCapabilities']?.[key]);
}

async function call(name, args, ctx) {
  if (results[name]) return results[name];
  const token = ctx.mcpReq._meta?.progressToken;
  const progress = async (step, total) => {
    if (token === undefined) return;
    const params = { progressToken: token, progress: step, total };
    await ctx.mcpReq.notify({ method: 'notifications/progress', params });
  };
  switch (name) {
    case 'test_tool_with_logging':
      for (const text of ['Tool execution started', 'Tool processing data', 'Done']) {
        await ctx.mcpReq.log('info', text);
        await pause(50);
      }
      return said('Logged');
    case 'test_logging_tool':
      await ctx.mcpReq.log('debug', 'a debug message');
      await ctx.mcpReq.log('error', 'an error message');
      return said('Logged');
    case 'test_tool_with_progress':
      for (const step of [0, 50, 100]) {
        await progress(step, 100);
        await pause(50);
      }
      return said('Reported');
    case 'test_reconnection':
      await pause(100);
      ctx.http?.closeSSE?.();
      await pause(100);
      return said('Reconnection test completed successfully');
    case 'test_streaming_elicitation':
      await progress(1, 2);
      break;
    case 'test_trigger_tool_change':
      await changed('tools');
      return said('The list of tools changed');
    case 'test_trigger_prompt_change':
      await changed('prompts');
      return said('The list of prompts changed');
  }
  return (await asked(name, args, ctx)) ?? said(finished(name, ctx));
}

function finished(name, ctx) {
  const text = `${name} got ${JSON.stringify(ctx.mcpReq.inputResponses ?? {})}`;
  return name.endsWith('_state') ? `state-ok: ${text}` : text;
}

async function read({ uri }) {
  if (contents[uri]) return { contents: [contents[uri]] };
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
  if (id === undefined) throw invalid('Resource not found', { uri });
  const text = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` });
  return { contents: [{ uri, mimeType: 'application/json', text }] };
}

function newServer() {
  const capabilities = {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { subscribe: true, listChanged: true },
    completions: {},
    logging: {},
  };
  const server = new sdk.McpServer(
    { name: 'everything-typescript', version: '1' },
    { capabilities, requestState: { verify: codec.verify } },
  );
  for (const { name, description, inputSchema } of tools) {
    const config = { description, inputSchema: sdk.fromJsonSchema(inputSchema) };
    server.registerTool(name, config, (args, ctx) => call(name, args ?? {}, ctx));
  }
  // The rest is quoted from the file, which the SDK's registrations would write anew.
  const on = (method, handler) =>
    server.server.setRequestHandler(method, ({ params }, ctx) => handler(params ?? {}, ctx));
  on('prompts/list', () => ({ prompts }));
  on('prompts/get', async ({ name, arguments: args = {} }, ctx) => {
    if (!messages[name]) throw invalid(`no prompt is called ${name}`);
    return (await asked(name, args, ctx)) ?? filled(messages[name], args);
  });
  on('resources/list', () => ({ resources }));
  on('resources/templates/list', () => ({ resourceTemplates: templates }));
  on('resources/read', read);
  on('resources/subscribe', () => ({}));
  on('resources/unsubscribe', () => ({}));
  const completion = { values: ['paris'], total: 1, hasMore: false };
  on('completion/complete', () => ({ completion }));
  return server;
}

const sessions = new Map();
const modern = sdk.createMcpHandler(newServer, { legacy: 'reject' });
const serveModern = node.toNodeHandler(modern);

async function changed(list) {
  modern.notify[`${list}Changed`]();
  const method = `notifications/${list}/list_changed`;
  const tell = ({ server }) => server.server.notification({ method }).catch(() => {});
  await Promise.all([...sessions.values()].map(tell));
}

/** Events that a client may ask for again, in the order in which they were sent. */
class Events {
  all = [];

  async storeEvent(stream, message) {
    this.all.push({ stream, message });
    return String(this.all.length);
  }

  async replayEventsAfter(last, { send }) {
    const { stream } = this.all[Number(last) - 1];
    for (let index = Number(last); index < this.all.length; index += 1) {
      const event = this.all[index];
      const isMessage = Object.keys(event.message ?? {}).length > 0;
      if (event.stream === stream && isMessage) await send(String(index + 1), event.message);
    }
    return stream;
  }
}

async function serveLegacy(request, response, body) {
  const id = request.headers['mcp-session-id'];
  if (id !== undefined || body?.method !== 'initialize') {
    const session = sessions.get(id);
    if (session) return session.transport.handleRequest(request, response, body);
    response.writeHead(id === undefined ? 400 : 404, { 'content-type': 'application/json' });
    const code = id === undefined ? -32000 : -32001;
    const error = { code, message: id === undefined ? 'no session' : 'Session not found' };
    return response.end(JSON.stringify({ jsonrpc: '2.0', id: body?.id ?? null, error }));
  }
  const server = newServer();
  const transport = new node.NodeStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    eventStore: new Events(),
    retryInterval: 100,
    onsessioninitialized: (session) => sessions.set(session, { server, transport }),
    onsessionclosed: (session) => sessions.delete(session),
  });
  await server.connect(transport);
  return transport.handleRequest(request, response, body);
}

const isHostAllowed = node.localhostHostValidation();
const isOriginAllowed = node.localhostOriginValidation();

const http = createServer(async (request, response) => {
  if (!isHostAllowed(request, response) || !isOriginAllowed(request, response)) return;
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString();
  let body;
  try {
    body = text ? JSON.parse(text) : undefined;
  } catch {
    response.writeHead(400).end();
    return;
  }
  const isLegacy = await sdk.isLegacyRequest(await node.toWebRequest(request, body), body);
  await (isLegacy ? serveLegacy : serveModern)(request, response, body);
});
http.listen(0, '127.0.0.1', () => {
  console.log(JSON.stringify({ url: `http://127.0.0.1:${http.address().port}/mcp` }));
});
