// A server behind OAuth across the pages: its row leads to the sign-in, shows live when the tokens
// are revoked, and leads to the sign-in again. The row never vanishes. (E36, E101, R7)

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { Provider } from './provider.mjs';
import { Site, entry, peer } from './site.mjs';

const { Client } = peer('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = peer(
  '@modelcontextprotocol/sdk/client/streamableHttp.js',
);
const NAME = 'protected';

let provider;
let site;
let person;
let watcher;
before(async () => {
  provider = await Provider.start();
  const protectedServer = { transport: 'http', url: provider.resource };
  site = await Site.start('flow-services', { [NAME]: protectedServer, small: entry() });
  await site.until(NAME, 'authenticating');
  await site.until('small', 'ready');
  person = await site.person();
  watcher = await site.person();
});
after(async () => {
  await site?.stop();
  await provider?.close();
});

function row(page, name = NAME) {
  const has = page.getByRole('heading', { name, exact: true });
  return page.locator('#servers .rows > li', { has });
}

const badge = (page) => row(page).locator('.badge');

/** Notes each state that the row shows from now on, and each moment without the row. */
async function watched(page) {
  const id = await row(page).getAttribute('id');
  await page.evaluate((id) => {
    const noted = { states: [], gone: 0 };
    globalThis.noted = noted;
    const look = () => {
      const badge = document.querySelector(`#${id} .badge`);
      if (!badge) noted.gone += 1;
      else if (noted.states.at(-1) !== badge.innerText) noted.states.push(badge.innerText);
    };
    const all = { childList: true, subtree: true, characterData: true, attributes: true };
    new MutationObserver(look).observe(document.body, all);
    look();
  }, id);
}

/** Signs in from the row of the server. */
async function signedIn(page, name) {
  const list = page.url();
  await row(page).getByRole('button', { name: 'Authorize', exact: true }).click();
  await page.getByRole('heading', { name: `Sign in to ${NAME}`, level: 1 }).waitFor();
  await person.looks(`flow-onward-${name}`);
  await page.getByRole('link', { name: /^Continue at/ }).click();
  const allow = page.getByRole('button', { name: 'Allow' });
  const end = page.getByRole('heading', { name: `Signed in to ${NAME}`, level: 1 });
  for (;;) {
    await allow.or(end).waitFor();
    if (await end.isVisible()) break;
    const here = page.url();
    await allow.click();
    await page.waitForURL((address) => address.href !== here);
  }
  await person.looks(`flow-signed-in-${name}`);
  await page.goto(list);
  await page.getByRole('heading', { name: 'Connected services', level: 1 }).waitFor();
  await badge(page).getByText('ready', { exact: true }).waitFor();
}

/** The facts of the token with which a call of a client reaches the server. */
async function whoami() {
  const client = new Client({ name: 'console-spec', version: '1' });
  const requestInit = { headers: { Authorization: `Bearer ${site.daemon.token}` } };
  const url = new URL(`${site.daemon.url}/mcp`);
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit }));
  try {
    return await client.callTool({ name: `mcp__${NAME}__whoami`, arguments: {} });
  } finally {
    await client.close();
  }
}

test('a server that asks for a sign-in gets it from its row', async () => {
  await watcher.to('Connected services');
  await watched(watcher.page);
  const { page } = person;
  await person.to('Connected services');
  assert.match(await row(page).innerText(), /authenticating[\s\S]*http[\s\S]*a person signs in/);
  await person.looks('flow-services-asks');
  await signedIn(page, 'first');
  await row(page).getByRole('button', { name: 'Re-authorize' }).waitFor();
  // The other browser shows it, and was not loaded anew.
  await badge(watcher.page).getByText('ready', { exact: true }).waitFor();
  await row(watcher.page).locator('summary').click();
  await row(watcher.page).getByText('whoami', { exact: true }).waitFor();
  await watcher.looks('flow-services-ready');
  const facts = JSON.parse((await whoami()).content[0].text);
  assert.equal(facts.subject, 'ada');
});

test('revoked tokens show in the row, and the row mends them', async () => {
  const { page } = person;
  const first = JSON.parse((await whoami()).content[0].text);
  await provider.revoke();
  const failed = await whoami();
  assert.ok(failed.isError);
  assert.match(JSON.stringify(failed), /auth_unavailable/);
  for (const { page } of [watcher, person]) {
    await badge(page).getByText(/^(authenticating|error)$/).waitFor();
    await row(page).getByRole('button', { name: 'Authorize', exact: true }).waitFor();
  }
  assert.match(await row(page, 'small').innerText(), /ready/);
  await watcher.looks('flow-services-broken');
  await person.to('Home');
  await page.locator('#broken').getByRole('link', { name: NAME }).waitFor();
  await person.looks('flow-home-broken');
  await person.to('Connected services');
  await signedIn(page, 'again');
  await badge(watcher.page).getByText('ready', { exact: true }).waitFor();
  const second = JSON.parse((await whoami()).content[0].text);
  assert.equal(second.subject, first.subject);
  assert.notEqual(second.digest, first.digest);
});

test('the row never vanished, and the page was loaded once', async () => {
  const { states, gone } = await watcher.page.evaluate(() => globalThis.noted);
  assert.equal(gone, 0);
  assert.deepEqual([states[0], states.at(-1)], ['authenticating', 'ready'], states.join(', '));
  const begin = states.indexOf('ready');
  const broken = states.slice(begin).filter((state) => /authenticating|error/.test(state));
  assert.ok(broken.length > 0, states.join(', '));
  assert.deepEqual([...watcher.faults, ...person.faults], []);
});
