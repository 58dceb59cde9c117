// The pages by which a human signs in to servers, in Chromium: the connection of an account to a
// server of the catalog, the sign-in to a server of the configuration, and a click without account.
//
// Arguments: the folder with node_modules, and the narthex binary. Prints one JSON line of facts.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { SCOPE, listen, protect } from '../servers/protected.mjs';
import { Callback, Chromium } from './chromium.mjs';
import { Daemon, linkOf, within } from './daemon.mjs';
import * as clients from './door_clients.mjs';
import { Human, enroll, run, signOut, withPasskey } from './human.mjs';

const LIVE = 'protected';
const STORED = 'notes';
const PATH = `/workspaces/default/connections/${STORED}`;
const READY_MS = 15_000;

const [peers, narthex] = process.argv.slice(2);
const peer = createRequire(join(peers, 'package.json'));

/** npm's oidc-provider, and a server that takes its tokens. */
async function provide() {
  const { default: Provider } = await import(pathToFileURL(peer.resolve('oidc-provider')).href);
  const { server, issuer, close } = await listen(createServer);
  let resource;
  const provider = new Provider(issuer, {
    pkce: { required: () => true },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    issueRefreshToken: (_, client) => client.grantTypeAllowed('refresh_token'),
    cookies: { keys: ['for tests'] },
    features: {
      devInteractions: { enabled: true },
      registration: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        useGrantedResource: () => true,
        getResourceServerInfo: (_, audience) => ({
          ...{ scope: SCOPE, audience, accessTokenTTL: 3600, accessTokenFormat: 'opaque' },
        }),
      },
    },
  });
  server.handler = provider.callback();
  const verify = async (value, audience) => {
    const token = await provider.AccessToken.find(value);
    if (!token?.isValid || token.aud !== audience) return undefined;
    const { clientId, accountId: subject, exp: expiresAt } = token;
    return { clientId, subject, scopes: [...token.scopes], expiresAt };
  };
  const guarded = await protect(peer, { issuer, verify });
  ({ resource } = guarded);
  return { issuer, resource, close: () => Promise.all([guarded.close(), close()]) };
}

/** Fills in the forms of the provider, which are two, or one if it knows the human. */
async function atProvider({ page }, issuer) {
  const isThere = (address) => address.origin === issuer;
  await page.waitForURL((address) => isThere(address) || isEnd(address));
  while (isThere(new URL(page.url()))) {
    const login = page.locator('input[name="login"]');
    if (await login.count()) {
      await login.fill('ada');
      await page.locator('input[name="password"]').fill('x');
    }
    const here = page.url();
    await page.locator('button[type="submit"]').first().click();
    await page.waitForURL((address) => address.href !== here);
  }
}

const isEnd = (address) => address.pathname.startsWith('/oauth/callback');

/** The account of a human at a server of the catalog: without one, with one, and without again. */
async function connection(chromium, issuer, base) {
  const { page } = chromium;
  const states = [];
  const state = async (words) => {
    await page.getByText(words).waitFor();
    states.push(words);
  };
  await chromium.open(`${base}${PATH}`);
  await withPasskey(chromium);
  await state('Your account is not connected.');
  await chromium.look('connection-none');
  // A refusal at the provider leads back to the page.
  await chromium.press('Connect');
  await page.locator('main a.button').click();
  await page.getByRole('link', { name: /cancel/i }).click();
  await page.waitForURL(isEnd);
  await chromium.heading('That did not work');
  await chromium.look('connection-declined');
  const hasCommand = (await page.locator('code').count()) > 0;
  await chromium.press('Back to the connection');
  await state('Your account is not connected.');
  const declined = [new URL(page.url()).pathname === PATH, hasCommand];
  await chromium.press('Connect');
  await chromium.heading(/^Connect to /);
  await chromium.look('connection-onward');
  await page.locator('main a.button').click();
  await atProvider(chromium, issuer);
  await chromium.heading(/^Connected to /);
  await chromium.look('connection-done');
  const end = page.url();
  await chromium.press('See the connection');
  await state('Your account is connected.');
  const { pairs } = await chromium.facts();
  await chromium.look('connection');
  await chromium.press('Disconnect');
  await state('Your account is not connected.');
  await chromium.look('connection-ended');
  // The address that led back counts once.
  const status = await chromium.open(end);
  await chromium.heading('That did not work');
  await chromium.look('connection-refused');
  // A stranger sees no command, which would name paths of the machine.
  const again = [status, await page.locator('code').count()];
  return { states, declined, issuer: Object.values(pairs).includes(issuer), again };
}

