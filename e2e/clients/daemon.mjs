// A daemon of a driver's own: `narthex up` with a folder and a port of its own, and its API.

import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const LISTENING_MS = 20_000;
// A daemon that ends waits for open requests.
const STOPPED_MS = 30_000;
const POLL_MS = 40;
const ROUNDS = 3;

export const pause = (ms) => new Promise((done) => setTimeout(done, ms));

export class Daemon {
  #child;
  #ended;

  /**
   * Starts `narthex up` with these entries of servers. A second daemon in the same folder finds
   * the stored data of the first.
   */
  static async start(narthex, folder, servers, options = {}) {
    const { env = {}, settings, listen = '127.0.0.1:0' } = options;
    const daemon = new Daemon();
    daemon.narthex = narthex;
    daemon.data = join(folder, 'data');
    daemon.env = environment(folder, env);
    const config = join(folder, 'mcp.json');
    mkdirSync(folder, { recursive: true });
    writeFileSync(config, JSON.stringify({ servers }));
    const args = ['up', '--json', '--listen', listen, '--config', config, '--data', daemon.data];
    if (settings !== undefined) {
      const file = join(folder, 'narthex.toml');
      writeFileSync(file, settings, { mode: 0o600 });
      args.push('--settings', file);
    }
    const stdio = ['ignore', 'pipe', 'inherit'];
    daemon.#child = spawn(narthex, args, { stdio, env: daemon.env });
    daemon.#ended = new Promise((done) => {
      daemon.#child.on('exit', (code, signal) => done(signal ?? code));
      daemon.#child.on('error', (error) => done(error.message));
    });
    try {
      const listening = await daemon.#listening();
      daemon.url = listening.url.replace(/\/$/, '');
      daemon.token = readFileSync(listening.token_file, 'utf8').trim();
      daemon.operatorToken = readFileSync(listening.admin_token_file, 'utf8').trim();
    } catch (error) {
      daemon.kill();
      throw error;
    }
    return daemon;
  }

  async #listening() {
    const lines = createInterface({ input: this.#child.stdout });
    const found = new Promise((done) => {
      // Every line is read, since a full pipe would stop the daemon.
      lines.on('line', (line) => {
        const event = parsed(line);
        if (event?.event === 'listening') done(event);
      });
    });
    const ended = this.#ended.then((how) => {
      throw new Error(`narthex up ended with ${how} before it listened`);
    });
    return within(LISTENING_MS, 'narthex up listens', Promise.race([found, ended]));
  }

  /** One request of an operator. Gives the answer's status and JSON. */
  async api(path, method = 'GET', body = undefined) {
    const headers = { authorization: `Bearer ${this.operatorToken}` };
    if (body !== undefined) headers['content-type'] = 'application/json';
    const text = body === undefined ? undefined : JSON.stringify(body);
    const response = await fetch(`${this.url}${path}`, { method, headers, body: text });
    return { status: response.status, body: parsed(await response.text()) };
  }

  /** The row of a server. */
  async row(name) {
    const { status, body } = await this.api(`/api/servers/${name}`);
    if (status !== 200) throw new Error(`the row of ${name} is ${status}: ${JSON.stringify(body)}`);
    return body;
  }

  /** Waits for a row of a server of which `isWanted` is true. Gives the last row in any case. */
  async rowUntil(name, isWanted, ms) {
    const deadline = Date.now() + ms;
    for (;;) {
      const row = await this.row(name);
      if (isWanted(row) || Date.now() > deadline) return row;
      await pause(POLL_MS);
    }
  }

  /** Waits until a server is ready. */
  async ready(name, ms) {
    const row = await this.rowUntil(name, (row) => row.state === 'ready', ms);
    if (row.state !== 'ready') throw new Error(`${name} is ${described(row)}`);
    return row;
  }

  /** Starts a command for this daemon. Gives its process and its output, as both go on. */
  command(...words) {
    const args = [...words, '--data', this.data];
    const stdio = ['ignore', 'pipe', 'pipe'];
    const child = spawn(this.narthex, args, { stdio, env: this.env });
    const run = { child, stdout: '', stderr: '' };
    child.stdout.on('data', (bytes) => (run.stdout += bytes));
    child.stderr.on('data', (bytes) => (run.stderr += bytes));
    run.done = new Promise((done, failed) => {
      child.on('error', failed);
      child.on('close', (code) => done(code));
    });
    return run;
  }

  /** Asks the daemon to end, and waits until it has. */
  async stop() {
    this.#child.kill('SIGTERM');
    try {
      const how = await within(STOPPED_MS, 'narthex up ends', this.#ended);
      if (how !== 0) throw new Error(`narthex up ended with ${how}`);
    } finally {
      this.kill();
    }
  }

  kill() {
    this.#child.kill('SIGKILL');
  }
}

/** The state of a row in words, for errors. */
export function described(row) {
  return row.error ? `${row.state}: ${row.error.message ?? JSON.stringify(row.error)}` : row.state;
}

/** The link that a person has to open to sign in to a server, if its row has one. */
export function linkOf(row) {
  return row.authUrl;
}

/**
 * Opens a link to sign in to a server, fills in the forms there, and follows it back to the daemon.
 * The daemon may ask once more, in other words.
 */
export async function signIn(browser, link, fill) {
  let page = { next: link };
  for (let round = 0; page.next && round < ROUNDS; round += 1) {
    page = await browser.go(await browser.visit(page.next, isCallback, fill));
  }
  if (page.next || page.status >= 400) {
    throw new Error(`the sign-in is refused: ${page.status} ${page.text}`);
  }
}

/** True if an address is the one to which sign-ins at servers lead back. */
function isCallback(address) {
  return new URL(address).pathname.startsWith('/oauth/callback');
}

/** Fails after a time. */
export async function within(ms, what, promise) {
  let timer;
  const late = new Promise((_, failed) => {
    timer = setTimeout(() => failed(new Error(`not within ${ms} ms: ${what}`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** No settings of the user: neither files nor variables. */
function environment(folder, env) {
  const own = Object.entries(process.env).filter(([name]) => !/^(NARTHEX|XDG)_/.test(name));
  return { ...Object.fromEntries(own), HOME: folder, ...env };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
