// Policy: rules are tested, previewed and stored.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { DESK, PHONE, Site, entry } from './site.mjs';

const RULE = '@id("no_history")\nforbid(principal, action, resource == Tool::"small/history");';

let site;
before(async () => {
  site = await Site.start('policy', { small: entry() });
  await site.until('small', 'ready');
});
after(() => site?.stop());

async function opened(options) {
  const person = await site.person(options);
  await person.go('Policy');
  await person.page.getByRole('heading', { name: 'Policy', exact: true }).waitFor();
  return person;
}

for (const viewport of [PHONE, DESK]) {
  test(`rules at ${viewport.width} pixels`, async () => {
    const person = await opened({ viewport });
    await person.check('policy');
  });
}

test('a call is tested by keyboard before the rules are stored', async () => {
  const person = await opened();
  const { page } = person;
  await page.getByLabel('Cedar').fill(RULE);
  await page.getByLabel('Server', { exact: true }).fill('small');
  await page.getByLabel('Tool', { exact: true }).fill('history');
  await person.tabTo('Test the call');
  await page.keyboard.press('Enter');
  await page.locator('#decision').getByText('Forbidden by the rule no_history, line 1').waitFor();
  await person.check('policy-decision');
  assert.equal(await page.getByLabel('Cedar').inputValue(), RULE);
});

test('a fault has its line, and the text stays, without a script', async () => {
  const { page } = await opened({ javaScriptEnabled: false });
  await page.getByLabel('Cedar').fill('// fine\nforbid(principal');
  await page.getByRole('button', { name: 'Save' }).click();
  assert.match(await page.locator('.note.broken').innerText(), /line 2/);
  assert.equal(await page.getByLabel('Cedar').inputValue(), '// fine\nforbid(principal');
});

test('rules are stored, and not over those of another', async () => {
  const one = await opened();
  const two = await opened();
  await one.page.getByLabel('Cedar').fill('// of one');
  await one.page.getByRole('button', { name: 'Save' }).click();
  await one.page.locator('#told').getByText('The rules are stored').waitFor();
  await two.page.getByLabel('Cedar').fill('// of two');
  await two.page.getByRole('button', { name: 'Save' }).click();
  await two.page.locator('#told').getByText('changed since you read them').waitFor();
  assert.equal(await two.page.getByLabel('Cedar').inputValue(), '// of two');
});