/** The sign-in to a server of the configuration, refused at first. */
async function live(chromium, daemon, issuer) {
  const asks = await daemon.rowUntil(LIVE, (row) => linkOf(row) !== undefined, READY_MS);
  const { page } = chromium;
  await chromium.open(linkOf(asks));
  await page.getByRole('link', { name: /cancel/i }).click();
  await page.waitForURL(isEnd);
  await chromium.heading('That did not work');
  await chromium.look('server-refused');
  const remedy = await page.locator('code').innerText();
  // The remedy that the page names.
  const command = daemon.command('mcp', 'authorize', LIVE, '--no-browser');
  const { stdout, stderr } = command.child;
  const link = Promise.race([clients.linkIn(stdout), clients.linkIn(stderr)]);
  await chromium.open(await within(READY_MS, 'narthex mcp authorize prints a link', link));
  await atProvider(chromium, issuer);
  await chromium.heading(`Signed in to ${LIVE}`);
  await chromium.look('server-done');
  const code = await within(READY_MS, 'narthex mcp authorize ends', command.done);
  const isNamed = remedy.startsWith(`narthex mcp authorize ${LIVE}`);
  return [isNamed, code, (await daemon.ready(LIVE, READY_MS)).state];
}

/** A daemon at which a click in a browser of this machine lets a client in. */
async function click(folder, everything) {
  const settings = '[oauth]\nlocal_click = true\n';
  const daemon = await Daemon.start(narthex, folder, { everything }, { settings });
  const [chromium, callback] = await Promise.all([Chromium.start(peers), Callback.listen()]);
  try {
    await daemon.ready('everything', READY_MS);
    const letIn = new Human(chromium, callback).letIn('live', { picture: 'click' });
    const { text } = await clients.typescript({
      ...{ peers, url: `http://localhost:${new URL(daemon.url).port}/mcp`, letIn, era: 'legacy' },
      ...{ tool: 'mcp__everything__echo', args: { message: 'clicked' }, callback: callback.url },
    });
    await daemon.stop();
    return { text, ...chromium.faults };
  } finally {
    await Promise.all([chromium.close(), callback.close()]);
    daemon.kill();
  }
}

const folder = mkdtempSync(join(tmpdir(), 'narthex-pages-'));
const script = join(peers, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
const everything = { transport: 'stdio', command: process.execPath, args: [script, 'stdio'] };
const { issuer, resource, close } = await provide();
const port = await clients.freePort();
const base = `http://localhost:${port}`;
let daemon;
let chromium;
try {
  const servers = { [LIVE]: { transport: 'http', url: resource } };
  const settings = `[http]\npublic_url = "${base}"\n`;
  const listens = { listen: `127.0.0.1:${port}`, settings };
  daemon = await Daemon.start(narthex, join(folder, 'one'), servers, listens);
  const file = join(folder, 'notes.json');
  writeFileSync(file, JSON.stringify({ id: STORED, kind: 'remote_oauth', url: resource }));
  await run(daemon, 'servers', 'apply', '--file', file);
  chromium = await Chromium.start(peers, (origin) => origin === issuer);
  await enroll(daemon, chromium);
  await signOut(chromium);
  const found = {
    connection: await connection(chromium, issuer, base),
    live: await live(chromium, daemon, issuer),
    ...chromium.faults,
    click: await click(join(folder, 'two'), everything),
  };
  console.log(JSON.stringify(found));
  await daemon.stop();
} finally {
  await chromium?.close();
  daemon?.kill();
  await close();
  rmSync(folder, { recursive: true, force: true });
}
process.exit();
