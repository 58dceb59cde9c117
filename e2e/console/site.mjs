// A daemon with a console, and a person with a browser, for the specs of this folder.
//
// `cargo xtask test --only console` gives the paths in variables: the daemon, the folder with the
// packages, the one with MCP clients and servers, and the folders for data and for pictures.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

import { Daemon } from '../clients/daemon.mjs';

const { CONSOLE_NARTHEX, CONSOLE_MODULES, CONSOLE_FOLDER, CONSOLE_CHROMIUM } = process.env;
const require = createRequire(join(CONSOLE_MODULES, 'package.json'));
const { chromium } = require('playwright-core');
const { CONSOLE_PEERS = join(CONSOLE_MODULES, '../node') } = process.env;
const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
const SERVER = new URL('server.mjs', import.meta.url).pathname;
const TABS = 80;
const READY_MS = 20_000;

const AUTHENTICATOR = {
  protocol: 'ctap2',
  transport: 'internal',
  hasResidentKey: true,
  hasUserVerification: true,
  isUserVerified: true,
  automaticPresenceSimulation: true,
};

export const PHONE = { width: 390, height: 844 };
export const DESK = { width: 1280, height: 900 };

/** The entry of a small server, or of one that ends at once. */
export function entry(...words) {
  return { transport: 'stdio', command: process.execPath, args: [SERVER, ...words] };
}

/** The folder with MCP clients and servers, and a function that loads one of its packages. */
export const PEERS = CONSOLE_PEERS;
export const peer = createRequire(join(CONSOLE_PEERS, 'package.json'));

/** A short path of Node: a command of the catalog has at most 64 characters. */
export function node() {
  const path = join(CONSOLE_FOLDER, 'node');
  try {
    symlinkSync(process.execPath, path);
  } catch (error) {
    if (!existsSync(path)) throw error;
  }
  return path;
}

/** A daemon, and a browser of this machine. */
export class Site {
  static async start(name, servers, options = {}) {
    const site = new Site();
    site.pictures = join(CONSOLE_FOLDER, 'pictures');
    mkdirSync(site.pictures, { recursive: true });
    const folder = join(CONSOLE_FOLDER, name);
    site.daemon = await Daemon.start(CONSOLE_NARTHEX, folder, servers, options);
    const args = ['--no-sandbox'];
    site.browser = await chromium.launch({ executablePath: CONSOLE_CHROMIUM, args });
    return site;
  }

  /** Waits until a server is in this state. */
  async until(server, state) {
    const row = await this.daemon.rowUntil(server, (row) => row.state === state, READY_MS);
    assert.equal(row.state, state);
  }

  /** A person who has opened the console from the terminal, and signed in. */
  async person(options = {}) {
    const person = await Person.in(this, options);
    const open = this.daemon.command('open', '--no-browser', '--quiet');
    assert.equal(await open.done, 0, open.stderr);
    await person.page.goto(open.stdout.trim());
    await person.page.getByRole('button', { name: /^Sign in as/ }).click();
    await person.page.waitForURL('**/w/*/');
    return person;
  }

  /** The answer of the API to a request that has to succeed. */
  async done(method, path, body) {
    const answer = await this.daemon.api(path, method, body);
    const told = `${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`;
    assert.ok(answer.status < 300, told);
    return answer.body;
  }

  /** The answer to a call of a tool with the token of a run. */
  async call(run, server, tool, body) {
    const headers = { authorization: `Bearer ${run.token}`, 'content-type': 'application/json' };
    const url = `${this.daemon.url}/mcp/${server}/tools/${tool}`;
    const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
    return answer.json();
  }

  async stop() {
    await this.browser.close();
    await this.daemon.stop();
  }
}

/** A person with a browser of their own, in which each fault is noted. */
class Person {
  faults = [];

