// The pages of operators: all workspaces, the daemon, the keys, the files and their audit.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { after, before, test } from 'node:test';

import { DESK, PHONE, Site, entry } from './site.mjs';

let site;
before(async () => {
  site = await Site.start('operator', { small: entry() });
  await site.until('small', 'ready');
});
after(() => site?.stop());

async function opened(options) {
  const person = await site.person(options);
  const { page } = person;
  await page.goto(new URL('/operator/', page.url()).href);
  await page.getByRole('heading', { name: 'Daemon', level: 1 }).waitFor();
  return person;
}

for (const viewport of [PHONE, DESK]) {
  test(`the pages of operators at ${viewport.width} pixels`, async () => {
    const person = await opened({ viewport });
    await person.check('operator');
    for (const name of ['Workspaces', 'Master keys', 'Files', 'Audit']) {
      await person.to(name);
      await person.check(`operator-${name.toLowerCase().replace(' ', '-')}`);
    }
  });
}

test('the workspace switch leads there and back, by keyboard', async () => {
  const person = await site.person();
  const { page } = person;
  await page.locator('.workspaces summary').focus();
  await page.keyboard.press('Enter');
  await person.tabTo('Operator');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/operator/');
  await page.locator('.workspaces summary').focus();
  await page.keyboard.press('Enter');
  await person.tabTo('Default');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/w/default/');
});

test('a workspace is created, and deleted after a look at it, by keyboard', async () => {
  const person = await opened();
  const { page } = person;
  await person.to('Workspaces');
  await person.tabTo('Create a workspace');
  await page.keyboard.press('Enter');
  await page.locator('#f-id').focus();
  await page.keyboard.type('No such');
  await page.keyboard.press('Enter');
  await page.locator('.fault').waitFor();
  // The browser notes the refusal as a fault, which it is meant to be.
  assert.match(person.faults.pop(), /422/);
  await person.check('operator-new');
  await page.locator('#f-id').focus();
  await page.keyboard.press('Control+A');
  await page.keyboard.type('sales');
  await page.keyboard.press('Tab');
  await page.keyboard.type('Sales <b>and more</b>');
  await page.keyboard.press('Enter');
  await page.getByText('The workspace sales is created.').waitFor();
  await page.getByRole('link', { name: 'Sales <b>and more</b>' }).last().waitFor();
  await page.getByRole('link', { name: 'Delete sales' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Delete the workspace sales?' }).waitFor();
  await person.check('operator-delete');
  await person.tabTo('Delete it');
  await page.keyboard.press('Enter');
  await page.getByText('The workspace sales is deleted.').waitFor();
  assert.equal(await page.locator('.wide tbody tr').count(), 1);
});

test('the master key is changed without a script', async () => {
  const person = await opened({ javaScriptEnabled: false });
  const { page } = person;
  await person.to('Master keys');
  const before = await page.locator('#keys .title').innerText();
  await page.getByRole('button', { name: 'Change the key' }).click();
  await page.getByText('The key is changed').waitFor();
  const after = await page.locator('#keys .title').innerText();
  assert.notEqual(after, before);
  assert.equal(await page.locator('#keys time').count(), 1);
});

test('a file with a fault is shown with its line, and is mended', async () => {
  const person = await opened();
  const { page } = person;
  await person.to('Files');
  const path = await page.locator('#files .title').last().innerText();
  const good = readFileSync(path, 'utf8');
  const reread = async () => {
    await person.tabTo('Read the files again');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/operator/files?done=reload');
  };
  writeFileSync(path, '{\n  "servers": ');
  await reread();
  await page.getByText('one of them is refused').waitFor();
  const reason = await page.locator('#files .reason').innerText();
  assert.match(reason, /line 2/);
  await person.check('operator-files-refused');
  writeFileSync(path, good);
  await person.to('Files');
  await reread();
  await page.getByText('The files were read again.', { exact: true }).waitFor();
});

test('the audit of the installation has the change of the key', async () => {
  const person = await opened();
  const { page } = person;
  await person.to('Audit');
  await page.getByLabel('What (beginning of the kind)').focus();
  await page.keyboard.type('vault.key');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/operator/audit?*kind=vault.key*');
  assert.equal(await page.locator('.wide tbody tr').count(), 1);
});
