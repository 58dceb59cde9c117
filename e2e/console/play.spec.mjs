// The playground: a form beside its JSON, and a call with its answer as it came.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { DESK, PHONE, Site } from './site.mjs';

const TOOLBOX = new URL('toolbox.mjs', import.meta.url).pathname;

let site;
before(async () => {
  const box = { transport: 'stdio', command: process.execPath, args: [TOOLBOX] };
  site = await Site.start('play', { box });
  await site.until('box', 'ready');
});
after(() => site?.stop());

async function opened(tool, options) {
  const person = await site.person(options);
  const { page } = person;
  await person.go('Playground');
  await page.getByLabel('Server', { exact: true }).selectOption('box');
  await page.getByRole('button', { name: 'Show' }).click();
  await page.getByLabel('Tool', { exact: true }).selectOption(tool);
  await page.getByRole('button', { name: 'Show' }).click();
  await page.getByRole('heading', { name: tool, exact: true }).waitFor();
  return person;
}

for (const viewport of [PHONE, DESK]) {
  test(`a call at ${viewport.width} pixels`, async () => {
    const person = await opened('greet', { viewport });
    const { page } = person;
    await person.check('play');
    await page.getByLabel('JSON', { exact: true }).fill('{"name": "ada"}');
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    await page.locator('#answer').getByText('The tool has answered').waitFor();
    await person.check('play-answer');
  });
}

test('the form fills in the JSON, and the call is made, by keyboard', async () => {
  const person = await opened('greet');
  const { page } = person;
  assert.equal(await page.getByLabel('count').inputValue(), '1');
  await page.getByLabel('name (required)').focus();
  await page.keyboard.type("d'arc");
  await page.getByLabel('place.town').fill('Oslo');
  await page.getByLabel('words').fill('one\ntwo');
  await person.tabTo('Fill in the JSON');
  await page.keyboard.press('Enter');
  const json = page.getByLabel('JSON', { exact: true });
  await page.waitForURL('**/play/call#answer');
  const filled = { count: 1, name: "d'arc", place: { town: 'Oslo' }, words: ['one', 'two'] };
  assert.deepEqual(JSON.parse(await json.inputValue()), filled);
  const command = page.locator('.halves code').filter({ hasText: 'narthex call' });
  assert.match(await command.innerText(), /^narthex call box greet /);
  await person.tabTo('Call');
  await page.keyboard.press('Enter');
  const answer = page.locator('#answer');
  await answer.getByText('The tool has answered').waitFor();
  const text = await answer.innerText();
  assert.match(text, /hello d'arc <script>alert\(1\)<\/script>/);
  assert.match(text, /allowed; no grant was needed/);
  assert.deepEqual(person.faults, []);
});

test('a part that cannot be a field says so, and a fault stays at its field', async () => {
  const { page } = await opened('greet');
  assert.match(await page.locator('.halves').innerText(), /This part stays JSON/);
  await page.getByLabel('count').fill('many');
  await page.getByRole('button', { name: 'Fill in the JSON' }).click();
  await page.locator('.fault').getByText('this is not a number').waitFor();
  assert.equal(await page.getByLabel('count').inputValue(), 'many');
});

test('a destructive tool asks first, without a script', async () => {
  const person = await opened('wipe', { javaScriptEnabled: false });
  const { page } = person;
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  await page.getByRole('heading', { name: 'Call wipe?' }).waitFor();
  await page.getByRole('button', { name: 'Change the arguments' }).click();
  await page.getByRole('heading', { name: 'Playground' }).waitFor();
  assert.equal(await page.locator('#answer').count(), 0);
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  await page.getByRole('button', { name: 'Call it' }).click();
  await page.locator('#answer').getByText('everything is gone').waitFor();
});

test('the question looks right', async () => {
  const person = await opened('wipe');
  await person.page.getByRole('button', { name: 'Call', exact: true }).click();
  await person.page.getByRole('heading', { name: 'Call wipe?' }).waitFor();
  await person.check('play-ask');
});
