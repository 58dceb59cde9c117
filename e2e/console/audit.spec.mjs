// The audit: an event is found, read and verified.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { DESK, PHONE, Site, entry } from './site.mjs';

let site;
before(async () => {
  site = await Site.start('audit', { small: entry() });
  await site.until('small', 'ready');
  await site.daemon.api('/api/servers/small/disable', 'POST');
});
after(() => site?.stop());

async function opened(options) {
  const person = await site.person(options);
  await person.go('Audit');
  await person.page.getByRole('heading', { name: 'Audit', exact: true }).waitFor();
  return person;
}

for (const viewport of [PHONE, DESK]) {
  test(`the audit at ${viewport.width} pixels`, async () => {
    const person = await opened({ viewport });
    await person.check('audit');
  });
}

test('an event is found and read by keyboard', async () => {
  const person = await opened();
  const { page } = person;
  await page.getByLabel('What (beginning of the kind)').focus();
  await page.keyboard.type('workspace.mcp.disabled');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/audit?*kind=workspace.mcp.disabled*');
  const rows = page.locator('.wide tbody tr');
  assert.equal(await rows.count(), 1);
  await rows.getByRole('link').focus();
  await page.keyboard.press('Enter');
  await page.getByText('did workspace.mcp.disabled on server small').waitFor();
  await page.getByText('The event matches its hash').waitFor();
  await person.check('audit-event');
});

test('the chain is verified when asked, and not before', async () => {
  const person = await opened();
  const { page } = person;
  assert.equal(await page.getByText('Verified just now').count(), 0);
  await person.tabTo('Verify now');
  await page.keyboard.press('Enter');
  await page.getByText('Verified just now').waitFor();
  await person.check('audit-verified');
});

test('the export is a file, without a script', async () => {
  const { page } = await opened({ javaScriptEnabled: false });
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Export' }).click(),
  ]);
  assert.equal(download.suggestedFilename(), 'audit.jsonl');
});
