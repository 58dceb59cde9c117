// An authorization server, npm's oidc-provider with pages of its own, and a protected MCP server
// that takes its tokens.

import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';

import { SCOPE, listen, protect } from '../servers/protected.mjs';
import { peer } from './site.mjs';

/** The path of the question to the human, with which the cookie of the question is sent. */
const QUESTION = '/question/';
const PAGE = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Provider</title>
</head><body><main><h1>Let narthex in?</h1>
<form method="post"><button>Allow</button></form></main></body></html>`;

export class Provider {
  #oidc;
  #close;
  #grant;

  static async start() {
    const { default: Oidc } = await import(pathToFileURL(peer.resolve('oidc-provider')).href);
    const provider = new Provider();
    const { server, issuer, close } = await listen(createServer);
    provider.#oidc = new Oidc(issuer, {
      pkce: { required: () => true },
      findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
      issueRefreshToken: (_, client) => client.grantTypeAllowed('refresh_token'),
      rotateRefreshToken: true,
      cookies: { keys: ['for tests'] },
      interactions: { url: (_, { uid }) => `${QUESTION}${uid}` },
      features: {
        devInteractions: { enabled: false },
        registration: { enabled: true },
        revocation: { enabled: true },
        resourceIndicators: {
          enabled: true,
          defaultResource: () => provider.resource,
          useGrantedResource: () => true,
          getResourceServerInfo: (_, audience) => ({
            ...{ scope: SCOPE, audience, accessTokenTTL: 3600, accessTokenFormat: 'opaque' },
          }),
        },
      },
    });
    const answered = provider.#oidc.callback();
    server.handler = (request, response) => {
      const isQuestion = request.url.startsWith(QUESTION);
      return isQuestion ? provider.#ask(request, response) : answered(request, response);
    };
    const verify = (value, audience) => provider.#verified(value, audience);
    const guarded = await protect(peer, { issuer, verify });
    Object.assign(provider, { issuer, resource: guarded.resource });
    provider.#close = () => Promise.all([guarded.close(), close()]);
    return provider;
  }

  /** Takes back all tokens of the last sign-in, as a person does at a provider. */
  async revoke() {
    const { AccessToken, RefreshToken, Grant } = this.#oidc;
    await AccessToken.revokeByGrantId(this.#grant);
    await RefreshToken.revokeByGrantId(this.#grant);
    const grant = await Grant.find(this.#grant);
    await grant?.destroy();
  }

  close() {
    return this.#close();
  }

  async #verified(value, audience) {
    const token = await this.#oidc.AccessToken.find(value);
    if (!token?.isValid || token.aud !== audience) return undefined;
    this.#grant = token.grantId;
    const { clientId, accountId: subject, exp: expiresAt } = token;
    return { clientId, subject, scopes: [...token.scopes], expiresAt };
  }

  /** The page with the question, and the answer of its button. */
  async #ask(request, response) {
    if (request.method === 'GET') {
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(PAGE);
      return;
    }
    const asked = await this.#oidc.interactionDetails(request, response);
    const isLogin = asked.prompt.name === 'login';
    const answer = isLogin ? { login: { accountId: 'ada' } } : await this.#consent(asked);
    await this.#oidc.interactionFinished(request, response, answer);
  }

  async #consent({ grantId, session, params, prompt }) {
    const { Grant } = this.#oidc;
    const of = { accountId: session.accountId, clientId: params.client_id };
    const grant = (grantId && (await Grant.find(grantId))) || new Grant(of);
    const { missingOIDCScope, missingOIDCClaims, missingResourceScopes = {} } = prompt.details;
    if (missingOIDCScope) grant.addOIDCScope(missingOIDCScope.join(' '));
    if (missingOIDCClaims) grant.addOIDCClaims(missingOIDCClaims);
    for (const [resource, scopes] of Object.entries(missingResourceScopes)) {
      grant.addResourceScope(resource, scopes.join(' '));
    }
    return { consent: { grantId: await grant.save() } };
  }
}
