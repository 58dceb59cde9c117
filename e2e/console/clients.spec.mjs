// Clients: the list, the facts of one, and its end.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { DESK, PHONE, Site, entry } from './site.mjs';

const AGENT = '/api/workspaces/default/agents/reader';
const CLIENTS = '/api/workspaces/default/mcp-clients';

let site;
before(async () => {
  site = await Site.start('clients', { small: entry() });
  await site.until('small', 'ready');
  const agent = await site.daemon.api(AGENT, 'PUT', {});
  assert.ok(agent.status < 300, JSON.stringify(agent.body));
  for (const client of ['desktop', 'editor']) {
    const made = await site.daemon.api(CLIENTS, 'POST', { client, agent_name: 'reader' });
    assert.equal(made.status, 201, JSON.stringify(made.body));
  }
});
after(() => site?.stop());

async function opened(options) {
  const person = await site.person(options);
  await person.go('Clients');
  await person.page.getByRole('heading', { name: 'Clients', exact: true }).first().waitFor();
  return person;
}

for (const viewport of [PHONE, DESK]) {
  test(`clients at ${viewport.width} pixels`, async () => {
    const person = await opened({ viewport });
    const { page } = person;
    await page.locator('#clients').getByRole('link', { name: 'editor' }).click();
    await page.locator('#facts').waitFor();
    assert.match(await page.locator('#facts').innerText(), /reader/);
    await person.check('clients');
  });
}

test('a client is found and revoked by keyboard', async () => {
  const person = await opened();
  const { page } = person;
  await page.locator('#filter').focus();
  await page.keyboard.type('desk');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/clients?q=desk');
  await person.tabTo('Revoke');
  await page.keyboard.press('Enter');
  await page.waitForURL('**done=revoke*');
  assert.match(await page.locator('#told').innerText(), /desktop is revoked/);
  await page.getByRole('link', { name: /^closed/ }).click();
  await page.waitForURL('**kind=closed');
  assert.match(await page.locator('#clients').innerText(), /desktop\s+revoked/);
  assert.deepEqual(person.faults, []);
});
