// Sign-ins at narthex's own door in Chromium: the first human's passkey, real clients that are let
// in, refused and revoked, and the pages of errors.
//
// Arguments: the folder with node_modules, and the narthex binary. Prints one JSON line of facts.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Callback, Chromium } from './chromium.mjs';
import { Daemon } from './daemon.mjs';
import * as clients from './door_clients.mjs';
import { Human, NAME, PASSKEY, enroll, run, signOut, withPasskey } from './human.mjs';

const SERVER = 'everything';
const AGENT = 'reader';
const READY_MS = 20_000;
/** RFC 7636, appendix B. */
const CHALLENGE = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM';

const [peers, narthex] = process.argv.slice(2);
const script = join(peers, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
const program = { command: process.execPath, args: [script, 'stdio'] };
/** The catalog takes short commands alone, so the program is found by its name. */
const named = { ...program, command: 'node' };

/** An agent in the catalog, which attaches the server under another name. */
async function makeAgent(daemon, folder) {
  const server = { id: SERVER, ...named };
  const agent = { name: AGENT, mcpServers: { library: { ref: SERVER } } };
  for (const [kind, object] of Object.entries({ servers: server, agents: agent })) {
    const file = join(folder, `${kind}.json`);
    writeFileSync(file, JSON.stringify(object));
    await run(daemon, kind, 'apply', '--file', file);
  }
}

/** The clients that act for humans, as an operator sees them. */
async function connections(daemon) {
  const { status, body } = await daemon.api('/api/workspaces/default/mcp-clients');
  if (status !== 200) throw new Error(`no clients: ${status} ${JSON.stringify(body)}`);
  return body.items;
}

/** Registers a client and gives the address of its request, with some parameters changed. */
async function request(base, callback, changes = {}) {
  const response = await fetch(`${base}/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      client_name: 'a <b>bold</b> client',
      redirect_uris: [callback],
      token_endpoint_auth_method: 'none',
    }),
  });
  const { client_id } = await response.json();
  const parameters = {
    ...{ response_type: 'code', client_id, redirect_uri: callback, state: 's1' },
    ...{ code_challenge: CHALLENGE, code_challenge_method: 'S256', ...changes },
  };
  return `${base}/authorize?${new URLSearchParams(parameters)}`;
}

/** Pages of requests that cannot go on: the status and the heading of each. */
async function errors(chromium, base, callback, used) {
  const away = 'https://elsewhere.example/callback';
  const pages = {
    'client-unknown': await request(base, callback.url, { client_id: 'nxd_none' }),
    'client-malformed': await request(base, callback.url, { client_id: 'https://?\u0007' }),
    'document-lost': await request(base, callback.url, { client_id: 'https://client.invalid/id' }),
    'redirect-foreign': await request(base, callback.url, { redirect_uri: away }),
    'consent-gone': `${base}/consent/${'a'.repeat(43)}`,
    'link-used': used,
  };
  const found = {};
  for (const [name, address] of Object.entries(pages)) {
    const status = await chromium.open(address);
    const heading = await chromium.heading(/.+/);
    await chromium.look(name);
    const why = await chromium.page.getByRole('alert').innerText();
    const stays = chromium.page.url().startsWith(base);
    found[name] = [status, heading, stays && why.length > 0];
  }
  return found;
}

/** The programs on the page of the account. */
async function programs(chromium, base) {
  await chromium.open(`${base}/signin`);
  await chromium.heading(`Signed in as ${NAME}`);
  const rows = chromium.page.locator('form[action^="/signin/clients/"]').locator('..');
  return { rows, names: await rows.locator('span').allInnerTexts() };
}

const post = async (url, token) =>
  (await fetch(url, { method: 'POST', headers: { authorization: `Bearer ${token}` } })).status;

const folder = mkdtempSync(join(tmpdir(), 'narthex-chromium-'));
const port = await clients.freePort();
const base = `http://localhost:${port}`;
const url = `${base}/mcp`;
const servers = { [SERVER]: { transport: 'stdio', ...program } };
const daemon = await Daemon.start(narthex, folder, servers, {
  listen: `127.0.0.1:${port}`,
  settings: `[http]\npublic_url = "${base}"\n`,
});
let chromium;
let callback;
try {
  await daemon.ready(SERVER, READY_MS);
  await makeAgent(daemon, folder);
  // Clients show pages of their own at the end.
  const starting = Chromium.start(peers, (origin) => origin !== base);
  [chromium, callback] = await Promise.all([starting, Callback.listen()]);
  const human = new Human(chromium, callback);
  const found = {};

  const link = await enroll(daemon, chromium);
  found.passkeys = (await run(daemon, 'users', 'passkeys', 'list', NAME)).includes(PASSKEY);
  await signOut(chromium);
  found.stranger = await chromium.unrecognized(async () => {
    await withPasskey(chromium);
    const told = chromium.page.getByRole('alert').filter({ hasText: /./ });
    await told.waitFor();
    await chromium.look('passkey-refused');
    return [await told.innerText(), await chromium.heading('Sign in')];
  });

  // The client leads to the sign-in, and that to the page of consent.
  const common = { peers, url, args: { message: 'let in' }, callback: callback.url };
  const ofAgent = { ...common, tool: 'mcp__library__echo', era: 'modern' };
  const first = await clients.typescript({
    ...ofAgent,
    letIn: human.letIn(`agent default ${AGENT}`, { picture: 'consent' }),
  });
  found.typescript = first.text;
  found.otherServers = first.tools.filter((name) => name.startsWith(`mcp__${SERVER}__`));
  found.askedFirst = human.asked;
  const { pairs, ...shown } = human.shown;
  found.consent = {
    ...shown,
    host: pairs['proved host'],
    place: pairs['answer goes to'],
    address: pairs['full address'] === callback.url,
    endpoint: pairs.endpoint === url,
    scopes: pairs.scopes,
  };
  await chromium.open(`${base}/signin`);
  found.assurance = (await chromium.json('/api/me')).assurance;

  const remote = await clients.mcpRemote({
    ...common,
    tool: `mcp__${SERVER}__echo`,
    letIn: human.letIn('live', { waits: 'elsewhere' }),
  });
  found['mcp-remote'] = remote.text;
  found.askedAgain = human.asked;

  found.careless = await human.careless(await request(base, callback.url));

  const refused = await human.refuse(await request(base, callback.url));
  found.refused = { ...refused, iss: refused.iss === base };

  // No page is left out for a client without a proved host, but its connection is the same.
  const before = await connections(daemon);
  const again = await clients.typescript({
    ...ofAgent,
    kept: { client: first.kept.client },
    letIn: human.letIn(`agent default ${AGENT}`),
  });
  const after = await connections(daemon);
  const ids = (rows) => rows.map((row) => row.id).sort().join();
  found.again = [again.text, human.asked, ids(before) === ids(after), after.length];

  const { rows, names } = await programs(chromium, base);
  // Names end with a part of an id, and lines with the date.
  const plain = (name) => name.replace(/-[0-9a-f]{8} at/, ' at').replace(/\d{4}-\d\d-\d\d/, 'DAY');
  found.programs = names.map(plain).sort();
  await chromium.look('account-with-programs');
  const wasOpen = (await post(url, again.kept.tokens.access_token)) !== 401;
  await rows.filter({ hasText: 'modern' }).getByRole('button').click();
  await chromium.heading(`Signed in as ${NAME}`);
  await chromium.page.getByText('narthex-e2e-modern').waitFor({ state: 'detached' });
  const left = await programs(chromium, base);
  const isOpen = (await post(url, again.kept.tokens.access_token)) !== 401;
  found.revoked = [names.length, left.names.length, wasOpen, isOpen];

  found.errors = await errors(chromium, base, callback, link);
  Object.assign(found, chromium.faults);
  console.log(JSON.stringify(found));
  await daemon.stop();
} finally {
  await chromium?.close();
  await callback?.close();
  daemon.kill();
  rmSync(folder, { recursive: true, force: true });
}
process.exit();
