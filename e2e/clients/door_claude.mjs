// Claude's agent CLI at narthex's own door: it signs its human in by itself, who answers in
// Chromium, and then calls a tool with its own tokens, with a stand-in for its model.
//
// Without a terminal the CLI starts no sign-in, so it gets one of `script`. Its client id is a
// document at claude.ai, which cannot be fetched where there is no internet: it gets the id of a
// client that is registered before.
//
// Arguments: the folder with node_modules, the narthex binary, a Python, which is not used, and the
// folder with node_modules of the agents. Prints one JSON line of facts.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Chromium } from './chromium.mjs';
import { Daemon, within } from './daemon.mjs';
import { freePort } from './door_clients.mjs';
import { Human, enroll, signOut } from './human.mjs';

const SERVER = 'everything';
const ENTRY = 'narthex';
const READY_MS = 20_000;
const DONE_MS = 30_000;
/** An address with a state, as a whole. */
const LINK = /http:[^\s\x00-\x1f]+[?&]state=[^\s\x00-\x1f]+(?=[\s\x00-\x1f])/;

const [peers, narthex, , agents] = process.argv.slice(2);
const platform = `${process.platform}-${process.arch}`;
const claude = join(agents, `node_modules/@anthropic-ai/claude-code-${platform}/claude`);

/** Starts a program in the home folder. Its output can be read while it runs. */
function start(home, [program, ...words], stdin = 'ignore') {
  const { PATH } = process.env;
  const quiet = { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1' };
  const env = { HOME: home, PATH, TERM: 'dumb', ...quiet };
  const child = spawn(program, words, { cwd: home, env, stdio: [stdin, 'pipe', 'pipe'] });
  const run = { child, said: '', heard: [] };
  for (const output of [child.stdout, child.stderr]) {
    output.on('data', (part) => {
      run.said += part;
      for (const hear of run.heard) hear();
    });
  }
  run.done = new Promise((done, failed) => {
    child.on('error', failed);
    child.on('close', (code, signal) => done(signal ?? code));
  });
  return run;
}

/** The end of a program, with what it said. */
async function ended(run) {
  try {
    return [await within(DONE_MS, `${run.child.spawnargs.join(' ')} ends`, run.done), run.said];
  } finally {
    run.child.kill('SIGKILL');
  }
}

/** The link that a program prints, between characters that steer a terminal. */
function linkOf(run) {
  const found = new Promise((done) => {
    const look = () => {
      const [link] = run.said.match(LINK) ?? [];
      if (link) done(link);
    };
    run.heard.push(look);
    look();
  });
  const ends = run.done.then((how) => {
    throw new Error(`the sign-in ended with ${how} and no link: ${run.said}`);
  });
  return within(DONE_MS, 'claude mcp login prints a link', Promise.race([found, ends]));
}

async function works(home, words) {
  const [code, said] = await ended(start(home, [claude, ...words]));
  if (code !== 0) throw new Error(`claude ${words.join(' ')}: ${code}\n${said}`);
  return said;
}

/** A client for the CLI, whose callback is at a port of its own. */
async function register(base) {
  const response = await fetch(`${base}/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      client_name: 'Claude Code',
      redirect_uris: ['http://localhost/callback'],
      token_endpoint_auth_method: 'none',
    }),
  });
  return (await response.json()).client_id;
}

/** A call by the agent, whose model is a stand-in. */
async function call(home) {
  const script = new URL('agents.mjs', import.meta.url).pathname;
  const words = [script, '--agents', agents, '--agent', 'claude', '--home', home];
  words.push('--tool', `${SERVER}__echo`, '--arguments', JSON.stringify({ message: 'let in' }));
  const [code, said] = await ended(start(home, [process.execPath, ...words]));
  if (code !== 0) throw new Error(`the agent ended with ${code}: ${said}`);
  // The CLI adds words of its own below.
  return JSON.parse(said.trim().split('\n').at(-1)).result.split('\n')[0];
}

const folder = mkdtempSync(join(tmpdir(), 'narthex-claude-'));
const home = mkdtempSync(join(tmpdir(), 'narthex-claude-home-'));
const script = join(peers, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
const everything = { transport: 'stdio', command: process.execPath, args: [script, 'stdio'] };
const port = await freePort();
const base = `http://localhost:${port}`;
const settings = `[http]\npublic_url = "${base}"\n`;
const listens = { listen: `127.0.0.1:${port}`, settings };
const daemon = await Daemon.start(narthex, folder, { [SERVER]: everything }, listens);
let chromium;
let login;
try {
  await daemon.ready(SERVER, READY_MS);
  // The program shows a page of its own at the end.
  chromium = await Chromium.start(peers, (origin) => origin !== base);
  await enroll(daemon, chromium);
  await signOut(chromium);
  const found = {};

  const add = ['mcp', 'add', '--scope', 'user', '--transport', 'http'];
  await works(home, [...add, '--client-id', await register(base), ENTRY, `${base}/mcp`]);
  found.asks = (await works(home, ['mcp', 'list'])).includes('Needs authentication');
  const words = [claude, 'mcp', 'login', ENTRY, '--no-browser'];
  const [refused] = await ended(start(home, words));
  found.startsWithoutTerminal = refused === 0;

  const inTerminal = words.map((word) => `'${word}'`).join(' ');
  login = start(home, ['script', '-qec', inTerminal, '/dev/null'], 'pipe');
  const human = new Human(chromium);
  await human.letIn('live', { waits: 'elsewhere' })(await linkOf(login));
  found.askedFirst = human.asked;
  found.program = human.shown.program;
  const [code, said] = await ended(login);
  if (code !== 0) throw new Error(`claude mcp login: ${code}\n${said}`);
  found.login = code;
  found.text = await call(home);
  const { body } = await daemon.api('/api/workspaces/default/mcp-clients');
  found.clients = body.items.map(({ acts_for, is_live }) => [acts_for !== null, is_live]);
  Object.assign(found, chromium.faults);
  console.log(JSON.stringify(found));
  await daemon.stop();
} finally {
  login?.child.kill('SIGKILL');
  await chromium?.close();
  daemon.kill();
  rmSync(folder, { recursive: true, force: true });
  rmSync(home, { recursive: true, force: true });
}
process.exit();
