// Connect a client: choose it, see the change of its file, write it, see it arrive, take it back.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';

import { DESK, PHONE, Site, entry } from './site.mjs';

let site;
before(async () => {
  site = await Site.start('connect', { small: entry() });
  await site.until('small', 'ready');
});
after(() => site?.stop());

async function opened(options) {
  const person = await site.person(options);
  await person.go('Connect a client');
  await person.page.getByRole('heading', { name: 'Connect a client', exact: true }).waitFor();
  return person;
}

/** Opens the page of a client, by keyboard. */
async function chosen(person, name) {
  await person.page.locator('main .filter').first().focus();
  const first = await person.page.evaluate(() => document.activeElement.innerText.trim());
  if (first !== name) await person.tabTo(name);
  await person.page.keyboard.press('Enter');
  await person.page.locator('#file').waitFor();
}

for (const viewport of [PHONE, DESK]) {
  test(`connect at ${viewport.width} pixels`, async () => {
    const person = await opened({ viewport });
    await person.check('connect');
    await chosen(person, 'Claude Code');
    assert.match(await person.page.locator('#ways').innerText(), /claude mcp add/);
    await person.check('connect-claude-code');
  });
}

test('no page has a token, whatever the client', async () => {
  const person = await opened();
  const { page } = person;
  const links = await page.locator('main .filter').evaluateAll((all) => all.map((a) => a.href));
  assert.ok(links.length > 8, `${links.length} clients`);
  for (const link of links) {
    await page.goto(link);
    const text = await page.content();
    for (const word of ['Bearer', 'nxt_', 'nxc_']) {
      assert.ok(!text.includes(word), `${link}: ${word}`);
    }
  }
  assert.deepEqual(person.faults, []);
});

test('a file of this machine is written and brought back by keyboard', async () => {
  const person = await opened();
  const { page } = person;
  const file = join(site.daemon.env.HOME, '.cursor', 'mcp.json');
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, '{ "mcpServers": { "mail": { "env": { "KEY": "canary-1" } } } }');
  await chosen(person, 'Cursor');
  assert.ok(!(await page.content()).includes('canary-1'));
  const before = readFileSync(file, 'utf8');
  assert.match(await page.locator('#file .diff').innerText(), /connect/);
  await person.check('connect-lines');
  await person.tabTo('Write');
  await page.keyboard.press('Enter');
  await page.waitForURL('**done=write*');
  assert.match(await page.locator('#told').innerText(), /has the entry now/);
  assert.match(readFileSync(file, 'utf8'), /"connect"/);
  await person.tabTo('Take it out');
  await page.keyboard.press('Enter');
  await page.waitForURL('**done=undo*');
  assert.equal(readFileSync(file, 'utf8'), before);
});

test('a client is seen to arrive while one looks', async () => {
  const person = await opened();
  const { page } = person;
  await page.locator('#arrived').getByText('Waiting').waitFor();
  const { url, token } = site.daemon;
  const clientInfo = { name: 'spec <b>client</b>', version: '7' };
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
  const answer = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }),
  });
  assert.equal(answer.status, 200);
  await page.locator('#arrived').getByText('spec <b>client</b>').waitFor();
  await person.check('connect-arrived');
});

test('everything works without a script', async () => {
  const person = await opened({ javaScriptEnabled: false });
  const { page } = person;
  await page.getByRole('link', { name: 'Zed', exact: true }).click();
  await page.waitForURL('**client=zed');
  await page.getByRole('link', { name: 'Look again' }).click();
  await page.waitForURL('**since=*');
  assert.match(await page.locator('#arrived').innerText(), /Waiting/);
});
