// Canaries: values of secrets are planted in every place that has one, and are looked for in the
// document and in all answers of the network, in each of their spellings (S27).

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { DESK, PHONE, Site, entry } from './site.mjs';

const HERE = '/api/workspaces/default';
const VALUES = {
  vault: 'canary-of-the-vault-4711',
  header: 'canary-of-a-header-0815',
  path: 'canary-of-a-path-1234',
  argument: 'canary-of-an-argument-99',
  typed: 'canary-typed-by-a-person',
};
const PAGES = [
  '',
  'approvals',
  'servers',
  'servers/small',
  'servers/small/tools',
  'servers/small/definitions',
  'servers/small/configuration',
  'servers/small/log',
  'servers/small/calls',
  'servers/small/runs',
  'servers/literal',
  'servers/literal/configuration',
  'servers/talky/log',
  'tools',
  'play?server=small&tool=status',
  'catalog',
  'catalog/new',
  'secrets',
  'secrets?replace=VAULTED',
  'secrets/new',
  'secrets/VAULTED/clear',
  'capabilities',
  'agents',
  'runs',
  'sessions',
  'grants',
  'connect',
  'connect?client=claude-code',
  'connect?client=other',
  'clients',
  'policy',
  'audit',
  'me',
  'search?q=vault',
];

let site;
before(async () => {
  const args = ['-c', 'echo "is awake with $TOKEN" >&2; cat > /dev/null', VALUES.argument];
  const talky = { transport: 'stdio', command: 'sh', args, env: { TOKEN: '${secret:VAULTED}' } };
  const url = `http://127.0.0.1:9/${VALUES.path}?key=${VALUES.path}`;
  const literal = { transport: 'http', url, headers: { 'X-Key': VALUES.header } };
  const small = { ...entry(), env: { TOKEN: '${secret:VAULTED}' } };
  site = await Site.start('canaries', { small, literal, talky });
  await put('secrets/VAULTED', { value: VALUES.vault });
  await site.until('small', 'ready');
});
after(() => site?.stop());

async function put(place, body) {
  const { status } = await site.daemon.api(`${HERE}/${place}`, 'PUT', body);
  assert.ok(status < 300, `${place}: ${status}`);
}

/** The spellings of a value: as it is, and as encoders write it. */
function spellings(value) {
  const bytes = Buffer.from(value);
  const groups = [0, 1, 2].map((skipped) => {
    const rest = bytes.subarray(skipped);
    return rest.subarray(0, rest.length - (rest.length % 3)).toString('base64');
  });
  const hex = bytes.toString('hex');
  return [value, ...groups, hex, hex.toUpperCase(), encodeURIComponent(value)];
}

/** Fails if a text has a planted value. */
function isClean(where, text) {
  for (const [name, value] of Object.entries(VALUES)) {
    const found = spellings(value).find((spelling) => text.includes(spelling));
    assert.equal(found, undefined, `${where} has the value of ${name}`);
  }
}

/** A person whose answers of the network are all kept. */
async function watched(options) {
  const person = await site.person(options);
  person.answers = [];
  person.page.on('response', (response) => {
    const head = JSON.stringify(response.headers());
    const text = response.text().then((body) => body, () => '');
    person.answers.push(text.then((body) => ({ where: response.url(), text: head + body })));
  });
  person.cookies = async () => (await person.page.context().cookies()).map((one) => one.value);
  return person;
}

/** All that a script of the page could read. */
async function readable(page) {
  return page.evaluate(() => {
    const fields = [...document.querySelectorAll('input, textarea, select')];
    const stored = [localStorage, sessionStorage].map((store) => JSON.stringify(store));
    const values = fields.map((field) => field.value);
    const whole = document.documentElement.outerHTML;
    return [whole, document.cookie, location.href, ...stored, ...values].join('\n');
  });
}

for (const viewport of [PHONE, DESK]) {
  test(`no page at ${viewport.width} pixels has a planted value`, async () => {
    const person = await watched({ viewport });
    const { page } = person;
    const home = new URL(page.url());
    const cookies = await person.cookies();
    assert.ok(cookies.length > 0, 'there is a session');
    for (const path of PAGES) {
      const answer = await page.goto(`${home.origin}/w/default/${path}`);
      assert.equal(answer.status(), 200, path);
      const text = await readable(page);
      isClean(path, text);
      for (const cookie of cookies) assert.ok(!text.includes(cookie), `${path} has a cookie`);
    }
    await page.goto('about:blank');
    for (const { where, text } of await Promise.all(person.answers)) isClean(where, text);
    assert.ok(person.answers.length >= PAGES.length);
  });
}

test('the log of a server has its line without the secret, also live', async () => {
  const person = await watched();
  const { page } = person;
  const { origin } = new URL(page.url());
  await page.goto(`${origin}/w/default/servers/talky/log`);
  await page.getByText('is awake with').first().waitFor();
  // The program never answers, so that the request ends late.
  site.daemon.api('/api/servers/talky/reconnect', 'POST').catch(() => undefined);
  await page.getByText('is awake with').nth(1).waitFor();
  isClean('the log', await readable(page));
});

test('a value that is typed is in no answer, whether it is taken or refused', async () => {
  const person = await watched();
  const { page } = person;
  const { origin } = new URL(page.url());
  const faulty = 'no name at all';
  for (const name of [faulty, 'VAULTED', 'TYPED_KEY']) {
    await page.goto(`${origin}/w/default/secrets/new`);
    await page.getByLabel('Name').fill(name);
    await page.getByLabel('Value').fill(VALUES.typed);
    await page.keyboard.press('Enter');
    await page.waitForLoadState();
    const whereto = name === 'TYPED_KEY' ? page.locator('#told') : page.locator('.fault').first();
    await whereto.waitFor();
    isClean(name, await page.content());
    isClean(name, page.url());
  }
  await page.goto('about:blank');
  for (const { where, text } of await Promise.all(person.answers)) isClean(where, text);
});

test('the search for values finds one', () => {
  for (const spelling of spellings(VALUES.vault)) {
    assert.throws(() => isClean('a page', `<p>${spelling}</p>`), spelling);
  }
  const within = Buffer.from(`ab${VALUES.vault}`).toString('base64');
  assert.throws(() => isClean('a page', within));
});
