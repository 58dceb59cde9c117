// Real clients, and the suite's scenarios for authorization servers, at narthex's own door.
//
// Arguments: the folder with node_modules, the narthex binary, and a Python with the SDK 2.x. A
// human signs in once, and then lets each client in on the page of consent. Prints one JSON line of
// facts.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Browser } from './browser.mjs';
import { Daemon, within } from './daemon.mjs';
import * as clients from './door_clients.mjs';

const NAME = 'everything';
const TOOL = `mcp__${NAME}__echo`;
/** All servers of the daemon. */
const CHOICE = 'live';
const READY_MS = 20_000;
const SUITE_MS = 30_000;

const [peers, narthex, interpreter] = process.argv.slice(2);
const modules = join(peers, 'node_modules');

/** Signs a human in, who is an operator, by a link that works once. */
async function signIn(daemon, browser) {
  const made = await daemon.api('/api/principals', 'POST', { name: 'ada', is_operator: true });
  if (made.status !== 201) throw new Error(`no human: ${made.status} ${JSON.stringify(made.body)}`);
  const { status, body } = await daemon.api('/api/principals/ada/sign-in-links', 'POST');
  if (status !== 201) throw new Error(`no link: ${status} ${JSON.stringify(body)}`);
  await browser.visit(body.url, (address) => new URL(address).pathname === '/');
}

/** The answer of the human: a choice that the page has to offer. */
function consent(fields, { status, text }) {
  const radios = text.matchAll(/<input type="radio" name="servers" value="([^"]*)" required/g);
  const offered = [...radios].map(([, value]) => value);
  if (!offered.includes(CHOICE)) throw new Error(`${CHOICE} is not offered (${status}): ${text}`);
  return { ...fields, servers: CHOICE, decision: 'approve' };
}

const json = async (url) => (await fetch(url)).json();

/** The challenges and documents at an endpoint, by the address that a user has typed. */
async function documents(url) {
  const found = {};
  for (const method of ['POST', 'GET', 'DELETE']) {
    const { status, headers } = await fetch(url, { method });
    const challenge = headers.get('www-authenticate') ?? '';
    found[method] = status;
    found.metadata = challenge.match(/resource_metadata="([^"]*)"/)?.[1];
    if (!found.metadata) throw new Error(`${method} ${url}: ${status} ${challenge}`);
  }
  const resource = await json(found.metadata);
  const [issuer] = resource.authorization_servers;
  const server = await json(`${issuer}/.well-known/oauth-authorization-server`);
  const statuses = [found.POST, found.GET, found.DELETE];
  const facts = { statuses, resource: resource.resource === url, issuer: server.issuer === issuer };
  return { facts, issuer, server };
}

async function post(url, form) {
  const response = await fetch(url, { method: 'POST', body: new URLSearchParams(form) });
  const text = await response.text();
  return { status: response.status, body: text ? JSON.parse(text) : undefined };
}

/** Renewal twice with one token, as after a lost answer, and then revocation. */
async function renewal(url, server, { client, tokens }) {
  const client_id = client.client_id;
  const form = { grant_type: 'refresh_token', client_id, resource: url };
  const renew = () => post(server.token_endpoint, { ...form, refresh_token: tokens.refresh_token });
  const [first, second] = [await renew(), await renew()];
  const use = async ({ body }) => {
    const headers = { authorization: `Bearer ${body.access_token}` };
    return (await fetch(url, { headers, method: 'POST' })).status;
  };
  const before = await use(first);
  const token = first.body.refresh_token;
  const revoked = await post(server.revocation_endpoint, { token, client_id });
  return {
    statuses: [first.status, second.status, revoked.status],
    rotates: token !== undefined && token !== tokens.refresh_token,
    grace: second.body.access_token !== undefined && second.body.refresh_token === undefined,
    isUsable: before !== 401,
    afterRevocation: await use(first),
  };
}

/** The suite's scenarios for authorization servers: the exit code, and what its checks say. */
async function suite(url, issuer, server, letIn) {
  const port = await clients.freePort();
  const redirect_uris = [`http://127.0.0.1:${port}/callback`];
  const body = { client_name: 'suite', redirect_uris, token_endpoint_auth_method: 'none' };
  const registered = await fetch(server.registration_endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const { client_id } = await registered.json();
  const script = join(modules, 'conformance-next/dist/index.js');
  const words = [script, 'authorization', '--url', issuer, '--client-id', client_id];
  words.push('--port', String(port), '--resource', url);
  const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    let text = '';
    child.stdout.on('data', (bytes) => (text += bytes));
    const ended = new Promise((done) => child.on('close', done));
    const follows = clients.follow(child.stdout, letIn);
    const code = await within(SUITE_MS, 'the suite ends', Promise.race([ended, follows]));
    const [, passed, failed] = text.match(/Total: (\d+) passed, (\d+) failed/) ?? [];
    return [code, Number(passed), Number(failed)];
  } finally {
    child.kill('SIGKILL');
  }
}

/** Each client, with the texts of its calls; or its failure, so that the others are tried, too. */
async function everyClient(options) {
  const all = {
    'typescript, legacy': () => clients.typescript({ ...options, era: 'legacy' }),
    'typescript, modern': () => clients.typescript({ ...options, era: 'modern' }),
    python: () => clients.python({ ...options, interpreter }),
    'mcp-remote': () => clients.mcpRemote(options),
    inspector: () => clients.inspector(options),
  };
  const found = {};
  let kept;
  for (const [name, run] of Object.entries(all)) {
    try {
      const answer = await run();
      kept ??= answer.kept;
      const isListed = answer.tools.length === 0 || answer.tools.includes(TOOL);
      found[name] = isListed && !answer.isError ? answer.text : answer;
    } catch (error) {
      found[name] = String(error?.stack ?? error);
    }
  }
  return { found, kept };
}

const folder = mkdtempSync(join(tmpdir(), 'narthex-door-'));
const script = join(modules, '@modelcontextprotocol/server-everything/dist/index.js');
const everything = { transport: 'stdio', command: process.execPath, args: [script, 'stdio'] };
const servers = { [NAME]: everything };
const daemon = await Daemon.start(narthex, folder, servers);
try {
  await daemon.ready(NAME, READY_MS);
  // Cookies and pages are at this name, where no `http.public_url` is set.
  const base = `http://localhost:${new URL(daemon.url).port}`;
  const url = `${base}/mcp`;
  const browser = new Browser();
  await signIn(daemon, browser);
  const letIn = (link) =>
    browser.visit(link, (address) => new URL(address).origin !== base, consent);

  const { facts, issuer, server } = await documents(url);
  const byAddress = await documents(`${daemon.url}/mcp`);
  const options = { peers, url, tool: TOOL, args: { message: 'let in' }, letIn };
  const { found, kept } = await everyClient(options);
  console.log(JSON.stringify({
    documents: facts,
    byAddress: byAddress.facts,
    suite: await suite(url, issuer, server, letIn),
    ...found,
    renewal: kept && (await renewal(url, server, kept)),
  }));
  await daemon.stop();
} finally {
  daemon.kill();
  rmSync(folder, { recursive: true, force: true });
}
process.exit();
