// Runs: what an agent does and did, and why a call of it failed.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { DESK, PHONE, Site, entry } from './site.mjs';

const HERE = '/api/workspaces/default';
const CALLS = 60;

let site;
let run;
before(async () => {
  site = await Site.start('runs', { small: entry(), other: entry() });
  await site.until('small', 'ready');
  await site.until('other', 'ready');
  run = await begin();
  await call(run);
});
after(() => site?.stop());

/** A run with both servers. */
async function begin() {
  const asked = { tools: ['small', 'other'] };
  const { status, body } = await site.daemon.api(`${HERE}/runs`, 'POST', asked);
  assert.equal(status, 201, JSON.stringify(body));
  return body;
}

/** A call that fails: the server knows its tools, and answers no call of them. */
async function call({ token }, alias = 'small', tool = 'status') {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const url = `${site.daemon.url}/mcp/${alias}/tools/${tool}`;
  await (await fetch(url, { method: 'POST', headers, body: '{}' })).text();
}

async function opened(options) {
  const person = await site.person(options);
  await person.go('Runs');
  await person.page.getByRole('heading', { name: 'Runs', exact: true }).waitFor();
  return person;
}

/** The page of the run, from the list, by keyboard. */
async function ofRun(options) {
  const person = await opened(options);
  const { page } = person;
  await page.locator('#filter').focus();
  await person.tabTo(`Run ${run.pid}`);
  await page.keyboard.press('Enter');
  await page.locator('#calls li').first().waitFor();
  return person;
}

for (const viewport of [PHONE, DESK]) {
  test(`runs at ${viewport.width} pixels`, async () => {
    const person = await opened({ viewport });
    await person.check('runs');
    await person.page.goto(`${site.daemon.url}/w/default/sessions`);
    await person.check('sessions');
  });

  test(`a run with its tabs at ${viewport.width} pixels`, async () => {
    const person = await ofRun({ viewport });
    const { page } = person;
    await person.check('run');
    const here = page.url();
    await page.goto(`${here}?view=timeline`);
    await page.locator('svg.timeline rect').first().waitFor();
    await person.check('run-timeline');
    const tabs = ['tools', 'configuration', 'children', 'grants', 'messages', 'files', 'ending'];
    for (const tab of tabs) {
      await page.goto(`${here}/${tab}`);
      await person.check(`run-${tab}`);
    }
  });
}

test('why a call failed is found from the page alone', async () => {
  const person = await ofRun();
  const { page } = person;
  await page.locator('#main').focus();
  await person.tabTo('failed');
  await page.keyboard.press('Enter');
  await page.waitForURL('**status=failed');
  const row = page.locator('#calls li').first();
  assert.match(await row.innerText(), /status/);
  assert.match(await row.locator('.cause .reason').innerText(), /small/);
  assert.match(await row.locator('.cause').innerText(), /Look into the lines/);
  assert.match(await row.locator('.cause code').innerText(), /^narthex mcp logs small/);
});

test('calls come into the open page, and it keeps its length and its focus', async () => {
  const person = await ofRun();
  const { page } = person;
  await page.locator('#tool').focus();
  const rows = page.locator('#calls li');
  const id = await rows.first().getAttribute('id');
  for (let index = 0; index < CALLS; index += 1) await call(run, 'other', 'history');
  await page.waitForFunction(
    () => document.querySelectorAll('#calls li').length === 40
      && [...document.querySelectorAll('#calls .title')]
        .every((one) => one.innerText === 'history'),
  );
  assert.equal(await page.locator(`[id="${id}"]`).count(), 0, 'the oldest row has gone');
  const ids = await rows.evaluateAll((all) => all.map((one) => one.id));
  assert.equal(new Set(ids).size, ids.length);
  assert.equal(await page.evaluate(() => document.activeElement.id), 'tool');
  assert.match(await rows.first().innerText(), /bytes in/);
  assert.deepEqual(person.faults, []);
});

test('a run is ended by keyboard, after a question', async () => {
  const other = await begin();
  const person = await site.person();
  const { page } = person;
  await page.goto(`${site.daemon.url}/w/default/runs/${other.run_id}`);
  await page.locator('#main').focus();
  await person.tabTo('End the run');
  await page.keyboard.press('Enter');
  await page.getByText('Its token opens nothing any more.').waitFor();
  await page.locator('#main').focus();
  await person.tabTo('End the run');
  await page.keyboard.press('Enter');
  await page.locator('#run-top').getByText('ended', { exact: true }).first().waitFor();
  assert.deepEqual(person.faults, []);
});

test('a run that begins and ends changes the open list', async () => {
  const person = await opened();
  const { page } = person;
  const other = await begin();
  const row = page.locator(`#${other.run_id.replace('_', '-')}`);
  await row.getByText('running').waitFor();
  await site.daemon.api(`${HERE}/runs/${other.run_id}`, 'DELETE');
  await row.getByText('ended', { exact: true }).waitFor();
  assert.deepEqual(person.faults, []);
});

test('a message is sent without a script, and appears in a page that is open', async () => {
  const open = await site.person();
  await open.page.goto(`${site.daemon.url}/w/default/runs/${run.run_id}/messages`);
  const plain = await site.person({ javaScriptEnabled: false });
  const { page } = plain;
  await page.goto(`${site.daemon.url}/w/default/runs/${run.run_id}/messages`);
  await page.getByLabel('Message').fill('Take the second one.');
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByText('The message is sent.').waitFor();
  await open.page.locator('#messages').getByText('Take the second one.').waitFor();
  assert.deepEqual(open.faults, []);
});
