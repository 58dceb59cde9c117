// Settings of a workspace: tabs, limits, members, and a token that is shown once.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { DESK, PHONE, Site, entry } from './site.mjs';

const HERE = '/api/workspaces/default';
const URL_VALUE = 'https://hooks.example.com/canary-4711';
const TABS = [
  'General',
  'Members',
  'Limits',
  'Channels',
  'Webhooks',
  'Service tokens',
  'Kept data',
  'Sign-in',
];

let site;
before(async () => {
  site = await Site.start('settings', { small: entry() });
  await site.until('small', 'ready');
  await site.done('PUT', `${HERE}/secrets/OPS_URL`, { value: URL_VALUE });
  await site.done('PUT', `${HERE}/secrets/OPS_KEY`, { value: 'canary-4712' });
  const secrets = { url: '${OPS_URL}', signing_key: '${OPS_KEY}' };
  await site.done('PUT', `${HERE}/channels/team`, { provider: 'webhook', ...secrets });
  await site.done('PUT', `${HERE}/webhooks/ops`, secrets);
  const token = { service: 'ci', roles: ['runner'], label: 'build' };
  await site.done('POST', `${HERE}/service-tokens`, token);
});
after(() => site?.stop());

async function opened(options) {
  const person = await site.person(options);
  await person.go('Settings');
  await person.page.getByRole('heading', { name: 'Settings', level: 1 }).waitFor();
  return person;
}

function tab(page, name) {
  return page.getByRole('navigation', { name: 'Settings' }).getByRole('link', { name });
}

for (const viewport of [PHONE, DESK]) {
  test(`settings at ${viewport.width} pixels`, async () => {
    const person = await opened({ viewport });
    const { page } = person;
    for (const name of TABS) {
      await tab(page, name).click();
      await page.locator(`nav.tabs a[aria-current]:text-is("${name}")`).waitFor();
      await person.check(`settings-${name.toLowerCase().replace(' ', '-')}`);
      assert.ok(!(await page.content()).includes('canary-47'), `${name} has a value`);
    }
  });
}

test('limits are refused at their fields and set by keyboard', async () => {
  const person = await opened();
  const { page } = person;
  await tab(page, 'Limits').focus();
  await page.keyboard.press('Enter');
  const day = page.getByLabel('Calls a day');
  await day.focus();
  await page.keyboard.type('many');
  await page.keyboard.press('Enter');
  await page.locator('.fault').waitFor();
  assert.match(await page.locator('.fault').innerText(), /whole number/);
  assert.equal(await day.inputValue(), 'many');
  // The browser notes the status of the answer.
  person.faults = [];
  await person.check('settings-limits-refused');
  await day.focus();
  await page.keyboard.press('Control+A');
  await page.keyboard.type('5000');
  await person.tabTo('Save the limits');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/limits?done=saved');
  assert.match(await page.locator('#today').innerText(), /of 5000/);
  assert.deepEqual(person.faults, []);
});

test('a member is added with an account, and removed after a question, by keyboard', async () => {
  const person = await opened();
  const { page } = person;
  await tab(page, 'Members').click();
  await page.getByRole('heading', { name: 'Members', level: 1 }).waitFor();
  await page.locator('#main').focus();
  await person.tabTo('Add a member');
  await page.keyboard.press('Enter');
  await page.getByRole('textbox', { name: 'Name' }).focus();
  await page.keyboard.type('grace');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Space');
  await person.check('settings-member-new');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/roles?done=created*');
  assert.match(await page.locator('#told').innerText(), /The account of grace is created/);
  await person.check('settings-member');
  await page.locator('#invite').getByRole('button').focus();
  await person.tabTo('Remove grace');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Remove grace?' }).waitFor();
  assert.match(await page.locator('#effects').innerText(), /All roles in this workspace go/);
  await person.check('settings-member-remove');
  await page.locator('#main').focus();
  await person.tabTo('Remove the member');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/members?done=removed*');
  assert.match(await page.locator('#told').innerText(), /grace is no member any more/);
  assert.deepEqual(person.faults, []);
});

test('a token is shown once, and revoked after a question', async () => {
  const person = await opened();
  const { page } = person;
  await tab(page, 'Service tokens').click();
  await page.getByRole('link', { name: 'Make a token' }).click();
  await page.getByLabel('Service').fill('deploy');
  await page.getByLabel('runner', { exact: true }).check();
  await page.getByRole('button', { name: 'Make the token' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Token of default/deploy' }).waitFor();
  const token = (await page.locator('#token code').first().innerText()).trim();
  assert.match(token, /^nxs_/);
  await person.check('settings-token');
  await page.getByRole('link', { name: 'Back to the tokens' }).click();
  await page.locator('#tokens').waitFor();
  assert.ok(!(await page.content()).includes(token), 'the list has the token');
  const row = page.locator('#tokens li', { hasText: 'default/deploy' });
  await row.getByRole('button', { name: 'Revoke' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Revoke the token of default/deploy?' }).waitFor();
  await person.check('settings-token-revoke');
  await page.getByRole('button', { name: 'Revoke the token' }).focus();
  await page.keyboard.press('Enter');
  await page.waitForURL('**/tokens?done=revoked*');
  assert.match(await row.innerText(), /revoked/);
  assert.deepEqual(person.faults, []);
});

test('channels and webhooks are edited without a script', async () => {
  const person = await opened({ javaScriptEnabled: false });
  const { page } = person;
  await tab(page, 'Channels').click();
  await page.locator('#channels').getByRole('link', { name: 'team' }).click();
  await page.getByLabel('Provider').selectOption('log');
  await page.getByLabel('Secret with the address').selectOption('');
  await page.getByLabel('Secret that signs').selectOption('');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.waitForURL('**/channels?done=saved*');
  assert.match(await page.locator('#channels').innerText(), /provider log/);
  await tab(page, 'Webhooks').click();
  await page.locator('#webhooks').getByRole('link', { name: 'ops' }).click();
  assert.match(await page.locator('#deliveries').innerText(), /Nothing was delivered yet/);
  await page.locator('#webhook').getByRole('link', { name: 'Remove' }).click();
  await page.getByRole('button', { name: 'Remove the webhook' }).click();
  await page.waitForURL('**/webhooks?done=removed*');
  assert.match(await page.locator('#told').innerText(), /The webhook ops is removed/);
});
