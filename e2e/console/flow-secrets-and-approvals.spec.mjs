// One story across the pages: a server is registered, gets its secret, and is attached to an agent.
// A run of the agent is refused a call, asks, and is allowed it by a human with a passkey. Without
// the secret, the next run is refused, and the page leads to what mends it. (X-M12, X-M52, D15, R7)

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { Programs } from './programs.mjs';
import { Site, node } from './site.mjs';

const VALUE = 'canary-8831-of-a-key';
const SERVER = new URL('tracker.mjs', import.meta.url).pathname;
const MANIFEST = JSON.stringify({
  env: {
    TRACKER_KEY: { kind: 'secret', label: 'API key', required: true },
    TRACKER_TEAM: { kind: 'value', label: 'Team' },
  },
  tool_scopes: { create_issue: 'tracker.write' },
});
const REFUSED = 'agent `planner` needs the secret `TRACKER_KEY` for `TRACKER_KEY` of `tracker`';

let programs;
let site;
let person;
let watcher;
let program;
before(async () => {
  programs = await Programs.listen();
  site = await Site.start('flow-secrets', {}, { settings: programs.settings });
  person = await site.person();
  await person.recognized();
  watcher = await site.person();
});
after(async () => {
  await site?.stop();
  await programs?.close();
});

/** Looks at the open page, which has no value of the secret. */
async function looks(who, name) {
  await who.looks(`flow-${name}`);
  assert.ok(!(await who.page.content()).includes(VALUE), `${name} has the value`);
}

/** Reads a text into the form of the catalog. */
async function pasted(page, text, told) {
  await page.getByLabel('An entry as another program writes it').fill(text);
  await page.getByRole('button', { name: 'Read it into the form' }).click();
  await page.locator('#taken').getByText(told).waitFor();
}

/** Types a value into the row of a secret that is not set. */
async function set(page, row) {
  await row.locator('input[name=value]').fill(VALUE);
  await row.getByRole('button', { name: 'Save' }).click();
  await page.locator('#told').getByText('TRACKER_KEY is set').waitFor();
}

/** The page of the agent. */
async function agent() {
  await person.to('Agents');
  await person.page.getByRole('link', { name: 'planner', exact: true }).click();
  await person.page.getByRole('heading', { name: 'Agent planner', level: 1 }).waitFor();
}

/** Starts a run on the page of the agent. Gives its id. */
async function started() {
  const { page } = person;
  await page.getByRole('button', { name: 'Start a run' }).click();
  await page.waitForURL('**/runs/run_*');
  program = await programs.next();
  assert.equal(page.url().split('/').at(-1), program.run);
}

const calls = (words) => watcher.page.locator('#calls > li', { hasText: words });

test('a server is registered by what its README says', async () => {
  const { page } = person;
  await person.to('Catalog');
  await page.getByRole('link', { name: 'Add a server' }).click();
  const mcpServers = { tracker: { command: node(), args: [SERVER] } };
  await pasted(page, JSON.stringify({ mcpServers }), 'tracker is in the form now.');
  await pasted(page, MANIFEST, 'The keys of the form have its 2 variables.');
  assert.equal(await page.locator('[name="command"]').inputValue(), node());
  assert.equal(await page.locator('[name="args"]').inputValue(), SERVER);
  assert.ok(await page.locator('[name="key.0.secret"]').isChecked());
  await looks(person, 'catalog-form');
  await page.getByRole('button', { name: 'Add the server' }).click();
  await page.getByText(/^tracker is saved/).waitFor();
  await looks(person, 'catalog-entry');
});

test('its secret is set, and never shown', async () => {
  const { page } = person;
  await person.to('Secrets');
  await page.getByRole('link', { name: 'Add a secret' }).click();
  await page.getByLabel('Name').fill('TRACKER_KEY');
  await page.getByLabel('Value').fill(VALUE);
  await page.getByRole('button', { name: 'Save' }).click();
  await page.locator('#told').getByText('TRACKER_KEY is set').waitFor();
  await looks(person, 'secret-set');
});

test('an agent has it from the catalog, with a reference to the secret', async () => {
  const { page } = person;
  await person.to('Agents');
  await page.locator('#f-name').fill('planner');
  await page.getByRole('button', { name: 'New agent' }).click();
  await page.getByRole('heading', { name: 'Agent planner', level: 1 }).waitFor();
  await page.getByLabel('Executor').selectOption('desk');
  await page.getByLabel('Server of the catalog').selectOption('tracker');
  await page.getByRole('button', { name: 'Attach', exact: true }).click();
  await page.getByText(', not saved yet', { exact: false }).first().waitFor();
  const key = page.locator('[name="v.tracker.TRACKER_KEY"]');
  const offered = await key.locator('option').evaluateAll((all) => all.map((one) => one.value));
  assert.deepEqual(offered, ['', '${TRACKER_KEY}'], 'a secret is named, and not typed');
  await key.selectOption('${TRACKER_KEY}');
  await page.locator('[name="v.tracker.TRACKER_TEAM"]').fill('core');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.locator('#told').getByText('Saved.').waitFor();
  await page.locator('#effective mark.source').getByText('${TRACKER_KEY}').waitFor();
  await looks(person, 'agent');
});

