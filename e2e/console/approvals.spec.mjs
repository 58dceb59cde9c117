// Approvals: an agent asks, a human decides, and what was granted is revoked.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { DESK, PHONE, Site, entry, node } from './site.mjs';

const HERE = '/api/workspaces/default';

let site;
let run;
let asks = 0;

before(async () => {
  site = await Site.start('approvals', { small: entry() });
  await site.until('small', 'ready');
  const { args } = entry();
  const notes = { command: node(), args, tool_scopes: { status: 'notes.read' } };
  await site.done('PUT', `${HERE}/mcp-servers/notes`, notes);
  const writer = { mcpServers: { notes: { ref: 'notes' } }, builtin: 'all' };
  await site.done('PUT', `${HERE}/agents/writer`, writer);
  run = await site.done('POST', `${HERE}/runs`, { type: 'start_session', agent_name: 'writer' });
  const refused = await site.call(run, 'notes', 'status', {});
  assert.match(JSON.stringify(refused), /permission_required/);
});
after(() => site?.stop());

/** The agent asks. Gives the id of its request. */
async function ask(more = {}) {
  asks += 1;
  const details = { scope: `notes.scope${asks}`, ...more };
  const asked = await site.call(run, 'narthex', 'request_grant', {
    request_id: `ask-${asks}`,
    grant_type: 'tool_scope',
    scope: 'session',
    details,
    justification: 'to read <b>the status</b>',
  });
  const id = asked.structuredContent?.grant_request_id;
  assert.ok(id, JSON.stringify(asked));
  return { id, what: `tool scope ${details.scope}` };
}

async function opened(options) {
  const person = await site.person(options);
  await person.go('Approvals');
  await person.page.getByRole('heading', { level: 1, name: 'Approvals' }).waitFor();
  return person;
}

const at = (page, path) => page.goto(`${new URL(page.url()).origin}/w/default/${path}`);

/** Chooses the calls to allow, and approves, by keyboard. */
async function approve(person, duration) {
  const { page } = person;
  await page.locator(`#for-${duration}`).focus();
  await page.keyboard.press('Space');
  await person.tabTo('Approve');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Approved' }).waitFor();
}

for (const viewport of [PHONE, DESK]) {
  test(`approvals at ${viewport.width} pixels`, async () => {
    const { id } = await ask({
      scope: 'notes.read',
      server: 'notes',
      tool: 'status',
      arguments: { folder: 'a'.repeat(300), '\u202eend': '<script>' },
    });
    const person = await opened({ viewport });
    await person.check('approvals');
    await at(person.page, `approvals/${id}`);
    await person.page.getByText('a grant that was missing').first().waitFor();
    await person.check('approval');
    await at(person.page, 'approvals?status=decided');
    await person.check('approvals-decided');
    await at(person.page, 'grants');
    await person.check('grants');
  });
}

test('a request comes to the open inbox, and is approved by keyboard', async () => {
  const person = await opened();
  const { page } = person;
  const { what } = await ask();
  const row = page.locator('#approvals .rows > li', { hasText: what });
  await row.waitFor();
  await row.getByRole('link', { name: /^Decide/ }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Approve this request?' }).waitFor();
  assert.equal(await page.locator('input[type=radio]:checked').count(), 0);
  await approve(person, 'once');
  await person.check('approved');
});

test('the address in a notification leads to the page', async () => {
  const person = await opened();
  const { page } = person;
  const { id, what } = await ask();
  await page.goto(`${new URL(page.url()).origin}/workspaces/default/grant-requests/${id}`);
  await page.waitForURL(`**/w/default/approvals/${id}`);
  await page.getByRole('heading', { level: 1, name: 'Approve this request?' }).waitFor();
  const scope = what.replace('tool scope ', '');
  await page.locator('dd').getByText(scope, { exact: true }).waitFor();
  assert.deepEqual(person.faults, []);
});

test('a request is denied without a script, with a reason', async () => {
  const { id } = await ask();
  const person = await opened({ javaScriptEnabled: false });
  const { page } = person;
  await at(page, `approvals/${id}`);
  await page.locator('input[name=denial]').fill('not on a Friday');
  await page.getByRole('button', { name: 'Deny' }).click();
  await page.getByRole('heading', { level: 1, name: 'Denied' }).waitFor();
  assert.match(await page.locator('main').innerText(), /not on a Friday/);
  await at(page, 'approvals?status=denied&agent=writer');
  assert.match(await page.locator('#approvals').innerText(), /denied by/);
});

test('an approval with a passkey proves a human', async () => {
  const { id } = await ask({ scope: 'notes.read' });
  const person = await opened();
  const { page } = person;
  await person.recognized();
  await at(page, `approvals/${id}`);
  await page.getByRole('link', { name: 'Make a passkey' }).click();
  await page.getByLabel('Name of the new passkey').fill('this computer');
  await page.getByRole('button', { name: 'Add a passkey' }).click();
  await page.getByText('this computer').waitFor();
  await at(page, `approvals/${id}`);
  const off = page.locator('button[aria-disabled=true]', { hasText: 'Approve' });
  await off.waitFor();
  await person.check('approval-needs-proof');
  await person.tabTo('Sign in with proof');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
  await page.waitForURL(`**/w/default/approvals/${id}`);
  await approve(person, 'session');
  await page.getByText('proved that a human approved it').waitFor();
  const { body } = await site.daemon.api(`${HERE}/grants`);
  const granted = body.items.find((one) => one.details.scope === 'notes.read');
  assert.equal(granted.is_advisory, false);
  assert.equal(granted.counts, true);
  const answer = await site.call(run, 'notes', 'status', {});
  assert.doesNotMatch(JSON.stringify(answer), /permission_required/);
  assert.deepEqual(person.faults, []);

  await page.getByRole('link', { name: 'The grant' }).click();
  await page.getByText('1 active run loses it').waitFor();
  await person.check('grant');
  await person.tabTo('Revoke');
  await page.keyboard.press('Enter');
  await page.locator('#told').getByText('The grant is revoked.').waitFor();
  assert.match(JSON.stringify(await site.call(run, 'notes', 'status', {})), /permission_required/);
  assert.deepEqual(person.faults, []);
});
