// narthex as the client of better-auth with its MCP plugin, for a protected server on the
// TypeScript SDK: an issuer with a path, tokens that are JWTs, and pages of the application's own.
//
// Arguments: the folder with node_modules, and the narthex binary. Prints one JSON line of facts.

import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';

import { SCOPE, listen, protect } from '../servers/protected.mjs';
import { story } from './oauth_story.mjs';

/** Seconds. narthex renews a token at half of so short a lifetime. */
const LIFETIME = 4;
const PERSON = { email: 'ada@corp.example', password: 'correct horse', name: 'ada' };
const API = '/api/auth';

const [peers, narthex] = process.argv.slice(2);
const peer = createRequire(join(peers, 'package.json'));
const load = (name) => import(pathToFileURL(peer.resolve(name)).href);
const { betterAuth } = await load('better-auth');
const { jwt } = await load('better-auth/plugins');
const { mcp } = await load('@better-auth/mcp');
const { createLocalJWKSet, jwtVerify } = await load('jose');

const counts = { registrations: 0, consents: 0, renewals: 0, revoked: 0 };
const { server, issuer: origin, close } = await listen(createServer);
const issuer = `${origin}${API}`;
const guarded = await protect(peer, { issuer, verify });

const auth = betterAuth({
  baseURL: origin,
  secret: 'a secret of tests, long enough to be one',
  database: new DatabaseSync(':memory:'),
  emailAndPassword: { enabled: true },
  rateLimit: { enabled: false },
  telemetry: { enabled: false },
  logger: { disabled: true },
  plugins: [
    jwt({ jwt: { issuer } }),
    mcp({
      loginPage: '/login',
      consentPage: '/consent',
      resource: guarded.resource,
      scopes: ['openid', 'offline_access', SCOPE],
      accessTokenExpiresIn: LIFETIME,
      refreshTokenReuseInterval: 0,
      allowDynamicClientRegistration: true,
      allowUnauthenticatedClientRegistration: true,
    }),
  ],
});
await (await auth.$context).runMigrations();
await auth.api.signUpEmail({ body: PERSON });
const keys = createLocalJWKSet(await auth.api.getJwks());

async function verify(value, audience) {
  try {
    const { payload } = await jwtVerify(value, keys, { issuer, audience });
    const scopes = payload.scope.split(' ').filter((scope) => scope === SCOPE);
    const { azp, client_id: clientId = azp, exp: expiresAt } = payload;
    return { clientId, subject: PERSON.name, scopes, expiresAt };
  } catch (error) {
    console.error(`refused: ${error.message}`);
    return undefined;
  }
}

/** A request to better-auth in the name of a browser. */
function ask(path, cookie, body) {
  const headers = { 'content-type': 'application/json', origin, cookie };
  return auth.handler(
    new Request(`${issuer}${path}`, { method: 'POST', headers, body: JSON.stringify(body) }),
  );
}

/** The pages of the application: a form each, which leads on to where better-auth says. */
const PAGES = {
  '/login': (cookie, oauth_query) => ask('/sign-in/email', cookie, { ...PERSON, oauth_query }),
  '/consent': (cookie, oauth_query) => {
    counts.consents += 1;
    return ask('/oauth2/consent', cookie, { accept: true, oauth_query });
  },
};

async function page(request, response, { pathname, search }) {
  if (request.method === 'GET') {
    const action = `${pathname}${search.replaceAll('&', '&amp;')}`;
    response.setHeader('content-type', 'text/html');
    response.end(`<form method="post" action="${action}"></form>`);
    return;
  }
  const answer = await PAGES[pathname](request.headers.cookie ?? '', search.slice(1));
  const body = await answer.json();
  const location = body.url ?? body.redirect_uri;
  if (!location) throw new Error(`${pathname} answers ${answer.status}: ${JSON.stringify(body)}`);
  response.writeHead(302, { location, 'set-cookie': answer.headers.getSetCookie() }).end();
}

/** Counts what drivers of this story look at. */
function count(path, body, status) {
  if (status >= 300) return;
  if (path === '/oauth2/register') counts.registrations += 1;
  if (path === '/oauth2/revoke') counts.revoked += 1;
  if (path === '/oauth2/token' && body.includes('grant_type=refresh_token')) counts.renewals += 1;
}

server.handler = async (request, response) => {
  try {
    const url = new URL(request.url, origin);
    if (PAGES[url.pathname]) return await page(request, response, url);
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const bytes = Buffer.concat(chunks);
    // The fetch of Node says `cors`, where a browser would say `navigate`.
    const { 'sec-fetch-mode': _, ...headers } = request.headers;
    const { method } = request;
    const sent = { method, headers, body: bytes.length > 0 ? bytes : undefined };
    const answer = await auth.handler(new Request(url, sent));
    count(url.pathname.replace(API, ''), bytes.toString(), answer.status);
    const fields = Object.fromEntries(answer.headers);
    if (answer.headers.getSetCookie().length) fields['set-cookie'] = answer.headers.getSetCookie();
    response.writeHead(answer.status, fields).end(Buffer.from(await answer.arrayBuffer()));
  } catch (error) {
    console.error(error);
    response.writeHead(500).end(error.message);
  }
};

try {
  const resource = guarded.resource;
  console.log(JSON.stringify(await story({ peer, narthex, resource, counts })));
} finally {
  await Promise.all([guarded.close(), close()]);
}
process.exit();
