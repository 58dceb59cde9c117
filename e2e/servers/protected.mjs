// A protected MCP server on the TypeScript SDK, with the SDK's own middleware for bearer tokens.
//
// Its one tool `whoami` gives the facts of the token that came with the call, and a digest in place
// of the token itself.

import { createHash } from 'node:crypto';

export const SCOPE = 'mcp:tools';

/**
 * Starts the server on a port of its own. `verify` gets a token and its resource, and gives the
 * token's `clientId`, `subject`, `scopes` and `expiresAt`, or nothing.
 */
export async function protect(peer, { issuer, verify }) {
  const express = peer('express');
  const { McpServer } = peer('@modelcontextprotocol/sdk/server/mcp.js');
  const transports = peer('@modelcontextprotocol/sdk/server/streamableHttp.js');
  const bearer = peer('@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js');
  const { InvalidTokenError } = peer('@modelcontextprotocol/sdk/server/auth/errors.js');

  const app = express();
  const listener = await new Promise((done) => {
    const listening = app.listen(0, '127.0.0.1', () => done(listening));
  });
  const origin = `http://127.0.0.1:${listener.address().port}`;
  const resource = `${origin}/mcp`;
  const metadata = '/.well-known/oauth-protected-resource/mcp';
  app.get(metadata, (_, response) => {
    response.json({
      resource,
      authorization_servers: [issuer],
      scopes_supported: [SCOPE],
      bearer_methods_supported: ['header'],
    });
  });
  const verifyAccessToken = async (token) => {
    const facts = await verify(token, resource);
    if (!facts) throw new InvalidTokenError('this token does not count here');
    const { subject, ...known } = facts;
    return { token, ...known, resource: new URL(resource), extra: { subject } };
  };
  const resourceMetadataUrl = `${origin}${metadata}`;
  const options = { verifier: { verifyAccessToken }, requiredScopes: [SCOPE], resourceMetadataUrl };
  app.use('/mcp', bearer.requireBearerAuth(options));
  app.post('/mcp', express.json(), async (request, response) => {
    const server = new McpServer({ name: 'protected', version: '1' });
    server.registerTool('whoami', { description: 'Facts of the token' }, ({ authInfo }) => {
      const { token, clientId, scopes, extra } = authInfo;
      const digest = createHash('sha256').update(token).digest('hex').slice(0, 16);
      const facts = { subject: extra.subject, clientId, scopes, digest };
      return { content: [{ type: 'text', text: JSON.stringify(facts) }] };
    });
    const { StreamableHTTPServerTransport } = transports;
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    response.on('close', () => {
      transport.close();
      server.close();
    });
    await server.connect(transport);
    await transport.handleRequest(request, response, request.body);
  });
  app.all('/mcp', (_, response) => response.status(405).end());
  return { resource, close: () => closed(listener) };
}

/** A listener for an authorization server, which has to know its own address first. */
export async function listen(createServer) {
  const server = createServer((request, response) => server.handler(request, response));
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const issuer = `http://127.0.0.1:${server.address().port}`;
  return { server, issuer, close: () => closed(server) };
}

async function closed(server) {
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
}
