// Secrets: three states of a row, by keyboard, and no value anywhere (X-M51, X-M52, S27).

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { DESK, PHONE, Site, entry } from './site.mjs';

const CANARY = 'canary-4711-of-a-value';

let site;
before(async () => {
  const small = { ...entry(), env: { DOCS_KEY: '${secret:DOCS_KEY}' } };
  site = await Site.start('secrets', { small });
  await site.until('small', 'error');
  await set('LINEAR_API_KEY');
});
after(() => site?.stop());

async function set(name) {
  const path = `/api/workspaces/default/secrets/${name}`;
  const { status } = await site.daemon.api(path, 'PUT', { value: CANARY });
  assert.ok(status < 300, `${name}: ${status}`);
}

async function opened(options) {
  const person = await site.person(options);
  person.answers = [];
  person.page.on('response', (response) => {
    person.answers.push(response.text().then((text) => text, () => ''));
  });
  await person.go('Secrets');
  await person.page.getByRole('heading', { name: 'Secrets', exact: true, level: 1 }).waitFor();
  return person;
}

function row(page, name) {
  return page.locator(`#secret-${name}`);
}

/** No value is in the page, in an input or in an answer of the network. */
async function unseen(person) {
  const { page } = person;
  assert.ok(!(await page.content()).includes(CANARY), 'the page has the value');
  const inputs = await page.locator('input').evaluateAll((all) => all.map((one) => one.value));
  assert.ok(!inputs.includes(CANARY), 'an input has the value');
  for (const text of await Promise.all(person.answers)) assert.ok(!text.includes(CANARY));
}

for (const viewport of [PHONE, DESK]) {
  test(`secrets at ${viewport.width} pixels`, async () => {
    await set('LINEAR_API_KEY');
    const person = await opened({ viewport });
    await person.check('secrets');
    await row(person.page, 'LINEAR_API_KEY').getByRole('link', { name: 'Replace' }).click();
    await row(person.page, 'LINEAR_API_KEY').getByText('replacing').waitFor();
    await person.check('secrets-replacing');
    await unseen(person);
  });
}

test('a secret that a server names is set, replaced and cleared by keyboard', async () => {
  const person = await opened();
  const { page } = person;
  const docs = row(page, 'DOCS_KEY');
  assert.match(await docs.innerText(), /not set/);
  const save = docs.getByRole('button', { name: 'Save' });
  assert.ok(await save.isDisabled(), 'Save is enabled before a value is typed');
  await docs.locator('input[name=value]').focus();
  await page.keyboard.type(CANARY);
  assert.ok(await save.isEnabled());
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.locator('#told').getByText('DOCS_KEY is set').waitFor();
  assert.match(await docs.innerText(), /version 1/);
  await unseen(person);
  await site.until('small', 'ready');

  await page.locator('#filter').focus();
  await page.keyboard.type('DOCS');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/secrets?q=DOCS');
  await person.tabTo('Replace');
  await page.keyboard.press('Enter');
  await docs.getByText('replacing').waitFor();
  const focused = await page.evaluate(() => document.activeElement.name);
  assert.equal(focused, 'value', 'the fresh input has the focus');
  assert.equal(await docs.locator('input[name=value]').inputValue(), '');
  await page.keyboard.type(`${CANARY}-2`);
  await page.keyboard.press('Enter');
  await page.locator('#told').getByText('DOCS_KEY is set').waitFor();
  assert.match(await docs.innerText(), /version 2/);

  await page.locator('#filter').focus();
  await person.tabTo('Clear');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Clear DOCS_KEY' }).waitFor();
  assert.match(await page.locator('#places').innerText(), /servers\.small/);
  await person.check('secret-clear');
  await page.locator('#main').focus();
  await person.tabTo('Clear it');
  await page.keyboard.press('Enter');
  await page.locator('#told').getByText('DOCS_KEY is cleared').waitFor();
  assert.match(await docs.innerText(), /not set/);
  await unseen(person);
  assert.deepEqual(person.faults, []);
});

test('a new name is added, and Cancel changes nothing', async () => {
  const person = await opened();
  const { page } = person;
  await page.getByRole('link', { name: 'Add a secret' }).click();
  await page.getByLabel('Name').fill('TRACKER_KEY');
  await person.check('secret-new');
  await page.getByLabel('Value').fill(CANARY);
  await page.keyboard.press('Enter');
  await page.locator('#told').getByText('TRACKER_KEY is set').waitFor();
  const tracker = row(page, 'TRACKER_KEY');
  assert.match(await tracker.innerText(), /nothing refers to it/);
  await tracker.getByRole('link', { name: 'Replace' }).click();
  await tracker.getByRole('link', { name: 'Cancel' }).click();
  assert.match(await tracker.innerText(), /version 1/);
  await unseen(person);
});

test('everything works without a script, and an empty value is refused at its field', async () => {
  const person = await opened({ javaScriptEnabled: false });
  const { page } = person;
  await row(page, 'LINEAR_API_KEY').getByRole('link', { name: 'Replace' }).click();
  const linear = row(page, 'LINEAR_API_KEY');
  await linear.getByRole('button', { name: 'Save' }).click();
  assert.match(await linear.locator('.fault').innerText(), /Type a value/);
  await linear.locator('input[name=value]').fill(CANARY);
  await linear.getByRole('button', { name: 'Save' }).click();
  await page.waitForURL('**/secrets?done=set*');
  assert.match(await page.locator('#told').innerText(), /LINEAR_API_KEY is set/);
});
