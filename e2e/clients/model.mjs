// A stand-in for the language model of an agent, in the forms of two providers: it asks for one
// tool, and then repeats the tool's result. So an agent makes a real MCP call without a model.

import { createServer } from 'node:http';

const MODEL = 'stand-in';

// Serves until `close`. `wanted` picks the tool among the names that the agent offers.
export async function startModel({ wanted, arguments: input }) {
  const seen = { tools: new Set(), results: [], requests: [] };
  const server = createServer(async (request, response) => {
    const body = await read(request);
    seen.requests.push(`${request.method} ${request.url}`);
    const path = new URL(request.url, 'http://localhost').pathname;
    const answers = { '/v1/messages': messages, '/v1/responses': responses };
    const answer = request.method === 'POST' ? answers[path] : undefined;
    if (!answer) return send(response, { data: [], input_tokens: 1 });
    return answer(body, response, { wanted, input, seen });
  });
  await new Promise((listens) => server.listen(0, '127.0.0.1', listens));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    seen,
    close: () => {
      server.closeAllConnections();
      return new Promise((closed) => server.close(closed));
    },
  };
}

async function read(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  const text = Buffer.concat(parts).toString();
  return text === '' ? {} : JSON.parse(text);
}

function send(response, value) {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
}

function stream(response, events) {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const event of events) {
    response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  }
  response.end();
}

// The Messages API of Anthropic.
function messages(body, response, { wanted, input, seen }) {
  const tools = (body.tools ?? []).map((tool) => tool.name);
  for (const name of tools) seen.tools.add(name);
  const blocks = body.messages.flatMap((one) => (Array.isArray(one.content) ? one.content : []));
  const results = blocks.filter((block) => block.type === 'tool_result');
  const tool = tools.find(wanted);
  const asks = tool !== undefined && results.length === 0;
  if (results.length > 0) seen.results = results.map((block) => textOf(block.content));
  const said = seen.results.join('\n') || 'no tool';
  const block = asks
    ? { type: 'tool_use', id: 'toolu_1', name: tool, input: {} }
    : { type: 'text', text: '' };
  const delta = asks
    ? { type: 'input_json_delta', partial_json: JSON.stringify(input) }
    : { type: 'text_delta', text: said };
  const stop = asks ? 'tool_use' : 'end_turn';
  const usage = { input_tokens: 1, output_tokens: 1 };
  const message = {
    ...{ id: 'msg_1', type: 'message', role: 'assistant', model: body.model ?? MODEL },
    ...{ content: [], stop_reason: null, stop_sequence: null, usage },
  };
  if (!body.stream) {
    const content = asks ? { ...block, input } : { ...block, text: said };
    return send(response, { ...message, content: [content], stop_reason: stop });
  }
  return stream(response, [
    { type: 'message_start', message },
    { type: 'content_block_start', index: 0, content_block: block },
    { type: 'content_block_delta', index: 0, delta },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: stop, stop_sequence: null }, usage },
    { type: 'message_stop' },
  ]);
}

// The Responses API of OpenAI.
function responses(body, response, { wanted, input, seen }) {
  const tools = (body.tools ?? []).flatMap((tool) =>
    tool.type === 'namespace'
      ? tool.tools.map((inner) => ({ name: inner.name, namespace: tool.name }))
      : [{ name: tool.name }],
  );
  const fullName = (tool) => `${tool.namespace ?? ''}${tool.name}`;
  for (const tool of tools) seen.tools.add(fullName(tool));
  const results = (body.input ?? []).filter((item) => item.type === 'function_call_output');
  const tool = tools.find((one) => wanted(fullName(one)));
  const asks = tool !== undefined && results.length === 0;
  if (results.length > 0) seen.results = results.map((item) => textOf(item.output));
  const item = asks
    ? { type: 'function_call', call_id: 'call_1', ...tool, arguments: JSON.stringify(input) }
    : {
        ...{ type: 'message', role: 'assistant' },
        content: [{ type: 'output_text', text: seen.results.join('\n') || 'no tool' }],
      };
  const count = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
  return stream(response, [
    { type: 'response.created', response: { id: 'resp_1' } },
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.completed', response: { id: 'resp_1', output: [item], usage: count } },
  ]);
}

function textOf(content) {
  if (typeof content === 'string') return content;
  return (content ?? []).map((block) => block.text ?? '').join('\n');
}
