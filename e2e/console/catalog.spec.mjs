// The catalog: an entry is pasted, mended, saved, changed and removed, by keyboard and without a
// script.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { DESK, PHONE, Site, entry } from './site.mjs';

const SERVERS = '/api/workspaces/default/mcp-servers';
const PASTED = JSON.stringify({
  servers: { papers: { command: 'npx', args: ['-y', 'papers@1.0.0'], envFile: 'papers.env' } },
});

let site;
before(async () => {
  site = await Site.start('catalog', { small: entry() });
  const docs = {
    url: 'http://127.0.0.1:9/mcp',
    config_schema: { api_key: { kind: 'secret', required: true, description: 'The key' } },
  };
  await site.daemon.api(`${SERVERS}/docs`, 'PUT', docs);
  await site.daemon.api(`${SERVERS}/picture`, 'PUT', { image: 'registry.example.com/picture:1' });
});
after(() => site?.stop());

async function opened(options) {
  const person = await site.person(options);
  await person.go('Catalog');
  await person.page.getByRole('heading', { name: 'Catalog', level: 1 }).waitFor();
  return person;
}

for (const viewport of [PHONE, DESK]) {
  test(`the catalog at ${viewport.width} pixels`, async () => {
    const person = await opened({ viewport });
    const { page } = person;
    await person.check('catalog');
    await page.getByRole('link', { name: 'docs', exact: true }).click();
    await page.getByRole('heading', { name: 'docs', level: 1 }).waitFor();
    await person.check('catalog-entry');
    await page.getByRole('link', { name: 'Edit' }).click();
    await page.getByRole('heading', { name: 'Edit docs' }).waitFor();
    await person.check('catalog-edit');
    await page.goBack();
    await page.getByRole('link', { name: 'Remove' }).click();
    await page.getByText('Nothing refers to').waitFor();
    await person.check('catalog-remove');
  });
}

test('an entry of another program is pasted and saved by keyboard', async () => {
  const person = await opened();
  const { page } = person;
  await person.tabTo('Add a server');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Add a server' }).waitFor();
  await page.getByLabel('An entry as another program writes it').focus();
  await page.keyboard.insertText(PASTED);
  await person.tabTo('Read it into the form');
  await page.keyboard.press('Enter');
  await page.locator('#taken').getByText('This is a text of VS Code.').waitFor();
  assert.match(await page.locator('#taken').innerText(), /without `envFile`/);
  assert.equal(await page.getByLabel('Program', { exact: true }).inputValue(), 'npx');
  assert.equal(await page.getByLabel('Address', { exact: true }).isVisible(), false);
  await person.check('catalog-pasted');
  await page.locator('[name="rest"]').focus();
  await person.tabTo('Add the server');
  await page.keyboard.press('Enter');
  await page.getByText(/^papers is saved/).waitFor();
  assert.deepEqual(person.faults, []);
});

test('faults are at their fields, and what was typed stays', async () => {
  const person = await opened();
  const { page } = person;
  await page.getByRole('link', { name: 'Add a server' }).click();
  await page.getByLabel('Id required').fill('Not an id');
  await page.getByLabel('How it is reached').selectOption('command');
  await page.getByLabel('Program', { exact: true }).fill('npx -y x');
  await page.getByRole('button', { name: 'Validate' }).last().click();
  await page.getByText('2 things below have to be mended.').waitFor();
  assert.equal(await page.locator('[aria-invalid]').count(), 2);
  assert.equal(await page.getByLabel('Program', { exact: true }).inputValue(), 'npx -y x');
});

test('everything works without a script', async () => {
  const person = await opened({ javaScriptEnabled: false });
  const { page } = person;
  await page.getByRole('link', { name: 'docs', exact: true }).click();
  await page.getByRole('link', { name: 'Edit' }).click();
  await page.getByRole('button', { name: 'Add a row for a key' }).click();
  assert.equal(await page.locator('#keys fieldset').count(), 2);
  await page.locator('[name="key.1.name"]').fill('context');
  await page.locator('[name="name"]').fill('Papers');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('docs is saved.').waitFor();
  assert.match(await page.locator('tbody').innerText(), /context/);
  await page.getByRole('link', { name: 'Remove' }).click();
  await page.getByRole('button', { name: 'Remove' }).click();
  await page.waitForURL('**/catalog?done=removed*');
  assert.match(await page.locator('#told').innerText(), /docs is removed/);
});
