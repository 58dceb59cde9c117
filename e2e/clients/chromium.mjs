// Chromium with a virtual authenticator, for drivers of pages: a passkey works without hardware.
//
// Each page that a driver looks at is measured: nothing is wider than a phone, axe finds no
// violation of WCAG, and the console has no complaint, such as one about the page's policy. With
// NARTHEX_E2E_PICTURES=FOLDER each page is photographed, too: wide and narrow, light and dark.

import { mkdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';

import { within } from './daemon.mjs';

const PROGRAM = process.env.NARTHEX_E2E_CHROMIUM ?? 'chromium';
const PICTURES = process.env.NARTHEX_E2E_PICTURES;
const WAIT_MS = 15_000;
const WIDE = { width: 1280, height: 800 };
const NARROW = { width: 400, height: 800 };
const SCHEMES = ['light', 'dark'];
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];
/** A page with a status of failure is a line in the console. */
const OF_STATUS = /^Failed to load resource: the server responded with a status of [45]/;

export class Chromium {
  #browser;
  #axe;
  #verify;
  #looks = 0;

  /** Pages that scroll sideways on a phone. */
  wide = [];
  /** Rules of WCAG that pages violate. */
  violations = [];
  /** Errors in the console and of scripts. */
  complaints = [];

  /** Starts it. Pages at origins that are `foreign` are not ours: their console does not count. */
  static async start(peers, foreign = () => false) {
    const require = createRequire(join(peers, 'package.json'));
    const { chromium } = require('playwright-core');
    const self = new Chromium();
    self.#axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
    const executablePath = PROGRAM.includes('/') ? PROGRAM : `/usr/bin/${PROGRAM}`;
    // As root, Chromium starts only without its sandbox.
    self.#browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
    self.page = await self.#browser.newPage({ viewport: WIDE, reducedMotion: 'reduce' });
    self.page.setDefaultTimeout(WAIT_MS);
    const complain = (text) => {
      const { origin } = new URL(self.page.url());
      if (!foreign(origin)) self.complaints.push(`${self.page.url()}: ${text}`);
    };
    self.page.on('pageerror', (error) => complain(String(error)));
    self.page.on('console', (message) => {
      const isOfStatus = OF_STATUS.test(message.text());
      if (message.type() === 'error' && !isOfStatus) complain(message.text());
    });
    const session = await self.page.context().newCDPSession(self.page);
    await session.send('WebAuthn.enable');
    const { authenticatorId } = await session.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        protocol: 'ctap2',
        transport: 'internal',
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    });
    self.#verify = (isUserVerified) =>
      session.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified });
    if (PICTURES) mkdirSync(PICTURES, { recursive: true });
    return self;
  }

  /** Does something while the authenticator does not recognize its human. */
  async unrecognized(work) {
    await this.#verify(false);
    try {
      return await work();
    } finally {
      await this.#verify(true);
    }
  }

  /** Opens an address. Gives the status of the page. */
  async open(url) {
    const response = await this.page.goto(url);
    return response.status();
  }

  /** Presses a button or link with these words. */
  press(words) {
    return this.page.locator('button, a').getByText(words, { exact: true }).click();
  }

  /** Waits for the heading of a page. Gives its text. */
  async heading(words) {
    const heading = this.page.getByRole('heading', { level: 1, name: words });
    await heading.waitFor();
    return heading.innerText();
  }

  /** Facts of the page: the pairs of its list, the choices, the notes and the last line. */
  facts() {
    return this.page.evaluate(() => {
      const text = (node) => node?.textContent.trim();
      const texts = (words) => [...document.querySelectorAll(words)].map(text);
      const [words, values] = [texts('dt'), texts('dd')];
      return {
        pairs: Object.fromEntries(words.map((word, index) => [word, values[index]])),
        choices: texts('.choice'),
        chosen: text(document.querySelector('.choice:has(:checked)')) ?? null,
        notes: texts('.note'),
        hint: texts('.hint').at(-1),
        program: text(document.querySelector('main > p > b')),
      };
    });
  }

  /** JSON at an address of the page's own origin, with its cookies. */
  json(path) {
    return this.page.evaluate(async (path) => (await fetch(path)).json(), path);
  }

  /** Measures the page, and photographs it if pictures are wanted. */
  async look(name) {
    this.#looks += 1;
    await this.page.evaluate(this.#axe);
    for (const [size, viewport] of Object.entries({ wide: WIDE, narrow: NARROW })) {
      await this.page.setViewportSize(viewport);
      const isWide = await this.page.evaluate(
        () => document.documentElement.scrollWidth > document.documentElement.clientWidth,
      );
      if (isWide) this.wide.push(`${name}, ${size}`);
      for (const colorScheme of SCHEMES) {
        await this.page.emulateMedia({ colorScheme });
        await this.#check(`${name}, ${size}, ${colorScheme}`);
        if (!PICTURES) continue;
        const number = String(this.#looks).padStart(2, '0');
        const file = `${number}-${name}-${viewport.width}-${colorScheme}.png`;
        await this.page.screenshot({ path: join(PICTURES, file), fullPage: true });
      }
    }
    await this.page.setViewportSize(WIDE);
    await this.page.emulateMedia({ colorScheme: SCHEMES[0] });
  }

  async #check(name) {
    const found = await this.page.evaluate(
      // The script is in this page, by the evaluation before.
      async (values) => (await globalThis.axe.run({ runOnly: values })).violations,
      RULES,
    );
    const nodes = ({ nodes }) => nodes.map(({ html }) => html.slice(0, 80)).join('; ');
    this.violations.push(...found.map((rule) => `${name}: ${rule.id} at ${nodes(rule)}`));
  }

  /** Findings of `look` and of the console: none, if all is well. */
  get faults() {
    return { wide: this.wide, violations: this.violations, complaints: this.complaints };
  }

  close() {
    return this.#browser.close();
  }
}

/** The address of a client to which a browser comes back. */
export class Callback {
  #server;
  #arrived = [];
  #waits = [];

  static async listen() {
    const self = new Callback();
    self.#server = createServer((request, response) => {
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' });
      response.end('<!doctype html><title>client</title><h1>Back at the client</h1>');
      const address = new URL(request.url, self.url);
      if (address.pathname !== '/callback') return;
      const wait = self.#waits.shift();
      if (wait) wait(address.href);
      else self.#arrived.push(address.href);
    });
    await new Promise((done) => self.#server.listen(0, '127.0.0.1', done));
    self.url = `http://127.0.0.1:${self.#server.address().port}/callback`;
    return self;
  }

  /** The next address by which a browser comes back. */
  next() {
    const found = this.#arrived.shift();
    if (found) return Promise.resolve(found);
    const comes = new Promise((done) => this.#waits.push(done));
    return within(WAIT_MS, 'the browser comes back to the client', comes);
  }

  close() {
    this.#server.closeAllConnections();
    return new Promise((done) => this.#server.close(done));
  }
}
