// Driver for the Inspector's command line: it is run twice, once to list and once to call.
//
// The server comes from a private configuration file, since a header on the command line would
// show the token. The Inspector keeps state in the home directory, so it gets one of its own.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { headers, run } from './common.mjs';

const PROTOCOLS = { modern: '2026-07-28' };

await run('inspector', async (opts) => {
  const home = mkdtempSync(join(tmpdir(), 'narthex-inspector-'));
  try {
    const config = join(home, 'servers.json');
    writeFileSync(config, JSON.stringify({ mcpServers: { peer: entry(opts) } }), { mode: 0o600 });
    const inspect = (...args) => inspector(opts, home, ['--config', config, ...args]);
    const { tools } = inspect('--method', 'tools/list');
    const result = inspect(
      ...['--method', 'tools/call', '--tool-name', opts.tool],
      ...['--tool-args-json', JSON.stringify(opts.arguments)],
    );
    const names = tools.map((tool) => tool.name);
    return { era: opts.era, protocol: PROTOCOLS[opts.era] ?? null, tools: names, result };
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});

function entry(opts) {
  if (opts.command) {
    const [command, ...args] = opts.command;
    return { type: 'stdio', command, args };
  }
  return { type: 'streamable-http', url: opts.url, headers: headers(opts) };
}

function inspector(opts, home, args) {
  const launcher = join(
    opts.peers,
    'node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js',
  );
  const common = ['--server', 'peer', '--protocol-era', opts.era, '--format', 'json', '--quiet'];
  const child = spawnSync(process.execPath, [launcher, '--cli', ...common, ...args], {
    encoding: 'utf8',
    env: { ...process.env, HOME: home, PATH: `${dirname(process.execPath)}:${process.env.PATH}` },
    maxBuffer: 64 * 1024 * 1024,
  });
  if (child.status !== 0) {
    const how = child.error ?? `status ${child.status ?? child.signal}`;
    throw new Error(`the inspector ended with ${how}:\n${child.stderr}${child.stdout}`);
  }
  const answer = JSON.parse(child.stdout);
  return answer.result ?? answer;
}
