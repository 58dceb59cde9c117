// An MCP server over HTTP on the TypeScript SDK, which remembers the settings that came with the
// last call of its tool.

import { peer } from './site.mjs';

export class Papers {
  #listener;

  /** The headers of the last call that begin with `x-`. */
  settings;

  static async listen() {
    const express = peer('express');
    const { McpServer } = peer('@modelcontextprotocol/sdk/server/mcp.js');
    const { StreamableHTTPServerTransport } = peer(
      '@modelcontextprotocol/sdk/server/streamableHttp.js',
    );
    const papers = new Papers();
    const app = express();
    app.post('/mcp', express.json(), async (request, response) => {
      const server = new McpServer({ name: 'papers', version: '1' });
      server.registerTool('search', { description: 'Finds papers' }, () => {
        const sent = Object.entries(request.headers);
        papers.settings = Object.fromEntries(sent.filter(([name]) => name.startsWith('x-')));
        return { content: [{ type: 'text', text: 'two papers' }] };
      });
      const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
      response.on('close', () => {
        transport.close();
        server.close();
      });
      await server.connect(transport);
      await transport.handleRequest(request, response, request.body);
    });
    app.all('/mcp', (_, response) => response.status(405).end());
    papers.#listener = await new Promise((done) => {
      const listening = app.listen(0, '127.0.0.1', () => done(listening));
    });
    papers.url = `http://127.0.0.1:${papers.#listener.address().port}/mcp`;
    return papers;
  }

  async close() {
    this.#listener.closeAllConnections();
    await new Promise((done) => this.#listener.close(done));
  }
}
