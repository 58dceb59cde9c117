// The story of a sign-in at a protected server, for drivers with an authorization server each.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Browser } from './browser.mjs';
import { Daemon, linkOf, pause, signIn, within } from './daemon.mjs';

const NAME = 'protected';
const READY_MS = 15_000;
const DONE_MS = 15_000;
const RENEWED_MS = 20_000;
/** Calls that meet one expired token at the same time. */
const BESIDE = 4;

/**
 * Signs in by the command line and a scripted browser, calls across a renewal, restarts the daemon
 * and signs out. `answer` fills in the authorization server's forms, and `counts` has its
 * `registrations`, `consents`, `renewals` and `revoked` grants. Gives the facts that were found.
 */
export async function story({ peer, narthex, resource, counts, answer }) {
  const folder = mkdtempSync(join(tmpdir(), 'narthex-oauth-'));
  const servers = { [NAME]: { transport: 'http', url: resource } };
  const found = {};
  let daemon;
  try {
    daemon = await Daemon.start(narthex, folder, servers);
    const asks = await daemon.rowUntil(NAME, (row) => row.state === 'authenticating', READY_MS);
    found.before = [asks.state, linkOf(asks) !== undefined, counts.consents];

    found.authorized = await authorize(daemon, answer);
    await daemon.ready(NAME, READY_MS);
    const first = await whoami(peer, daemon);
    Object.assign(found, { subject: first.subject, scopes: first.scopes });

    const renewed = await callsUntilRenewed(peer, daemon, first.digest);
    found.renewed = renewed.digests.size;
    // As many as there were new tokens, and perhaps one whose token no call has shown yet.
    found.renewedOnce = counts.renewals - (renewed.digests.size - 1) <= 1;
    found.sameSubject = renewed.last.subject === first.subject;
    found.sameClient = renewed.last.clientId === first.clientId;

    const listen = new URL(daemon.url).host;
    await daemon.stop();
    daemon = await Daemon.start(narthex, folder, servers, { listen });
    await daemon.ready(NAME, READY_MS);
    const again = await whoami(peer, daemon);
    found.afterRestart = [again.subject, again.clientId === first.clientId];
    found.once = [counts.registrations, counts.consents];
    found.revokedByReuse = counts.revoked;

    const out = daemon.command('mcp', 'sign-out', NAME);
    found.signedOut = await within(DONE_MS, 'narthex mcp sign-out ends', out.done);
    if (found.signedOut !== 0) console.error(out.stdout, out.stderr);
    await daemon.rowUntil(NAME, (row) => row.state === 'authenticating', READY_MS);
    found.revoked = counts.revoked > 0;
    found.refusedAfter = await isRefused(peer, daemon);
    await daemon.stop();
    return found;
  } finally {
    daemon?.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** `narthex mcp authorize`, and the browser that its link is opened in. Gives the exit code. */
async function authorize(daemon, answer) {
  const run = daemon.command('mcp', 'authorize', NAME, '--no-browser');
  const link = await within(DONE_MS, 'narthex mcp authorize prints a link', linkIn(run));
  await signIn(new Browser(), link, answer);
  const code = await within(DONE_MS, 'narthex mcp authorize ends', run.done);
  if (code !== 0) throw new Error(`narthex mcp authorize: ${code}\n${run.stdout}${run.stderr}`);
  return code;
}

/** The first address in the output of a command, as a person would copy it. */
async function linkIn(run) {
  let hasEnded = false;
  run.done.finally(() => (hasEnded = true));
  for (;;) {
    const found = `${run.stdout}${run.stderr}`.match(/https?:\/\/[^\s"'<>`]+(?=\s)/);
    if (found) return found[0];
    if (hasEnded) throw new Error(`no link is printed:\n${run.stdout}${run.stderr}`);
    await pause(20);
  }
}

async function connect(peer, daemon) {
  const { Client, StreamableHTTPClientTransport } = peer('@modelcontextprotocol/client');
  const mode = { versionNegotiation: { mode: 'auto' } };
  const client = new Client({ name: 'narthex-e2e-oauth', version: '1' }, mode);
  const requestInit = { headers: { Authorization: `Bearer ${daemon.token}` } };
  const url = new URL(`${daemon.url}/mcp/${NAME}`);
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit }));
  return client;
}

async function call(client) {
  const result = await client.callTool({ name: 'whoami', arguments: {} });
  if (result.isError) throw new Error(`whoami failed: ${JSON.stringify(result)}`);
  return JSON.parse(result.content[0].text);
}

async function whoami(peer, daemon) {
  const client = await connect(peer, daemon);
  try {
    return await call(client);
  } finally {
    await client.close();
  }
}

/** Calls side by side, through one connection, until two other tokens have come. */
async function callsUntilRenewed(peer, daemon, digest) {
  const client = await connect(peer, daemon);
  const digests = new Set([digest]);
  const deadline = Date.now() + RENEWED_MS;
  let last;
  try {
    while (digests.size < 3) {
      if (Date.now() > deadline) throw new Error(`after ${RENEWED_MS} ms: ${digests.size} tokens`);
      const all = await Promise.all(Array.from({ length: BESIDE }, () => call(client)));
      for (const facts of all) digests.add(facts.digest);
      last = all.at(-1);
      await pause(100);
    }
  } finally {
    await client.close();
  }
  return { digests, last };
}

/** True if a call fails, as a result or as an error. */
async function isRefused(peer, daemon) {
  try {
    await whoami(peer, daemon);
    return false;
  } catch {
    return true;
  }
}
