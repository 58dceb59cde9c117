// Driver for the client leg of the conformance suite: narthex with the suite's server behind it.
//
// Arguments: the folder with node_modules, the narthex binary, and the address of the suite's
// server, which the suite appends. The driver starts a daemon with that server, plays the browser
// of each sign-in, and then lists and calls through the daemon. It exits with 1 and a message on
// stderr if the server cannot be used: some scenarios want that.

import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Browser } from './browser.mjs';
import { Daemon, described, linkOf, signIn } from './daemon.mjs';

const NAME = 'suite';
/** The client id that the suite demands of clients with a metadata document. */
const CLIENT_METADATA_URL = 'https://conformance-test.local/client-metadata.json';
/** The suite ends a client after 30 s. */
const ALL_MS = 25_000;
const SETTLED_MS = 10_000;
/** A server that waits for a sign-in without a link was refused one, or tokens have just come. */
const STUCK_MS = 4_000;
/** A refused call has its link soon, or there is none. */
const LINK_MS = 3_000;
const SIGN_INS = 3;

const [peers, narthex, url] = process.argv.slice(2);
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? '';
const version = process.env.MCP_CONFORMANCE_PROTOCOL_VERSION ?? '2025-11-25';
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');
const sdk = createRequire(join(peers, 'package.json'))('@modelcontextprotocol/client');

/** The entry's authentication; most scenarios have none, so that the server's challenge counts. */
function auth() {
  if (scenario.startsWith('auth/client-credentials-')) {
    const { client_id: clientId, client_secret: clientSecret } = context;
    if (clientSecret) return { mode: 'clientCredentials', clientId, clientSecret };
    const { private_key_pem: privateKey, signing_algorithm: algorithm } = context;
    return { mode: 'clientCredentials', clientId, privateKey, algorithm };
  }
  if (context.idp_id_token) {
    const { client_id: clientId, client_secret: clientSecret } = context;
    const { idp_client_id, idp_token_endpoint: tokenUrl, idp_id_token: idToken } = context;
    const exchange = { type: 'idJag', tokenUrl, clientId: idp_client_id, idToken };
    return { mode: 'authorizationCode', client: { clientId, clientSecret }, exchange };
  }
  if (context.client_id) {
    const client = { clientId: context.client_id, clientSecret: context.client_secret };
    return { mode: 'authorizationCode', client };
  }
  return version < '2025-06-18' ? { mode: 'authorizationCode', legacy: true } : undefined;
}

const visited = new Set();

const isNew = (link) => link !== undefined && !visited.has(link) && visited.size < SIGN_INS;

/** True of rows in which nothing happens any more without a person. */
function settled() {
  let since;
  return (row) => {
    if (row.state !== 'authenticating' || linkOf(row)) since = undefined;
    else since ??= Date.now();
    const isStuck = since !== undefined && Date.now() - since > STUCK_MS;
    return isStuck || isNew(linkOf(row)) || ['ready', 'error', 'disabled'].includes(row.state);
  };
}

/** Signs in as often as the server asks, and waits until it is ready. */
async function settle(daemon) {
  for (;;) {
    const row = await daemon.rowUntil(NAME, settled(), SETTLED_MS);
    if (isNew(linkOf(row))) {
      visited.add(linkOf(row));
      await signIn(new Browser(), linkOf(row));
    } else if (row.state === 'ready') return;
    else throw new Error(`the server is ${described(row)}`);
  }
}

/** Lists the tools through the daemon, and calls each. */
async function converse(daemon) {
  const mode = version >= '2026-07-28' ? { pin: version } : 'legacy';
  const client = new sdk.Client(
    { name: 'narthex-e2e-conformance', version: '1' },
    { versionNegotiation: { mode } },
  );
  const headers = { Authorization: `Bearer ${daemon.token}` };
  const at = new URL(`${daemon.url}/mcp/${NAME}`);
  await client.connect(new sdk.StreamableHTTPClientTransport(at, { requestInit: { headers } }));
  try {
    const { tools } = await client.listTools();
    if (tools.length === 0) throw new Error('the server has no tools');
    for (const { name } of tools) {
      const result = await client.callTool({ name, arguments: {} });
      if (result.isError) throw new Error(`${name} failed: ${JSON.stringify(result)}`);
    }
  } finally {
    await client.close();
  }
}

/** Repeats the conversation once for each further sign-in that it led to. */
async function drive(daemon) {
  for (;;) {
    await settle(daemon);
    try {
      await converse(daemon);
      return;
    } catch (error) {
      const row = await daemon.rowUntil(NAME, (row) => isNew(linkOf(row)), LINK_MS);
      if (!isNew(linkOf(row))) throw error;
      console.error(`signing in once more, since ${error.message}`);
    }
  }
}

const folder = mkdtempSync(join(tmpdir(), 'narthex-suite-'));
let daemon;
const late = setTimeout(() => {
  console.error(`not done within ${ALL_MS} ms`);
  daemon?.kill();
  process.exit(1);
}, ALL_MS);
try {
  const entry = { transport: 'http', url, auth: auth() };
  const env = { NARTHEX_OAUTH_CLIENT_METADATA_URL: CLIENT_METADATA_URL };
  daemon = await Daemon.start(narthex, folder, { [NAME]: entry }, { env });
  await drive(daemon);
} catch (error) {
  console.error(error?.stack ?? String(error));
  process.exitCode = 1;
}
try {
  await daemon?.stop();
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
clearTimeout(late);
rmSync(folder, { recursive: true, force: true });
process.exit();
