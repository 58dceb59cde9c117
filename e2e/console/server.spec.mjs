// One server: why it is broken, what it lists, what has changed, where it is configured, its log.

import assert from 'node:assert/strict';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { DESK, PHONE, Site, entry } from './site.mjs';

const CHANGE = join(mkdtempSync(join(tmpdir(), 'narthex-server-')), 'change');
const TABS = [
  'Tools', 'Definition differences', 'Configuration', 'Log', 'Calls', 'Runs that have it',
];
const CANARY = 'canary-of-the-entry';

let site;
before(async () => {
  site = await Site.start('server', {
    small: { ...entry(), env: { PLAIN: CANARY }, tools: { deny: ['history'] } },
    accounts: entry('broken'),
    changing: { ...entry('changing', CHANGE), pinDefinitions: true },
  });
  await site.until('small', 'ready');
  await site.until('changing', 'ready');
  await site.until('accounts', 'error');
});
after(() => site?.stop());

/** A person on the first page of a server. */
async function opened(name, options) {
  const person = await site.person(options);
  await person.go('Connected services');
  await person.page.getByRole('link', { name, exact: true }).click();
  await person.page.getByRole('heading', { name, level: 1 }).waitFor();
  return person;
}

function tab(page, name) {
  return page.getByRole('navigation', { name: 'This server' }).getByRole('link', { name });
}

for (const viewport of [PHONE, DESK]) {
  test(`a server at ${viewport.width} pixels`, async () => {
    const person = await opened('small', { viewport });
    const { page } = person;
    assert.match(await page.locator('#server-now').innerText(), /ready/);
    await person.check('server');
    for (const name of TABS) {
      await tab(page, name).click();
      await page.locator('nav.tabs a[aria-current]').filter({ hasText: name }).waitFor();
      await person.check(`server-${name.toLowerCase().replaceAll(' ', '-')}`);
    }
    assert.ok(!(await page.content()).includes(CANARY));
  });
}

test('a broken server says why, and is mended by keyboard', async () => {
  const person = await opened('accounts');
  const { page } = person;
  const now = page.locator('#server-now');
  assert.match(await now.innerText(), /exit code 3|ended/);
  await person.tabTo('Log');
  await page.keyboard.press('Enter');
  await page.getByText('the file of accounts is missing').first().waitFor();
  await person.tabTo('Overview');
  await page.keyboard.press('Enter');
  await now.waitFor();
  await person.tabTo('Disable');
  await page.keyboard.press('Enter');
  await now.getByText('disabled', { exact: true }).waitFor();
  await person.tabTo('Enable');
  await page.keyboard.press('Enter');
  await now.getByText('error', { exact: true }).waitFor();
  assert.deepEqual(person.faults, []);
});

test('tools that callers do not see say why', async () => {
  const person = await opened('small');
  const { page } = person;
  await tab(page, 'Tools').click();
  await page.getByRole('link', { name: /^off/ }).click();
  await page.waitForURL('**/tools?show=off');
  const list = page.locator('.tool-list');
  assert.match(await list.innerText(), /history[\s\S]*the rule `tools` of the entry hides it/);
  assert.doesNotMatch(await list.innerText(), /status/);
});

test('a changed definition is withheld, read by line, and accepted by keyboard', async () => {
  const person = await opened('changing');
  const { page } = person;
  await tab(page, 'Definition differences').click();
  await page.getByText('Nothing waits for a decision').waitFor();
  writeFileSync(CHANGE, '');
  await page.locator('#definitions .diff ins').getByText('and pushes it').waitFor();
  await page.locator('#definitions .diff del').first().waitFor();
  await person.check('server-definition-changed');
  await person.tabTo('Accept');
  await page.keyboard.press('Enter');
  await page.locator('#told').getByText('is accepted').waitFor();
  await page.getByText('Nothing waits for a decision').waitFor();
  assert.deepEqual(person.faults, []);
});

test('further lines of the log arrive, and the file has all of them', async () => {
  const person = await opened('small');
  const { page } = person;
  await tab(page, 'Log').click();
  const log = page.locator('#server-log pre');
  await log.getByText('waits for <b>requests</b>').first().waitFor();
  const before = await log.getByText('waits for <b>requests</b>').count();
  await site.daemon.api('/api/servers/small/reconnect', 'POST');
  await log.getByText('started again').first().waitFor();
  await log.getByText('waits for <b>requests</b>').nth(before).waitFor();
  const download = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Download all lines' }).click();
  assert.equal((await download).suggestedFilename(), 'small.log.txt');
  assert.deepEqual(person.faults, []);
});

test('the pages of a server work without a script', async () => {
  const person = await opened('small', { javaScriptEnabled: false });
  const { page } = person;
  await tab(page, 'Configuration').click();
  assert.match(await page.locator('main').innerText(), /Edit line \d+ of .*mcp\.json/);
  const settings = await page.locator('tbody').innerText();
  assert.match(settings, /env\.PLAIN\s+set, and not shown\s+line \d+/);
  await tab(page, 'Overview').click();
  await page.getByRole('button', { name: /^Test/ }).click();
  await page.getByRole('heading', { name: 'Test of small' }).waitFor();
  await page.getByRole('link', { name: 'Back' }).click();
  await page.getByRole('button', { name: /^Disable/ }).click();
  await page.waitForURL('**/servers/small?done=disable*');
  assert.match(await page.locator('#told').innerText(), /small is disabled/);
  await page.getByRole('button', { name: /^Enable/ }).click();
  await page.waitForURL('**/servers/small?done=enable*');
});
