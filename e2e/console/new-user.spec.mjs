// A new user, from the pages alone: adds a server, sets a missing key, approves a call, finds why a
// call failed, and connects a client.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { PHONE, Site } from './site.mjs';

const TOOLBOX = new URL('toolbox.mjs', import.meta.url).pathname;
const COMMAND = `'${process.execPath}' '${TOOLBOX}'`;

let site;
let person;
before(async () => {
  site = await Site.start('new-user', {});
  person = await site.person();
});
after(() => site?.stop());

const heading = (name) => person.page.getByRole('heading', { level: 1, name, exact: true });

/** Fills in the form of a server, and waits for its state. */
async function added(name, variables, state) {
  const { page } = person;
  await heading('Add a server').waitFor();
  await page.getByLabel('Name', { exact: true }).fill(name);
  await page.getByLabel(/^Command, address or entry/).fill(COMMAND);
  await page.getByLabel('Variables').fill(variables);
  await page.getByRole('button', { name: 'Add the server' }).click();
  await heading(name).waitFor();
  await page.locator('#server-now').getByText(state, { exact: true }).waitFor();
}

/** Takes out the browser's own note about a refused form, which is no fault of the page. */
function refusalIsSeen(someone) {
  someone.faults = someone.faults.filter((fault) => !fault.includes('status of 422'));
}

/** A call as an agent with the token of the clients makes it. */
async function call(server, tool, body) {
  const { url, token } = site.daemon;
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const request = { method: 'POST', headers, body: JSON.stringify(body) };
  return (await fetch(`${url}/mcp/${server}/tools/${tool}`, request)).json();
}

test('the first page leads to the form that adds a server', async () => {
  const { page } = person;
  await page.getByRole('link', { name: 'Add a server' }).click();
  await heading('Add a server').waitFor();
  await person.check('new-user-add');
  await page.getByLabel('Name', { exact: true }).fill('box');
  await page.getByLabel(/^Command, address or entry/).fill("npx 'unclosed");
  await page.getByRole('button', { name: 'Add the server' }).click();
  await page.getByText('A quotation mark is not closed').waitFor();
  refusalIsSeen(person);
  assert.equal(await page.getByLabel('Name', { exact: true }).inputValue(), 'box');
  await added('box', '', 'ready');
  await person.check('new-user-server');
});

test('a row that lacks a key leads to its secret', async () => {
  const { page } = person;
  await person.go('Connected services');
  await page.getByRole('link', { name: 'Add a server' }).click();
  await added('keyed', 'BOX_KEY=${secret:BOX_KEY}', 'error');
  await person.check('new-user-broken');
  await page.getByRole('link', { name: /^Set BOX_KEY/ }).click();
  await page.getByLabel('Value of BOX_KEY').fill('canary-value-1');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('BOX_KEY is set').waitFor();
  assert.ok(!(await page.content()).includes('canary-value-1'));
  await site.until('keyed', 'ready');
});

test('a call is gated, asked for and approved', async () => {
  const { page } = person;
  await person.go('Tools');
  await page.getByLabel('Choose greet of box').check();
  await page.getByLabel('Change', { exact: true }).selectOption({ label: 'require a scope' });
  await page.getByLabel('Tool scope').fill('box.greet');
  await page.getByRole('button', { name: 'Change them' }).click();
  await page.getByText('1 tool is gated now.').waitFor();
  const refused = await call('box', 'greet', { name: 'ada' });
  assert.match(JSON.stringify(refused), /permission_required/);
  const details = { scope: 'box.greet', server: 'box', tool: 'greet' };
  const asked = await call('narthex', 'request_grant', {
    request_id: 'greet-1',
    grant_type: 'tool_scope',
    scope: 'once',
    details,
    justification: 'to greet',
  });
  assert.ok(asked.structuredContent?.grant_request_id, JSON.stringify(asked));
  await person.go('Approvals');
  await page.getByRole('link', { name: /^Decide/ }).click();
  await person.check('new-user-approval');
  await page.locator('#for-once').check();
  await page.getByRole('button', { name: 'Approve', exact: true }).click();
  await heading('Approved').waitFor();
  assert.match(JSON.stringify(await call('box', 'greet', { name: 'ada' })), /hello ada/);
});

test('the run says why a call failed, and what mends it', async () => {
  const { page } = person;
  await person.go('Runs');
  await page.getByRole('link', { name: /daemon's own run/ }).click();
  const cause = page.locator('#calls .cause').first();
  assert.match(await cause.innerText(), /greet requires a grant/);
  await person.check('new-user-failed');
  await cause.getByRole('link', { name: 'Approvals' }).click();
  await heading('Approvals').waitFor();
});

test('a client is connected by its file', async () => {
  const { page } = person;
  const folder = join(site.daemon.env.HOME, '.cursor');
  mkdirSync(folder, { recursive: true });
  await person.go('Connect a client');
  await page.getByRole('link', { name: 'Cursor', exact: true }).click();
  await page.getByRole('button', { name: /^Write/ }).click();
  await page.locator('#told').getByText('has the entry now').waitFor();
  assert.match(readFileSync(join(folder, 'mcp.json'), 'utf8'), /"connect"/);
});

test('the form of a server fits a phone, and works without a script', async () => {
  const other = await site.person({ viewport: PHONE, javaScriptEnabled: false });
  const { page } = other;
  await page.goto(`${new URL(page.url()).origin}/w/default/add-server`);
  await page.getByLabel('Name', { exact: true }).fill('box');
  await page.getByLabel(/^Command, address or entry/).fill(COMMAND);
  await page.getByRole('button', { name: 'Add the server' }).click();
  await page.getByText('there is a server `box` already').waitFor();
  refusalIsSeen(other);
  await page.getByLabel(/^Replace the entry/).check();
  await page.getByRole('button', { name: 'Add the server' }).click();
  await page.getByText('box is added').waitFor();
  assert.deepEqual(other.faults, []);
});
