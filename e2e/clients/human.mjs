// A human at the pages of narthex, in a real browser. The first of an installation has an account
// and a link by the command line, adds a passkey, and signs in with it (docs/guides/sign-in.md).

import { within } from './daemon.mjs';

const DONE_MS = 15_000;
export const NAME = 'ada';
export const PASSKEY = 'key of the test';
/** The title of the page of consent. */
const CONSENT = 'Let a program in?';

/** The output of a command that has to work. */
export async function run(daemon, ...words) {
  const command = daemon.command(...words);
  const code = await within(DONE_MS, `narthex ${words.join(' ')} ends`, command.done);
  const said = `${command.stdout}${command.stderr}`;
  if (code !== 0) throw new Error(`narthex ${words.join(' ')}: ${code}\n${said}`);
  return command.stdout;
}

/** Makes the account, opens the link, and adds a passkey. The browser is signed in by the link. */
export async function enroll(daemon, chromium) {
  await run(daemon, 'users', 'create', NAME, '--operator');
  const printed = await run(daemon, 'users', 'link', NAME);
  const [link] = printed.match(/https?:\/\/\S+/) ?? [];
  if (!link) throw new Error(`no link is printed: ${printed}`);
  await chromium.open(link);
  await chromium.heading(`Sign in as ${NAME}?`);
  await chromium.look('link');
  await chromium.press(`Sign in as ${NAME}`);
  // A sign-in leads to the console. Passkeys are on the page of the account.
  await chromium.heading('Home');
  await chromium.open(`${new URL(link).origin}/signin`);
  await chromium.heading(`Signed in as ${NAME}`);
  await chromium.look('account-by-link');
  await chromium.page.getByLabel('Name of the new passkey').fill(PASSKEY);
  await chromium.press('Add a passkey');
  await chromium.page.getByRole('listitem').filter({ hasText: PASSKEY }).waitFor();
  return link;
}

export async function signOut(chromium) {
  await chromium.press('Sign out');
  await chromium.heading('Sign in');
}

/** Signs in with the passkey on the page that asks for it. */
export async function withPasskey(chromium) {
  await chromium.heading('Sign in');
  await chromium.press('Sign in with a passkey');
}

/** The answers of a human to clients, which wait at the callback. */
export class Human {
  constructor(chromium, callback) {
    Object.assign(this, { chromium, callback });
  }

  /**
   * Lets a client in, and keeps what the page of consent showed. A client that waits at an address
   * of its own shows a page of its own at the end, so that no address is left to open.
   */
  letIn(choice, { picture, waits = 'at the callback' } = {}) {
    return async (link) => {
      const { origin } = new URL(link);
      await this.chromium.open(link);
      this.asked = await this.chromium.heading(/.+/);
      if (this.asked === 'Sign in') {
        if (picture) await this.chromium.look('sign-in');
        await withPasskey(this.chromium);
      }
      await this.chromium.heading(CONSENT);
      this.shown = await this.chromium.facts();
      if (picture) await this.chromium.look(picture);
      await this.chromium.page.locator(`input[name="servers"][value="${choice}"]`).check();
      await this.chromium.press('Let it in');
      if (waits === 'at the callback') return this.callback.next();
      return this.chromium.page.waitForURL((address) => address.origin !== origin);
    };
  }

  /**
   * Presses the button without a choice, which the browser refuses, and then as one that checks no
   * form. The keyboard begins at the fault, and chooses there. Gives what each step did.
   */
  async careless(link) {
    const { page } = this.chromium;
    await this.chromium.open(link);
    await this.chromium.heading(CONSENT);
    const here = page.url();
    const letIn = page.getByRole('button', { name: 'Let it in' });
    await letIn.press('Enter');
    const invalid = await page.locator('input[name="servers"]:invalid').count();
    const stays = page.url() === here;
    await page.locator('form.decide').evaluate((form) => (form.noValidate = true));
    await letIn.press('Enter');
    const fault = await page.getByRole('alert').innerText();
    await this.chromium.look('consent-unchosen');
    const value = await page.evaluate(() => document.activeElement.value);
    await page.keyboard.press('Space');
    const { chosen } = await this.chromium.facts();
    await page.getByRole('button', { name: 'Deny' }).press('Enter');
    const back = new URL(await this.callback.next());
    return { invalid, stays, fault, value, chosen, error: back.searchParams.get('error') };
  }

  /** Refuses the client of a link. Gives the parameters with which the browser comes back. */
  async refuse(link) {
    await this.chromium.open(link);
    await this.chromium.heading(CONSENT);
    const { program } = await this.chromium.facts();
    await this.chromium.press('Deny');
    const back = new URL(await this.callback.next());
    const { error, code, state, iss } = Object.fromEntries(back.searchParams);
    return { program, error, hasCode: code !== undefined, state, iss };
  }
}
