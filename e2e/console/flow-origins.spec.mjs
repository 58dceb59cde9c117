// A value on each level, by pages alone: a server, a capability and an agent are created, each
// shows what its values override, and a run gets what the preview has said. (O7, O32, O101, O16)

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { Papers } from './papers.mjs';
import { Programs } from './programs.mjs';
import { Site } from './site.mjs';

const VALUE = 'canary-5107-of-a-key';
const KEYS = [
  { name: 'context_id', required: true, description: 'The folder of the papers' },
  { name: 'workflow_id' },
  { name: 'limit', type: 'integer', more: '{"default": 5}' },
  { name: 'api_key', secret: true },
];
const VALUES = [['context_id', 'default'], ['api_key', '${DOCS_KEY}']];

let papers;
let programs;
let site;
let person;
before(async () => {
  [papers, programs] = await Promise.all([Papers.listen(), Programs.listen()]);
  site = await Site.start('flow-origins', {}, { settings: programs.settings });
  const secret = '/api/workspaces/default/secrets/DOCS_KEY';
  const { status } = await site.daemon.api(secret, 'PUT', { value: VALUE });
  assert.ok(status < 300, `${status}`);
  person = await site.person();
});
after(async () => {
  await site?.stop();
  await Promise.all([papers?.close(), programs?.close()]);
});

/** Looks at the open page, which has no value of the secret. */
async function looks(name) {
  await person.looks(`flow-origins-${name}`);
  assert.ok(!(await person.page.content()).includes(VALUE), `${name} has the value`);
}

/** Creates an object from its list. */
async function created(list, kind, name) {
  const { page } = person;
  await person.to(list);
  await page.locator('#f-name').fill(name);
  await page.getByRole('button', { name: `New ${kind.toLowerCase()}` }).click();
  await page.getByRole('heading', { name: `${kind} ${name}`, level: 1 }).waitFor();
}

/** Attaches the server under the alias that both levels have. */
async function attached() {
  const { page } = person;
  await page.getByLabel('Server of the catalog').selectOption('docs');
  await page.getByLabel('Name here (alias)').fill('library');
  await page.getByRole('button', { name: 'Attach', exact: true }).click();
  await page.getByText(', not saved yet', { exact: false }).first().waitFor();
}

const input = (key) => person.page.locator(`[name="v.library.${key}"]`);

async function saved() {
  await person.page.getByRole('button', { name: 'Save', exact: true }).click();
  await person.page.locator('#told').getByText('Saved.').waitFor();
}

/** The sentence under a field about the levels of its value. */
async function chain(key) {
  const field = person.page.locator('.field', { has: input(key) });
  return field.locator('p.origin').last().innerText();
}

/** The keys of the effective configuration: the value of a run, and the header it travels in. */
async function previewed() {
  const lists = person.page.locator('#effective dl.chain');
  const rows = await lists.locator('dt').evaluateAll((all) =>
    all.map((key) => {
      const text = (part) => key.nextElementSibling.querySelector(part)?.innerText ?? '';
      const header = text('small.soft').replace('travels as the header ', '');
      return [key.innerText, { value: text('.in-run .name'), header }];
    }));
  return Object.fromEntries(rows);
}

test('a server is created with its keys and its own values', async () => {
  const { page } = person;
  await person.to('Catalog');
  await page.getByRole('link', { name: 'Add a server' }).click();
  const add = (what) =>
    page.getByRole('button', { name: `Add a row for a ${what}` }).click();
  for (const [at, key] of KEYS.entries()) {
    const field = (name) => page.locator(`[name="key.${at}.${name}"]`);
    if (at > 0) await add('key');
    await field('name').fill(key.name);
    await field('description').fill(key.description ?? '');
    await field('more').fill(key.more ?? '');
    await field('type').selectOption(key.type ?? 'string');
    await field('required').setChecked(key.required ?? false);
    await field('secret').setChecked(key.secret ?? false);
  }
  for (const [at, [key, value]] of VALUES.entries()) {
    if (at > 0) await add('value');
    await page.locator(`[name="value.${at}.key"]`).fill(key);
    await page.locator(`[name="value.${at}.value"]`).fill(value);
  }
  await page.getByLabel('Id required').fill('docs');
  await page.getByLabel('Address', { exact: true }).fill(papers.url);
  await looks('server-form');
  await page.getByRole('button', { name: 'Add the server' }).click();
  await page.getByText(/^docs is saved/).waitFor();
  await looks('server');
  await person.to('Catalog');
  assert.match(await page.locator('#catalog').innerText(), /docs[\s\S]*4 keys/);
});

