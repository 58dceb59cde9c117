// What the JavaScript drivers share: the options, the pinned packages, and the one line of output.
//
// Every driver connects, lists all tools (all pages), calls one tool and prints one JSON line
// {client, era, protocol, transport, tools, result}. It exits with 1 and a message on stderr when
// any step fails. A token is only ever read from a file: argv and the environment of a process
// can be seen by others.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const PAGE_LIMIT = 100;

/** The options of one driver run. Either `url` or `command` is set. */
export function options() {
  const { values } = parseArgs({
    options: {
      peers: { type: 'string' }, // the folder with the installed node_modules
      era: { type: 'string', default: 'legacy' }, // legacy, auto or modern
      url: { type: 'string' }, // Streamable HTTP endpoint
      events: { type: 'string' }, // where the events of the run's session are
      'token-file': { type: 'string' },
      command: { type: 'string' }, // JSON array: program and arguments of a stdio server
      tool: { type: 'string' },
      arguments: { type: 'string', default: '{}' },
    },
  });
  if (!values.peers || !values.tool) throw new Error('--peers and --tool are required');
  if (!values.url === !values.command) throw new Error('give either --url or --command');
  const tokenFile = values['token-file'];
  return {
    ...values,
    token: tokenFile ? readFileSync(tokenFile, 'utf8').trim() : undefined,
    command: values.command ? JSON.parse(values.command) : undefined,
    arguments: JSON.parse(values.arguments),
    transport: values.url ? 'http' : 'stdio',
  };
}

/** Loads one of the pinned packages, which are installed outside of the source tree. */
export function peer(opts, name) {
  return createRequire(join(opts.peers, 'package.json'))(name);
}

/** The request headers that carry the token, if there is one. */
export function headers(opts) {
  return opts.token ? { Authorization: `Bearer ${opts.token}` } : {};
}

/** Follows `nextCursor` to the end and returns the names of all tools. */
export async function allTools(listPage) {
  const names = [];
  let cursor;
  for (let page = 0; page < PAGE_LIMIT; page += 1) {
    const result = await listPage(cursor);
    names.push(...result.tools.map((tool) => tool.name));
    cursor = result.nextCursor;
    if (cursor === undefined) return names;
  }
  throw new Error(`tools/list still has pages after ${PAGE_LIMIT}`);
}

/** Runs a driver: `drive` gets the options and returns the object to print. */
export async function run(client, drive) {
  try {
    const opts = options();
    const answer = await drive(opts);
    console.log(JSON.stringify({ client, transport: opts.transport, ...answer }));
  } catch (error) {
    console.error(`${client}: ${error?.stack ?? error}`);
    for (let cause = error?.cause; cause; cause = cause.cause) {
      console.error(`caused by: ${cause?.stack ?? cause}`);
    }
    process.exitCode = 1;
  }
}
