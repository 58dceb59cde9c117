// The first human of an installation, in a real browser, by the steps of docs/guides/sign-in.md:
// an account and a link by the command line, a passkey on the page, and the sign-in with it.

import { within } from './daemon.mjs';

const DONE_MS = 15_000;
export const NAME = 'ada';
export const PASSKEY = 'key of the test';

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
