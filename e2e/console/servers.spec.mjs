// Connected services: rows that change while one looks, and buttons that mend.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { DESK, PHONE, Site, entry } from './site.mjs';

let site;
before(async () => {
  site = await Site.start('servers', { small: entry(), accounts: entry('broken') });
  await site.until('small', 'ready');
  await site.until('accounts', 'error');
});
after(() => site?.stop());

async function opened(options) {
  const person = await site.person(options);
  await person.go('Connected services');
  await person.page.getByRole('heading', { name: 'Connected services' }).waitFor();
  return person;
}

function row(page, name) {
  const has = page.getByRole('heading', { name, exact: true });
  return page.locator('#servers .rows > li', { has });
}

for (const viewport of [PHONE, DESK]) {
  test(`services at ${viewport.width} pixels`, async () => {
    const person = await opened({ viewport });
    assert.match(await row(person.page, 'small').innerText(), /ready/);
    assert.match(await row(person.page, 'accounts').innerText(), /error/);
    await person.check('servers');
  });
}

test('a row changes while one looks, and the focus stays', async () => {
  const person = await opened();
  const { page } = person;
  const open = row(page, 'small').locator('summary');
  await open.focus();
  await page.keyboard.press('Enter');
  await row(page, 'small').getByText('history', { exact: true }).waitFor();
  await site.daemon.api('/api/servers/small/reconnect', 'POST');
  await site.daemon.api('/api/servers/accounts/disable', 'POST');
  await row(page, 'accounts').getByText('disabled').waitFor();
  const focused = await page.evaluate(() => document.activeElement.tagName);
  assert.equal(focused, 'SUMMARY');
  await site.daemon.api('/api/servers/accounts/enable', 'POST');
  await row(page, 'accounts').getByText('error', { exact: true }).waitFor();
  assert.deepEqual(person.faults, []);
});

test('a server is disabled and enabled by keyboard', async () => {
  const person = await opened();
  const { page } = person;
  await page.locator('#filter').focus();
  await page.keyboard.type('small');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/servers?q=small');
  await person.tabTo('Disable');
  await page.keyboard.press('Enter');
  await page.locator('#told').getByText('small is disabled.').waitFor();
  await row(page, 'small').getByText('disabled', { exact: true }).waitFor();
  await page.locator('#filter').focus();
  await person.tabTo('Enable');
  await page.keyboard.press('Enter');
  await page.locator('#told').getByText('small is ready, with 2 tools.').waitFor();
  assert.deepEqual(person.faults, []);
});

test('a test shows its stages on the page', async () => {
  const person = await opened();
  const { page } = person;
  await row(page, 'small').getByRole('button', { name: /^Test/ }).click();
  await page.locator('#told').getByText('Each stage is fine.').waitFor();
  await person.check('tested');
});

test('everything works without a script', async () => {
  const person = await opened({ javaScriptEnabled: false });
  const { page } = person;
  await row(page, 'small').getByRole('button', { name: /^Disable/ }).click();
  await page.waitForURL('**/servers?done=disable*');
  assert.match(await page.locator('#told').innerText(), /small is disabled/);
  await row(page, 'small').getByRole('button', { name: /^Enable/ }).click();
  await page.waitForURL('**/servers?done=enable*');
  assert.match(await row(page, 'small').innerText(), /ready/);
  await row(page, 'small').getByRole('button', { name: /^Test/ }).click();
  await page.getByRole('heading', { name: 'Test of small' }).waitFor();
});
