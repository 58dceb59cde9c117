// The registry: a search, what a server will ask for, and a draft in the catalog.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';

import { DESK, PHONE, Site } from './site.mjs';

const META = 'io.modelcontextprotocol.registry/official';
const WEATHER = {
  server: {
    name: 'io.github.ada/weather',
    description: 'Forecasts <b>for</b> any place',
    version: '1.4.0',
    packages: [
      {
        registryType: 'npm',
        identifier: '@ada/weather-mcp',
        version: '1.4.0',
        transport: { type: 'stdio' },
        environmentVariables: [{ name: 'WEATHER_KEY', isRequired: true, isSecret: true }],
      },
    ],
  },
  _meta: { [META]: { status: 'active', isLatest: true } },
};

/** A registry of this machine, which fails while `isBroken` is true. */
class Registry {
  isBroken = false;

  async start() {
    this.http = createServer((request, response) => {
      const { pathname, searchParams } = new URL(request.url, 'http://localhost');
      if (this.isBroken) {
        response.writeHead(503).end('{}');
        return;
      }
      const isOne = pathname.includes('/versions/');
      const has = WEATHER.server.name.includes(searchParams.get('search') ?? '');
      const answer = isOne ? WEATHER : { servers: has ? [WEATHER] : [], metadata: { count: 1 } };
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(answer));
    });
    await new Promise((done) => this.http.listen(0, '127.0.0.1', done));
    return `http://127.0.0.1:${this.http.address().port}`;
  }

  stop() {
    this.http.closeAllConnections();
    this.http.close();
  }
}

const registry = new Registry();
let site;
before(async () => {
  const env = { NARTHEX_REGISTRY: await registry.start() };
  site = await Site.start('registry', {}, { env });
});
after(async () => {
  await site?.stop();
  registry.stop();
});

async function opened(options) {
  const person = await site.person(options);
  await person.go('Registry');
  await person.page.getByRole('heading', { name: 'Registry', level: 1 }).waitFor();
  return person;
}

async function searched(person, words) {
  await person.page.locator('#words').focus();
  await person.page.keyboard.type(words);
  await person.page.keyboard.press('Enter');
  await person.page.waitForURL(`**/registry?q=${words}`);
}

for (const viewport of [PHONE, DESK]) {
  test(`registry at ${viewport.width} pixels`, async () => {
    const person = await opened({ viewport });
    await searched(person, 'weather');
    await person.check('registry');
    await person.page.getByRole('link', { name: 'io.github.ada/weather' }).click();
    await person.page.getByRole('heading', { name: 'io.github.ada/weather' }).waitFor();
    await person.check('registry-server');
  });
}

test('a server becomes a draft by keyboard, which is disabled', async () => {
  const person = await opened();
  const { page } = person;
  await searched(person, 'weather');
  await person.tabTo('io.github.ada/weather');
  await page.keyboard.press('Enter');
  await page.getByText('WEATHER_KEY', { exact: true }).waitFor();
  assert.match(await page.locator('table').innerText(), /required, a secret/);
  await person.tabTo('Add to the catalog as a draft');
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.pathname.endsWith('/catalog/weather'));
  assert.match(await page.locator('main').innerText(), /draft/);
  await person.check('registry-added');
  const path = '/api/workspaces/default/mcp-servers/weather';
  const { status, body } = await site.daemon.api(path);
  assert.equal(status, 200);
  assert.equal(body.definition.disabled, true);
  assert.deepEqual(person.faults, []);
});

test('a registry that does not answer is a fault with a button, and no empty list', async () => {
  const person = await opened();
  const { page } = person;
  registry.isBroken = true;
  await searched(person, 'weather');
  await page.locator('.note.broken').waitFor();
  assert.equal(await page.locator('.empty').count(), 0);
  await person.check('registry-broken');
  registry.isBroken = false;
  await person.tabTo('Try again');
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'io.github.ada/weather' }).waitFor();
});

test('everything works without a script', async () => {
  const person = await opened({ javaScriptEnabled: false });
  await searched(person, 'nothing-of-this');
  await person.page.getByText('No server has these words').waitFor();
});
