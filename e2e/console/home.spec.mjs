// Home: what is broken, what waits, and the first steps.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { DESK, PHONE, Site, entry } from './site.mjs';

let site;
before(async () => {
  site = await Site.start('home', { small: entry(), accounts: entry('broken') });
  await site.until('small', 'ready');
  await site.until('accounts', 'error');
});
after(() => site?.stop());

for (const viewport of [PHONE, DESK]) {
  test(`home at ${viewport.width} pixels`, async () => {
    const person = await site.person({ viewport });
    await person.check('home');
  });
}

test('what is broken is there with its reason and the button that mends it', async () => {
  const { page } = await site.person();
  const broken = page.locator('#broken');
  await broken.getByRole('link', { name: 'accounts' }).waitFor();
  assert.match(await broken.innerText(), /error/);
  assert.equal(await broken.getByRole('button', { name: /^Reconnect/ }).count(), 1);
  assert.match(await page.locator('.numbers').innerText(), /1 of 2/);
});

test('the first steps are ticked by what was seen', async () => {
  const { page } = await site.person();
  const steps = page.locator('.steps > li');
  assert.equal(await steps.count(), 3);
  assert.equal(await page.locator('.steps > li.done').count(), 1);
});

test('a passkey is made on the first visit', async () => {
  const person = await site.person();
  const { page } = person;
  await person.recognized();
  await page.getByRole('link', { name: 'Make a passkey' }).click();
  await page.getByLabel('Name of the new passkey').fill('this computer');
  await page.getByRole('button', { name: 'Add a passkey' }).click();
  await page.getByText('this computer').waitFor();
  await page.goto(`${new URL(page.url()).origin}/`);
  await page.waitForURL('**/w/default/');
  assert.equal(await page.getByRole('link', { name: 'Make a passkey' }).count(), 0);
});

test('the search is one key away, and finds a server', async () => {
  const person = await site.person();
  const { page } = person;
  await page.keyboard.press('/');
  await page.keyboard.type('acc');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/search?q=acc');
  await person.check('search');
  await person.tabTo('accounts');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/servers/accounts');
});
