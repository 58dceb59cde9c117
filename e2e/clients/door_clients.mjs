// Real clients that sign in at a protected endpoint by themselves: each finds the authorization
// server, registers, leads its user to a page, and then lists and calls.
//
// Each function gets `peers` (the folder with node_modules), the `url` of the endpoint, the `tool`
// to call with its `args`, and `letIn`. That plays the user: it opens a link, consents, and gives
// the address that leads back to the client. It gives none if it has gone there itself.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';

import { within } from './daemon.mjs';

const LINK_MS = 20_000;
const DONE_MS = 30_000;
const CALLBACK = 'http://127.0.0.1:9/callback';

/**
 * The TypeScript client 2.x, in the era `legacy` or `modern`. Gives its tokens, too. In `kept` it
 * can have a `client` that has registered before, and `callback` is its address for browsers.
 */
export async function typescript(options) {
  const { peers, url, tool, args, letIn, era, kept = {}, callback = CALLBACK } = options;
  const sdk = createRequire(join(peers, 'package.json'))('@modelcontextprotocol/client');
  const state = crypto.randomUUID();
  let back;
  const authProvider = {
    redirectUrl: callback,
    clientMetadata: {
      client_name: `narthex-e2e-${era}`,
      redirect_uris: [callback],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      application_type: 'native',
    },
    state: () => state,
    clientInformation: () => kept.client,
    saveClientInformation: (client) => (kept.client = client),
    tokens: () => kept.tokens,
    saveTokens: (tokens) => (kept.tokens = tokens),
    codeVerifier: () => kept.verifier,
    saveCodeVerifier: (verifier) => (kept.verifier = verifier),
    redirectToAuthorization: async (link) => (back = new URL(await letIn(link.href))),
  };
  const mode = era === 'modern' ? { pin: '2026-07-28' } : 'legacy';
  const open = async () => {
    const client = new sdk.Client(
      { name: `narthex-e2e-${era}`, version: '1' },
      { versionNegotiation: { mode } },
    );
    const transport = new sdk.StreamableHTTPClientTransport(new URL(url), { authProvider });
    try {
      await client.connect(transport);
      return client;
    } catch (error) {
      if (!back) throw error;
      if (back.searchParams.get('state') !== state) throw new Error(`another state: ${back}`);
      await transport.finishAuth(back.searchParams);
      back = undefined;
      return undefined;
    }
  };
  const client = (await open()) ?? (await open());
  try {
    const { tools } = await client.listTools();
    const result = await client.callTool({ name: tool, arguments: args });
    return { ...answer(tools, result), kept };
  } finally {
    await client.close();
  }
}

/** The Python client 2.x, whose driver prints the link and reads the address that leads back. */
export async function python({ interpreter, url, tool, args, letIn }) {
  const script = new URL('door_python.py', import.meta.url).pathname;
  const words = ['-B', script, '--url', url, '--tool', tool, '--arguments', JSON.stringify(args)];
  const child = spawn(interpreter, words, { stdio: ['pipe', 'pipe', 'inherit'] });
  try {
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const next = async (what) => {
      const { value } = await within(DONE_MS, what, lines.next());
      if (value === undefined) throw new Error(`the Python client ended without ${what}`);
      return JSON.parse(value);
    };
    const { link } = await next('a link');
    child.stdin.write(`${await letIn(link)}\n`);
    const { tools, result } = await next('an answer');
    return answer(tools, result);
  } finally {
    child.kill('SIGKILL');
  }
}

/** `mcp-remote`, which clients of stdio start, behind the TypeScript client. */
export async function mcpRemote({ peers, url, tool, args, letIn }) {
  const require = createRequire(join(peers, 'package.json'));
  const { Client } = require('@modelcontextprotocol/client');
  const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');
  const home = mkdtempSync(join(tmpdir(), 'narthex-remote-'));
  const script = join(peers, 'node_modules/mcp-remote/dist/proxy.js');
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [script, url, String(await freePort()), '--host', '127.0.0.1'],
    env: { ...process.env, HOME: home, MCP_REMOTE_CONFIG_DIR: home },
    stderr: 'pipe',
  });
  const client = new Client({ name: 'narthex-e2e-remote', version: '1' });
  try {
    const connects = Promise.race([client.connect(transport), follow(transport.stderr, letIn)]);
    await within(DONE_MS, 'mcp-remote connects', connects);
    const { tools } = await client.listTools();
    return answer(tools, await client.callTool({ name: tool, arguments: args }));
  } finally {
    await client.close();
    rmSync(home, { recursive: true, force: true });
  }
}

/** The command line of the Inspector, which lists nothing when it calls. */
export async function inspector({ peers, url, tool, args, letIn }) {
  const home = mkdtempSync(join(tmpdir(), 'narthex-inspector-'));
  const config = join(home, 'servers.json');
  writeFileSync(config, JSON.stringify({ mcpServers: { peer: { type: 'streamable-http', url } } }));
  const launcher = '@modelcontextprotocol/inspector/clients/launcher/build/index.js';
  const words = [join(peers, 'node_modules', launcher), '--cli', '--config', config];
  words.push('--server', 'peer', '--protocol-era', 'legacy', '--format', 'json');
  words.push('--callback-url', `http://127.0.0.1:${await freePort()}/oauth/callback`);
  words.push('--method', 'tools/call', '--tool-name', tool);
  words.push('--tool-args-json', JSON.stringify(args));
  const child = spawn(process.execPath, words, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      HOME: home,
      PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
      MCP_AUTO_OPEN_ENABLED: 'true',
      MCP_INSPECTOR_SECRET_STORE: 'memory',
    },
  });
  try {
    let text = '';
    child.stdout.on('data', (bytes) => (text += bytes));
    const ended = new Promise((done) => child.on('close', done));
    const follows = follow(child.stderr, letIn);
    const code = await within(DONE_MS, 'the Inspector ends', Promise.race([ended, follows]));
    if (code !== 0) throw new Error(`the Inspector ended with ${code}: ${text}`);
    const printed = JSON.parse(text);
    return answer([], printed.result ?? printed);
  } finally {
    child.kill('SIGKILL');
    rmSync(home, { recursive: true, force: true });
  }
}

/**
 * Opens the first link that a program prints, and then the address to which that leads back, where
 * the program listens. Only ends if that fails.
 */
export async function follow(output, letIn) {
  const link = await within(LINK_MS, 'a link is printed', linkIn(output));
  const back = await letIn(link);
  const response = back && (await fetch(back));
  if (response?.ok === false) throw new Error(`the client's page answers ${response.status}`);
  return new Promise(() => {});
}

/** The first address with a `state` in what a program prints. */
export function linkIn(output) {
  let text = '';
  return new Promise((done) => {
    output.on('data', (bytes) => {
      text += bytes;
      process.stderr.write(bytes);
      const found = text.match(/https?:\/\/\S+[?&]state=\S+(?=\s)/);
      if (found) done(found[0]);
    });
  });
}

function answer(tools, result) {
  const text = (result.content ?? []).map((block) => block.text ?? '').join('\n');
  const names = tools.map((tool) => tool.name ?? tool);
  return { tools: names, isError: result.isError ?? false, text };
}

export async function freePort() {
  const server = createServer();
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}
