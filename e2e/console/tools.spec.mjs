// Tools: one table over all servers, and changes of several tools at once.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { DESK, PHONE, Site, entry } from './site.mjs';

const TOOLBOX = new URL('toolbox.mjs', import.meta.url).pathname;

let site;
before(async () => {
  site = await Site.start('tools', { small: entry() });
  const own = { transport: 'stdio', command: process.execPath, args: [TOOLBOX] };
  const saved = await site.daemon.api('/api/servers/box', 'PUT', own);
  assert.equal(saved.status, 201, JSON.stringify(saved.body));
  await site.until('small', 'ready');
  await site.until('box', 'ready');
});
after(() => site?.stop());

async function opened(options) {
  const person = await site.person(options);
  await person.go('Tools');
  await person.page.getByRole('heading', { name: 'Tools', exact: true, level: 1 }).waitFor();
  return person;
}

function row(page, name) {
  return page.locator('.tools-table tbody tr', { has: page.getByText(name, { exact: true }) });
}

for (const viewport of [PHONE, DESK]) {
  test(`tools at ${viewport.width} pixels`, async () => {
    const person = await opened({ viewport });
    assert.match(await row(person.page, 'wipe').innerText(), /destructive/);
    assert.match(await row(person.page, 'status').innerText(), /changed in .*mcp\.json/);
    await person.check('tools');
  });
}

test('a tool of a file cannot be chosen, and says why', async () => {
  const { page } = await opened();
  const box = row(page, 'history').getByRole('checkbox');
  assert.equal(await box.isDisabled(), true);
  assert.match(await row(page, 'history').locator('label').innerText(), /not possible: changed in/);
});

test('a tool is found, gated and hidden by keyboard', async () => {
  const person = await opened();
  const { page } = person;
  await page.locator('#filter').focus();
  await page.keyboard.type('greets');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/tools?q=greets');
  await row(page, 'greet').getByRole('checkbox').focus();
  await page.keyboard.press('Space');
  await page.getByLabel('Change', { exact: true }).selectOption('require');
  await page.getByLabel('Tool scope').fill('box.greet');
  await page.getByRole('button', { name: 'Change them' }).focus();
  await page.keyboard.press('Enter');
  await page.locator('#told').getByText('1 tool is gated now.').waitFor();
  await site.until('box', 'ready');
  await page.goto(page.url());
  assert.match(await row(page, 'greet').innerText(), /box\.greet/);
  await row(page, 'greet').getByRole('checkbox').check();
  await page.getByLabel('Change', { exact: true }).selectOption('free');
  await page.getByRole('button', { name: 'Change them' }).click();
  await page.locator('#told').getByText('1 tool is without a scope now.').waitFor();
  assert.deepEqual(person.faults, []);
});

test('a scope that cannot be one is a fault of its field, without a script', async () => {
  const { page } = await opened({ javaScriptEnabled: false });
  await row(page, 'wipe').getByRole('checkbox').check();
  await page.getByLabel('Change', { exact: true }).selectOption('require');
  await page.getByLabel('Tool scope').fill('no');
  await page.getByRole('button', { name: 'Change them' }).click();
  await page.locator('#batch .fault').waitFor();
  assert.equal(await row(page, 'wipe').getByRole('checkbox').isChecked(), true);
  assert.equal(await page.getByLabel('Tool scope').inputValue(), 'no');
});
