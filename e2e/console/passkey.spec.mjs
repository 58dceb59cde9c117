// The first visit: a link from the terminal, a passkey, a sign-in with it, and an approval that
// proves a human. (D15)

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { PHONE, Site, entry, node } from './site.mjs';

const HERE = '/api/workspaces/default';
const SCOPE = 'notes.read';

let site;
let run;
let person;
before(async () => {
  site = await Site.start('passkey', {});
  const notes = { command: node(), args: entry().args, tool_scopes: { status: SCOPE } };
  await site.done('PUT', `${HERE}/mcp-servers/notes`, notes);
  await site.done('PUT', `${HERE}/agents/writer`, { mcpServers: { notes: { ref: 'notes' } } });
  run = await site.done('POST', `${HERE}/runs`, { type: 'start_session', agent_name: 'writer' });
  const asked = await site.call(run, 'narthex', 'request_grant', {
    request_id: 'the-first',
    grant_type: 'tool_scope',
    scope: 'session',
    details: { scope: SCOPE },
    justification: 'to read the status',
  });
  assert.equal(asked.structuredContent?.status, 'pending', JSON.stringify(asked));
});
after(() => site?.stop());

test('the first visit offers a passkey', async () => {
  person = await site.person({ viewport: PHONE });
  await person.recognized();
  const { page } = person;
  await page.getByText('Make a passkey on this computer.').waitFor();
  await person.looks('passkey-offered');
  await page.getByRole('link', { name: 'Make a passkey' }).click();
  await page.getByLabel('Name of the new passkey').fill('my phone');
  await person.looks('passkey-new');
  await page.getByRole('button', { name: 'Add a passkey' }).click();
  await page.getByRole('listitem').filter({ hasText: 'my phone' }).waitFor();
  await person.looks('passkey-made');
});

test('a sign-out and a sign-in with the passkey', async () => {
  const { page } = person;
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor();
  await person.looks('passkey-sign-in');
  await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
  await page.waitForURL('**/w/default/');
  assert.equal(await page.getByRole('link', { name: 'Make a passkey' }).count(), 0);
  const menu = page.locator('details.menu.right');
  await menu.locator('summary').click();
  assert.match(await menu.innerText(), /Signed in .*passkey/);
  await menu.locator('summary').click();
  await person.looks('passkey-home');
});

test('an approval after it proves a human', async () => {
  const { page } = person;
  await page.locator('#waits.some').click();
  await page.getByRole('link', { name: new RegExp(`^Decide.*${SCOPE}`) }).click();
  await page.getByRole('heading', { name: 'Approve this request?', level: 1 }).waitFor();
  assert.equal(await page.getByRole('complementary', { name: 'Proof' }).count(), 0);
  await person.looks('passkey-approval');
  await page.locator('#for-session').check();
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.getByRole('heading', { name: 'Approved', level: 1 }).waitFor();
  await page.getByText('proved that a human approved it').waitFor();
  await person.looks('passkey-approved');
  const { items } = await site.done('GET', `${HERE}/grants`);
  const { is_advisory: isAdvisory, counts } = items.find((one) => one.details.scope === SCOPE);
  assert.deepEqual({ isAdvisory, counts }, { isAdvisory: false, counts: true });
  const answer = await site.call(run, 'notes', 'status', {});
  assert.doesNotMatch(JSON.stringify(answer), /permission_required/);
  assert.deepEqual(person.faults, []);
});
