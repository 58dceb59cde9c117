// A browser without a window, for drivers: cookies of each origin, redirects and forms.

const STEPS = 20;

export class Browser {
  #jars = new Map();

  /**
   * Sends one request: a form, if there are fields, from the page at `from`. Gives its status, text
   * and address, and the address of a redirect.
   */
  async go(url, form, from = url) {
    const { origin } = new URL(url);
    const jar = this.#jars.get(origin) ?? new Map();
    this.#jars.set(origin, jar);
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const headers = { accept: 'text/html', cookie };
    if (form) headers.origin = new URL(from).origin;
    const body = form && new URLSearchParams(form);
    const method = form ? 'POST' : 'GET';
    const response = await fetch(url, { method, headers, body, redirect: 'manual' });
    for (const line of response.headers.getSetCookie()) {
      const [name, value] = line.split(';')[0].split(/=(.*)/s);
      if (value) jar.set(name, value);
      else jar.delete(name);
    }
    const next = response.headers.get('location');
    const text = await response.text();
    return { url, status: response.status, text, next: next && new URL(next, url).href };
  }

  /**
   * Follows redirects and sends the first form of each page until a redirect leads to an address
   * of which `isEnd` is true. Gives that address without visiting it. `fill` gets the hidden fields
   * of a form and its page, and returns the fields to send.
   */
  async visit(url, isEnd, fill = (fields) => fields) {
    let answer = await this.go(url);
    for (let step = 0; step < STEPS; step += 1) {
      if (answer.next && isEnd(answer.next)) return answer.next;
      answer = answer.next ? await this.go(answer.next) : await this.#send(answer, fill);
    }
    throw new Error(`${url} leads to no end in ${STEPS} steps`);
  }

  #send(page, fill) {
    const { action, fields } = firstForm(page);
    return this.go(action, fill(fields, page), page.url);
  }
}

/** The address and the hidden fields of the first form of a page. */
function firstForm({ url, status, text }) {
  const form = text.match(/<form([^>]*)>(.*?)<\/form>/s);
  if (!form) throw new Error(`${url} answers ${status} without a form: ${text.slice(0, 2000)}`);
  const inputs = [...form[2].matchAll(/<input([^>]*)>/g)].map(([, words]) => words);
  const hidden = inputs.filter((words) => attribute(words, 'type') === 'hidden');
  const pairs = hidden.map((words) => [attribute(words, 'name'), attribute(words, 'value')]);
  return {
    action: new URL(attribute(form[1], 'action') ?? '', url).href,
    fields: Object.fromEntries(pairs.map(([name, value]) => [name, value ?? ''])),
  };
}

function attribute(words, name) {
  const found = words.match(new RegExp(`(?:^|\\s)${name}="([^"]*)"`));
  return found && unescape(found[1]);
}

const NAMES = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'", '#x27': "'" };

function unescape(text) {
  return text.replace(/&(amp|lt|gt|quot|#39|#x27);/g, (_, name) => NAMES[name]);
}
