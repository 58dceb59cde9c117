// Capabilities and agents: a server is attached at two levels, each value shows where it comes from
// and what it overrides, and a preview with a scope shows the values of a run.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { DESK, PHONE, Site } from './site.mjs';

const API = '/api/workspaces/default';
const SERVER = {
  id: 'docs',
  name: 'Papers',
  description: 'Papers to read',
  url: 'http://localhost:9501/mcp',
  config_schema: {
    context_id: { type: 'string', required: true, description: 'The folder of the papers' },
    limit: { type: 'integer', default: 5 },
    strict: { type: 'boolean' },
    filter: { type: 'json' },
    api_key: { type: 'string', kind: 'secret', label: 'API key' },
  },
  default_config: { context_id: 'default' },
};

let site;
before(async () => {
  site = await Site.start('agents', {});
  await site.done('PUT', `${API}/secrets/DOCS_KEY`, { value: 'canary-5b2d' });
  await site.done('POST', `${API}/mcp-servers`, SERVER);
});
after(() => site?.stop());

/** Opens a page of the navigation by keyboard. */
async function opened(name, options) {
  const person = await site.person(options);
  await person.go(name);
  await person.page.getByRole('heading', { name, exact: true, level: 1 }).waitFor();
  return person;
}

/** Creates an object from its list, by keyboard. */
async function created(person, kind, name) {
  const { page } = person;
  const summary = page.locator('details.card > summary');
  if (!(await page.locator('#f-name').isVisible())) {
    await summary.focus();
    await page.keyboard.press('Enter');
  }
  await page.locator('#f-name').focus();
  await page.keyboard.type(name);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: `${kind} ${name}`, level: 1 }).waitFor();
}

/** Attaches the server, by keyboard. */
async function attached(person) {
  const { page } = person;
  await page.getByLabel('Server of the catalog').focus();
  await page.keyboard.type('docs');
  await page.getByLabel('Name here (alias)').focus();
  await page.keyboard.type('library');
  await person.tabTo('Attach');
  await page.keyboard.press('Enter');
  await page.getByText(', not saved yet', { exact: false }).first().waitFor();
}

/** Writes into a field of the attachment; Enter saves the form. */
async function written(page, key, value) {
  await page.locator(`[name="v.library.${key}"]`).focus();
  await page.keyboard.type(value);
}

async function saved(page) {
  await page.keyboard.press('Enter');
  await page.locator('#told').getByText('Saved.').waitFor();
}

test('a server, a capability and an agent: each value shows what it overrides', async () => {
  const person = await opened('Capabilities');
  const { page } = person;
  await created(person, 'Capability', 'papers');
  await attached(person);
  await written(page, 'context_id', 'archive');
  await saved(page);
  await page.locator('#effective').getByText('archive').waitFor();

  await page.getByRole('link', { name: 'Agents', exact: true }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor();
  await created(person, 'Agent', 'reader');
  await page.getByLabel('papers').focus();
  await page.keyboard.press('Space');
  await attached(person);
  await page.locator('[name="v.library.api_key"]').focus();
  await page.keyboard.type('${DOCS');
  await written(page, 'context_id', '${scope.context_id}');
  await saved(page);
  const field = page.locator('.field', { has: page.locator('[name="v.library.context_id"]') });
  assert.equal(
    await field.locator('p.origin').last().innerText(),
    'from the agent reader; overrides archive of the capability papers; overrides default of the ' +
      'catalog entry docs',
  );
  const lost = await page.locator('#effective .lost s').allInnerTexts();
  assert.deepEqual(lost, ['archive', 'default']);
  const sources = await page.locator('#effective mark.source').allInnerTexts();
  assert.deepEqual(sources.sort(), ['${DOCS_KEY}', '${scope.context_id}']);

  await page.locator('[name="scope.context_id"]').focus();
  await page.keyboard.type('ctx-9');
  await person.tabTo('Preview');
  await page.keyboard.press('Enter');
  await page.locator('#effective .in-run').getByText('ctx-9').waitFor();
  assert.ok(!(await page.content()).includes('canary-5b2d'));
  await person.check('agent-preview');
});

for (const viewport of [PHONE, DESK]) {
  test(`an agent at ${viewport.width} pixels`, async () => {
    const person = await opened('Agents', { viewport });
    await person.check('agents');
    await person.page.getByRole('link', { name: 'reader', exact: true }).click();
    await person.page.locator('#effective').waitFor();
    await person.check('agent');
    const [form, effect] = await Promise.all(
      ['#form', '#effective'].map((part) => person.page.locator(part).boundingBox()),
    );
    const isBeside = effect.x > form.x + form.width - 1;
    assert.equal(isBeside, viewport === DESK, 'the effect is beside the form, or below it');
  });
}

test('faults are at their fields, and what was written stays', async () => {
  const person = await opened('Agents');
  const { page } = person;
  await page.getByRole('link', { name: 'reader', exact: true }).click();
  await written(page, 'filter', '{"tags": ');
  await written(page, 'limit', 'many');
  await page.keyboard.press('Enter');
  await page.locator('#told').getByText('Nothing was saved.').waitFor();
  assert.equal(await page.locator('[aria-invalid="true"]').count(), 2);
  assert.equal(await page.locator('[name="v.library.limit"]').inputValue(), 'many');
  const text = await page.evaluate(faulty);
  assert.ok(text.includes('limit'));
});

/** The words of the fields with a fault. */
function faulty() {
  const all = [...document.querySelectorAll('[aria-invalid="true"]')];
  return all.map((one) => one.closest('.field').innerText).join('\n');
}

test('everything works without a script', async () => {
  const person = await opened('Agents', { javaScriptEnabled: false });
  const { page } = person;
  await created(person, 'Agent', 'plain');
  await page.getByLabel('Server of the catalog').selectOption('docs');
  await page.getByRole('button', { name: 'Attach', exact: true }).click();
  await page.getByText(', not saved yet', { exact: false }).first().waitFor();
  await page.getByRole('button', { name: /^Detach/ }).click();
  await page.getByText('No server is attached here.').waitFor();
  await page.getByRole('button', { name: 'Start a run' }).click();
  await page.waitForURL('**/runs/run_*');
  const runs = await site.done('GET', `${API}/runs`);
  assert.ok(runs.items.some((run) => run.agent_name === 'plain'));
});

test('a deletion names what breaks before it deletes', async () => {
  const person = await opened('Capabilities');
  const { page } = person;
  await page.getByRole('link', { name: 'papers', exact: true }).click();
  await page.locator('#delete > summary').focus();
  await page.keyboard.press('Enter');
  await person.tabTo('Delete it');
  await page.keyboard.press('Enter');
  await page.locator('#delete').getByText('agents.reader.capabilities').waitFor();
  // The browser notes the status of a refusal, which is meant here.
  person.faults = person.faults.filter((fault) => !fault.includes('status of 409'));
  await person.check('capability-in-use');
  await page.getByRole('button', { name: 'Delete it, and break these' }).focus();
  await page.keyboard.press('Enter');
  await page.locator('#told').getByText('The capability papers is deleted.').waitFor();
});
