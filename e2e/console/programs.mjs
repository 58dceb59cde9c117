// Programs that carry out runs, led by a spec. The daemon starts one for each run of an agent with
// the executor `desk`; it has an MCP client of the TypeScript SDK, and makes the calls that the
// spec orders.

import { createServer } from 'node:http';

import { within } from '../clients/daemon.mjs';
import { PEERS } from './site.mjs';

const PROGRAM = new URL('program.mjs', import.meta.url).pathname;
const BEGUN_MS = 20_000;

export class Programs {
  #server;
  #running = new Map();
  #begun = [];
  #wait;

  /** Listens for the reports of programs. */
  static async listen() {
    const programs = new Programs();
    programs.#server = createServer(async (request, response) => {
      const parts = [];
      for await (const part of request) parts.push(part);
      programs.#take(JSON.parse(Buffer.concat(parts)), response);
    });
    await new Promise((done) => programs.#server.listen(0, '127.0.0.1', done));
    return programs;
  }

  /** The settings of a daemon that starts the programs. */
  get settings() {
    const env = { DESK_URL: `http://127.0.0.1:${this.#server.address().port}`, DESK_PEERS: PEERS };
    const pairs = Object.entries(env).map(([name, value]) => `${name} = ${JSON.stringify(value)}`);
    return [
      '[executors.desk]',
      `command = ${JSON.stringify(process.execPath)}`,
      `args = [${JSON.stringify(PROGRAM)}]`,
      `env = { ${pairs.join(', ')} }`,
      '',
    ].join('\n');
  }

  /** The program of the next run, once its client is connected and has listed its tools. */
  async next() {
    const { promise, resolve } = Promise.withResolvers();
    this.#wait = resolve;
    this.#give();
    return within(BEGUN_MS, 'the program of a run begins', promise);
  }

  #take({ run, ...report }, response) {
    const known = this.#running.get(run);
    if (known) return known.reported(report, response);
    const program = new Program(run, report.tools, response);
    this.#running.set(run, program);
    this.#begun.push(program);
    return this.#give();
  }

  #give() {
    if (!this.#wait || this.#begun.length === 0) return;
    this.#wait(this.#begun.shift());
    this.#wait = undefined;
  }

  close() {
    this.#server.closeAllConnections();
    return new Promise((done) => this.#server.close(done));
  }
}

/** The program of one run. It makes one call at a time. */
class Program {
  #response;
  #report;

  constructor(run, tools, response) {
    this.run = run;
    this.tools = tools;
    this.#response = response;
  }

  /** Has the client call a tool. Gives the result. */
  async call(name, args = {}) {
    const { promise, resolve } = Promise.withResolvers();
    this.#report = resolve;
    this.#response.end(JSON.stringify({ call: { name, arguments: args } }));
    const { result, error } = await promise;
    if (error) throw new Error(`${name}: ${error}`);
    return result;
  }

  reported(report, response) {
    this.#response = response;
    this.#report(report);
  }

  /** Lets the program end well. */
  end() {
    this.#response.end(JSON.stringify({}));
  }
}
