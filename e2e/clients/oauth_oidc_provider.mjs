// narthex as the client of npm's oidc-provider, a certified authorization server, for a protected
// server on the TypeScript SDK: sign-in, renewal of short tokens, restart, and sign-out.
//
// Arguments: the folder with node_modules, and the narthex binary. Prints one JSON line of facts.

import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { SCOPE, listen, protect } from '../servers/protected.mjs';
import { story } from './oauth_story.mjs';

/** Seconds. narthex renews a token at half of so short a lifetime. */
const LIFETIME = 4;

const [peers, narthex] = process.argv.slice(2);
const peer = createRequire(join(peers, 'package.json'));
const { default: Provider, errors } = await import(
  pathToFileURL(peer.resolve('oidc-provider')).href
);

const counts = { registrations: 0, consents: 0, renewals: 0, revoked: 0 };
let resource;

const { server, issuer, close } = await listen(createServer);
const provider = new Provider(issuer, {
  pkce: { required: () => true },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  issueRefreshToken: (_, client) => client.grantTypeAllowed('refresh_token'),
  rotateRefreshToken: true,
  cookies: { keys: ['for tests'] },
  features: {
    devInteractions: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => resource,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, indicator) => {
        if (indicator !== resource) throw new errors.InvalidTarget();
        const audience = resource;
        return { scope: SCOPE, audience, accessTokenTTL: LIFETIME, accessTokenFormat: 'opaque' };
      },
    },
  },
});
provider.on('registration_create.success', () => (counts.registrations += 1));
provider.on('authorization.success', () => (counts.consents += 1));
provider.on('grant.success', ({ oidc }) => {
  if (oidc.params.grant_type === 'refresh_token') counts.renewals += 1;
});
provider.on('grant.revoked', () => (counts.revoked += 1));
server.handler = provider.callback();

async function verify(value, audience) {
  const token = await provider.AccessToken.find(value);
  if (!token?.isValid || token.aud !== audience) return undefined;
  const { clientId, accountId: subject, exp: expiresAt } = token;
  return { clientId, subject, scopes: [...token.scopes], expiresAt };
}

const guarded = await protect(peer, { issuer, verify });
({ resource } = guarded);
try {
  const answer = (fields) => ({ ...fields, login: 'ada', password: 'x' });
  console.log(JSON.stringify(await story({ peer, narthex, resource, counts, answer })));
} finally {
  await Promise.all([guarded.close(), close()]);
}
process.exit();