  static async in(site, { viewport = DESK, javaScriptEnabled = true } = {}) {
    const person = new Person();
    person.site = site;
    person.width = viewport.width;
    // Colours that still change would be measured when a check changes between light and dark.
    const options = { viewport, javaScriptEnabled, reducedMotion: 'reduce' };
    const context = await site.browser.newContext(options);
    person.page = await context.newPage();
    const note = (what) => person.faults.push(what);
    person.page.on('pageerror', (error) => note(`error: ${error.message}`));
    person.page.on('console', (message) => {
      const isIcon = message.location().url.endsWith('/favicon.ico');
      if (['error', 'warning'].includes(message.type()) && !isIcon) note(message.text());
    });
    person.page.on('request', (request) => {
      const { hostname } = new URL(request.url());
      if (!['localhost', '127.0.0.1'].includes(hostname)) note(`asks ${hostname}`);
    });
    return person;
  }

  /** Opens a page of the navigation by keyboard: first its menu on a phone, then its group. */
  async go(name) {
    const { page } = this;
    const press = async (target) => {
      await target.focus();
      await page.keyboard.press('Enter');
    };
    const menu = page.getByRole('button', { name: 'Pages', exact: true });
    if (await menu.isVisible()) await press(menu);
    const named = page.locator('a').filter({ hasText: new RegExp(`^${name}$`) });
    const link = page.locator('nav.pages').locator(named);
    const closed = page.locator('nav.pages details:not([open])').filter({ has: named });
    if (await closed.count()) await press(closed.locator('summary'));
    const path = await link.getAttribute('href');
    await press(link);
    await page.waitForURL((url) => url.pathname === path);
  }

  /** Checks the open page in light and in dark: accessibility, no fault, and nothing too wide. */
  async check(name) {
    const { page } = this;
    const wide = await page.evaluate(() => {
      const { scrollWidth, clientWidth } = document.documentElement;
      return scrollWidth - clientWidth;
    });
    assert.equal(wide, 0, `${name} is ${wide} pixels too wide`);
    // What is below the bar at the top has no size to be measured.
    await page.evaluate(() => scrollTo({ top: 0, behavior: 'instant' }));
    // Colours are all that differs between the two.
    for (const [colorScheme, runOnly] of [['dark', ['color-contrast']], ['light', RULES]]) {
      await page.emulateMedia({ colorScheme });
      const path = join(this.site.pictures, `${name}-${this.width}-${colorScheme}.png`);
      await page.screenshot({ path, fullPage: true });
      if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(AXE);
      const found = await page.evaluate((rules) => axe.run(document, { runOnly: rules }), runOnly);
      const words = ({ html, failureSummary }) => `${html} ${failureSummary}`;
      const told = found.violations.map(({ id, nodes }) => `${id}: ${words(nodes[0])}`);
      assert.deepEqual(told, [], `${name}, ${colorScheme}`);
    }
    assert.deepEqual(this.faults, [], name);
  }

  /** Checks the open page on a phone and on a desk. */
  async looks(name) {
    const before = this.page.viewportSize();
    for (const viewport of [PHONE, DESK]) {
      await this.page.setViewportSize(viewport);
      this.width = viewport.width;
      await this.check(name);
    }
    await this.page.setViewportSize(before);
    this.width = before.width;
  }

  /** Gives the browser an authenticator that recognizes its human. */
  async recognized() {
    const client = await this.page.context().newCDPSession(this.page);
    await client.send('WebAuthn.enable');
    await client.send('WebAuthn.addVirtualAuthenticator', { options: AUTHENTICATOR });
  }

  /** Opens a page of the navigation. */
  async to(name) {
    await this.go(name);
    await this.page.getByRole('heading', { name, exact: true, level: 1 }).waitFor();
  }

  /** Moves the focus by Tab to a link or a button with this name. */
  async tabTo(name) {
    for (let press = 0; press < TABS; press += 1) {
      await this.page.keyboard.press('Tab');
      const found = await this.page.evaluate(() => {
        const at = document.activeElement;
        return (at.getAttribute('aria-label') ?? at.innerText ?? '').trim();
      });
      if (found.startsWith(name)) return;
    }
    throw new Error(`Tab does not reach ${name}`);
  }
}