test('a capability overrides a value of the server', async () => {
  await created('Capabilities', 'Capability', 'papers');
  await attached();
  await input('context_id').fill('shared-knowledge');
  await input('workflow_id').fill('${scope.workflow_id}');
  await saved();
  const own = 'from the capability papers';
  assert.equal(await chain('context_id'), `${own}; overrides default of the catalog entry docs`);
  assert.equal(await chain('workflow_id'), own);
  assert.equal(await chain('limit'), 'from the schema of the server docs');
  assert.equal(await chain('api_key'), 'from the catalog entry docs');
  await looks('capability');
});

test('an agent overrides both', async () => {
  const { page } = person;
  await created('Agents', 'Agent', 'reader');
  await page.getByLabel('Executor').selectOption('desk');
  await page.getByLabel('papers', { exact: true }).check();
  await attached();
  await input('context_id').fill('${scope.context_id}');
  await input('limit').fill('7');
  await saved();
  assert.equal(
    await chain('context_id'),
    'from the agent reader; overrides shared-knowledge of the capability papers; overrides ' +
      'default of the catalog entry docs',
  );
  assert.equal(
    await chain('limit'),
    'from the agent reader; overrides 5 of the schema of the server docs',
  );
  const lost = await page.locator('#effective .lost s').allInnerTexts();
  assert.deepEqual(lost.sort(), ['5', 'default', 'shared-knowledge']);
  await looks('agent');
});

test('a preview without the scope says what is missing', async () => {
  const { page } = person;
  await page.getByRole('button', { name: 'Preview' }).click();
  await page.locator('#effective').getByText('would be refused').waitFor();
  assert.match(await page.locator('#effective').innerText(), /scope\.context_id/);
  await looks('refused');
});

test('a run gets what the preview has said', async () => {
  const { page } = person;
  await page.getByLabel('Scope context_id').fill('ctx-123');
  await page.getByRole('button', { name: 'Preview' }).click();
  await page.locator('#effective .in-run').getByText('ctx-123').waitFor();
  const said = await previewed();
  assert.equal(said.context_id.value, 'ctx-123');
  assert.equal(said.limit.value, '7');
  assert.match(said.workflow_id.value, /^left out, since scope\.workflow_id has no value/);
  await looks('preview');

  await page.getByRole('button', { name: 'Start a run' }).click();
  await page.waitForURL('**/runs/run_*');
  const program = await programs.next();
  assert.equal(page.url().split('/').at(-1), program.run);
  await program.call('mcp__library__search');
  for (const [key, { value, header }] of Object.entries(said)) {
    const got = papers.settings[header];
    if (key === 'api_key') assert.equal(got, VALUE);
    else if (value.startsWith('left out')) assert.equal(got, undefined, key);
    else assert.equal(got, value, key);
  }
  assert.deepEqual(Object.keys(said).sort(), KEYS.map(({ name }) => name).sort());

  const row = page.locator('#calls > li', { hasText: 'search' });
  await row.getByText('ok', { exact: true }).waitFor();
  await page.getByRole('link', { name: 'Configuration', exact: true }).click();
  await page.getByRole('heading', { name: 'What was frozen' }).waitFor();
  await looks('run-configuration');
  assert.ok(!(await page.content()).includes('ctx-123'), 'no page shows the scope of a run');
  program.end();
  await page.locator('#run-top').getByText('ended', { exact: true }).first().waitFor();
  assert.deepEqual(person.faults, []);
});
