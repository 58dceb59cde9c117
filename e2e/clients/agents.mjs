// Driver for agents: a real agent program is started in a home folder with the files that narthex
// has written, asks a stand-in for its model what to do, and makes the call that this names.
//
// Prints one JSON line {client, tools, result, seconds}. Exits with 1 and the agent's own output if
// the call did not happen.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { startModel } from './model.mjs';

const { values: opts } = parseArgs({
  options: {
    agents: { type: 'string' }, // the folder with the installed node_modules
    agent: { type: 'string' }, // one of AGENTS
    home: { type: 'string' }, // the home folder
    tool: { type: 'string' }, // how the name of the tool ends
    arguments: { type: 'string', default: '{}' },
  },
});

const TOOL_WORDS = 'Call the tool and repeat its result.';
const NONE = 'stand-in-key';

const AGENTS = {
  claude: {
    // The package's own script would copy this program; scripts of packages are not run.
    program: `@anthropic-ai/claude-code-${process.platform}-${process.arch}/claude`,
    arguments: () => [
      ...['--print', TOOL_WORDS, '--model', 'claude-sonnet-4-5', '--output-format', 'json'],
      ...['--dangerously-skip-permissions', '--no-session-persistence'],
    ],
    environment: (url) => ({
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: NONE,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
      // Root may skip the questions only in a container.
      IS_SANDBOX: '1',
      // All tools are offered at once, and no earlier than the servers are connected.
      ENABLE_TOOL_SEARCH: 'false',
      MCP_CONNECTION_NONBLOCKING: '0',
    }),
  },
  codex: {
    program: '@openai/codex/bin/codex.js',
    isScript: true,
    arguments: (url) => [
      'exec',
      ...['--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox'],
      ...['-c', 'model_provider="stand-in"', '-c', 'model="stand-in"'],
      '-c',
      `model_providers.stand-in={name="stand-in",base_url="${url}/v1",wire_api="responses"}`,
      TOOL_WORDS,
    ],
    environment: () => ({ OPENAI_API_KEY: NONE }),
  },
};

const agent = AGENTS[opts.agent];
const model = await startModel({
  wanted: (name) => name.endsWith(opts.tool),
  arguments: JSON.parse(opts.arguments),
});
const file = join(opts.agents, 'node_modules', agent.program);
const [program, ...script] = agent.isScript ? [process.execPath, file] : [file];
const folder = mkdtempSync(join(tmpdir(), 'narthex-agent-'));
try {
  const began = Date.now();
  const { said, status } = await ended(
    spawn(program, [...script, ...agent.arguments(model.url)], {
      cwd: folder,
      env: { HOME: opts.home, PATH: process.env.PATH, ...agent.environment(model.url) },
      stdio: ['ignore', 'pipe', 'pipe'],
    }),
  );
  const { tools, results, requests } = model.seen;
  if (results.length === 0) {
    const asked = `${requests.length} requests (${[...new Set(requests)].join(', ')})`;
    const offered = [...tools].join(', ');
    throw new Error(`${opts.agent} made no call: ${status}\n${asked}\ntools: ${offered}\n${said}`);
  }
  const seconds = (Date.now() - began) / 1000;
  const line = { client: opts.agent, tools: [...tools], result: results.join('\n'), seconds };
  console.log(JSON.stringify(line));
} catch (error) {
  console.error(`${opts.agent}: ${error?.stack ?? error}`);
  process.exitCode = 1;
} finally {
  await model.close();
  rmSync(folder, { recursive: true, force: true });
}

async function ended(child) {
  let said = '';
  child.stdout.on('data', (part) => (said += part));
  child.stderr.on('data', (part) => (said += part));
  const status = await new Promise((over, fails) => {
    child.on('error', fails);
    child.on('close', (code, signal) => over(signal ?? `status ${code}`));
  });
  return { said, status };
}
