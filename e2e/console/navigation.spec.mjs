// The navigation: groups that open by keyboard, on a desk and on a phone, also without a script.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { DESK, PHONE, Site, entry } from './site.mjs';

let site;
before(async () => {
  site = await Site.start('navigation', { small: entry() });
  await site.until('small', 'ready');
});
after(() => site?.stop());

for (const viewport of [PHONE, DESK]) {
  test(`the navigation at ${viewport.width} pixels`, async () => {
    const person = await site.person({ viewport });
    await person.go('Secrets');
    if (viewport === PHONE) {
      await person.page.getByRole('button', { name: 'Pages', exact: true }).focus();
      await person.page.keyboard.press('Enter');
    }
    await person.check('navigation');
  });
}

test('few entries are shown at first, and the group of the open page is open', async () => {
  const person = await site.person();
  const { page } = person;
  const nav = page.getByRole('navigation', { name: 'Pages' });
  assert.equal(await nav.locator(':scope > ul').first().getByRole('link').count(), 4);
  await person.tabTo('Servers');
  await page.keyboard.press('Enter');
  await person.tabTo('Catalog');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Catalog', exact: true, level: 1 }).waitFor();
  assert.equal(await nav.locator('details[open]').count(), 1);
  assert.equal(await nav.locator('[aria-current=page]').innerText(), 'Catalog');
});

test('on a phone the pages are behind one button, which Escape closes', async () => {
  const person = await site.person({ viewport: PHONE, javaScriptEnabled: false });
  const { page } = person;
  const nav = page.locator('nav.pages');
  assert.equal(await nav.isVisible(), false);
  await person.tabTo('Pages');
  await page.keyboard.press('Enter');
  await nav.waitFor({ state: 'visible' });
  await page.keyboard.press('Escape');
  await nav.waitFor({ state: 'hidden' });
  await person.go('Policy');
  await page.getByRole('heading', { name: 'Policy', exact: true, level: 1 }).waitFor();
  assert.equal(await nav.isVisible(), false);
});

test('the account is in the menu of the human', async () => {
  const person = await site.person();
  const { page } = person;
  await page.locator('.menu.right > summary').focus();
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'Your account and passkeys' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'My account', level: 1 }).waitFor();
});
