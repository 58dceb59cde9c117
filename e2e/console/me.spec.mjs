// My account: passkeys, sign-ins and connections of the human who looks.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { DESK, PHONE, Site, entry } from './site.mjs';

const NOTES = '/api/workspaces/default/mcp-servers/notes?offline=true';

let site;
before(async () => {
  site = await Site.start('me', { small: entry() });
  await site.until('small', 'ready');
  const notes = { kind: 'remote_oauth', url: 'https://notes.example.com/mcp', name: 'Notes' };
  const stored = await site.daemon.api(NOTES, 'PUT', notes);
  assert.ok(stored.status < 300, JSON.stringify(stored.body));
});
after(() => site?.stop());

async function opened(options) {
  const person = await site.person(options);
  await person.go('My account');
  await person.page.getByRole('heading', { name: 'My account' }).waitFor();
  return person;
}

for (const viewport of [PHONE, DESK]) {
  test(`account at ${viewport.width} pixels`, async () => {
    const person = await opened({ viewport });
    assert.match(await person.page.locator('#connections').innerText(), /Notes/);
    await person.check('me');
  });
}

test('a sign-in elsewhere is ended by keyboard', async () => {
  const [here, there] = [await opened(), await opened()];
  const { page } = here;
  await page.reload();
  const count = await page.locator('#logins .title').count();
  assert.ok(count >= 2, `${count} sign-ins`);
  // The newest one comes first: it is the other person's browser.
  await here.tabTo('End');
  await page.keyboard.press('Enter');
  await page.waitForURL('**done=end*');
  assert.equal(await page.locator('#told').innerText(), 'The sign-in has ended.');
  assert.equal(await page.locator('#logins .title').count(), count - 1);
  await there.page.reload();
  await there.page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await here.check('me-ended');
});

test('a passkey is added on the page, and comes back to it', async () => {
  const person = await opened();
  const { page } = person;
  await person.recognized();
  await page.getByLabel('Name of the new passkey').fill('this <b>computer</b>');
  await person.tabTo('Add a passkey');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/me?done=passkey');
  await page.locator('#passkeys').getByText('this <b>computer</b>').waitFor();
  await person.check('me-passkey');
});

test('everything works without a script', async () => {
  const other = await opened();
  const person = await opened({ javaScriptEnabled: false });
  const { page } = person;
  await page.locator('#logins').getByRole('button', { name: 'End' }).first().click();
  await page.waitForURL('**done=end*');
  assert.match(await page.locator('#told').innerText(), /has ended/);
  await other.page.close();
});