test('a run is refused a call, and asks', async () => {
  await watcher.to('Runs');
  await agent();
  await started();
  // The run has come into the open list.
  await watcher.page.locator('#main').getByRole('link', { name: /planner/ }).first().click();
  await watcher.page.locator('#run-top').getByText('running', { exact: true }).first().waitFor();
  assert.ok(program.tools.includes('mcp__tracker__create_issue'), program.tools.join(', '));
  const found = await program.call('mcp__tracker__search_issues');
  assert.equal(found.content[0].text, 'no issue of core is open');
  const refused = await program.call('mcp__tracker__create_issue', { title: 'Mend the door' });
  assert.ok(refused.isError);
  const { error } = refused.structuredContent;
  assert.equal(error.kind, 'permission_required');
  await calls('create_issue').getByText('refused by the check of grants').waitFor();
  await looks(watcher, 'trace-refused');
  const [ask] = error.details.ask.calls;
  const asked = await program.call(ask.name, ask.arguments);
  assert.equal(asked.structuredContent.status, 'pending', JSON.stringify(asked));
  await calls('request_grant').first().waitFor();
});

test('a human allows it with a passkey, and the same call succeeds', async () => {
  const { page } = person;
  const decided = program.call('mcp__narthex__read_messages', { wait_seconds: 60 });
  await page.locator('#waits.some').click();
  await page.getByRole('heading', { name: 'Approvals', level: 1 }).waitFor();
  await page.getByRole('link', { name: /^Decide.*tracker\.write/ }).click();
  await page.getByText('create_issue of tracker').first().waitFor();
  await looks(person, 'approval');
  await page.getByRole('link', { name: 'Make a passkey' }).click();
  await page.getByLabel('Name of the new passkey').fill('this computer');
  await page.getByRole('button', { name: 'Add a passkey' }).click();
  await page.getByText('this computer').waitFor();
  await looks(person, 'passkey');
  await page.getByRole('link', { name: 'Open the console' }).click();
  await page.locator('#waits.some').click();
  await page.getByRole('link', { name: /^Decide.*tracker\.write/ }).click();
  await page.locator('button[aria-disabled=true]', { hasText: 'Approve' }).waitFor();
  await looks(person, 'approval-needs-proof');
  await page.getByRole('link', { name: 'Sign in with proof' }).click();
  await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
  await page.locator('#for-session').check();
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.getByRole('heading', { name: 'Approved', level: 1 }).waitFor();
  await page.getByText('proved that a human approved it').waitFor();
  await looks(person, 'approved');
  assert.match(JSON.stringify(await decided), /approved|granted/);
  const made = await program.call('mcp__tracker__create_issue', { title: 'Mend the door' });
  const text = `created “Mend the door” for core with a key of ${VALUE.length} characters`;
  assert.equal(made.content[0].text, text);
});

test('the open trace has all of it', async () => {
  await calls('create_issue').getByText('allowed by the grant').waitFor();
  const rows = await watcher.page.locator('#calls > li').evaluateAll((all) =>
    all.map((one) => [...one.querySelectorAll('.title, .badge')].map((part) => part.innerText)));
  assert.deepEqual(rows.map(([name]) => name).toReversed(), [
    'search_issues', 'create_issue', 'request_grant', 'read_messages', 'create_issue',
  ]);
  const outcomes = rows.map(([, outcome]) => outcome.trim()).toReversed();
  assert.equal(outcomes[1], 'permission_required');
  assert.deepEqual([outcomes[0], ...outcomes.slice(2)], ['ok', 'ok', 'ok', 'ok']);
  await looks(watcher, 'trace');
  program.end();
  await watcher.page.locator('#run-top').getByText('ended', { exact: true }).first().waitFor();
  await looks(watcher, 'trace-ended');
});

test('without the secret a run is refused at once, and the page leads to it', async () => {
  const { page } = person;
  await person.to('Secrets');
  const row = page.locator('#secret-TRACKER_KEY');
  await row.getByRole('link', { name: /^Clear/ }).click();
  assert.match(await page.locator('#places').innerText(), /planner/);
  await looks(person, 'secret-clear');
  await page.getByRole('button', { name: 'Clear it' }).click();
  await page.locator('#told').getByText('TRACKER_KEY is cleared').waitFor();
  const runs = async () => (await site.daemon.api('/api/workspaces/default/runs')).body.items;
  const before = (await runs()).length;
  await agent();
  await page.getByRole('button', { name: 'Start a run' }).click();
  await page.locator('#told').getByText(REFUSED).waitFor();
  assert.equal((await runs()).length, before, 'no run was created');
  // The browser notes the status of a refusal, which is meant here.
  person.faults = person.faults.filter((fault) => !/status of 4\d\d/.test(fault));
  await looks(person, 'run-refused');
  await page.getByRole('link', { name: 'Set TRACKER_KEY' }).click();
  await page.waitForURL('**/secrets?q=TRACKER_KEY');
  await set(page, row);
  await agent();
  await started();
  const found = await program.call('mcp__tracker__search_issues');
  assert.equal(found.content[0].text, 'no issue of core is open');
  program.end();
  assert.deepEqual([...person.faults, ...watcher.faults], []);
});
