// Signs in to narthex at real OpenID providers, and tries what must not work.
// Arguments: the folder with node_modules, the narthex binary, an empty folder, an mcp.json. Prints
// one JSON line.
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

import { Browser } from "./browser.mjs";

const [peers, narthex, folder, config] = process.argv.slice(2);
const found = createRequire(join(peers, "package.json")).resolve("oidc-provider");
const { default: Provider } = await import(pathToFileURL(found).href);

/** A server whose handler comes later, since the provider has to know its own port. */
async function listen() {
  const server = createServer((request, response) => server.handler(request, response));
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { server, issuer: `http://127.0.0.1:${server.address().port}` };
}

function provide({ server, issuer }, callback) {
  const provider = new Provider(issuer, {
    clients: [{
      client_id: "narthex",
      client_secret: "a secret & more",
      redirect_uris: [callback],
    }],
    // As most providers do, the address is in the ID token.
    conformIdTokenClaims: false,
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
    findAccount: (_context, id) => ({
      accountId: id,
      claims: () => ({ sub: id, email: id, email_verified: true, name: id }),
    }),
    features: { devInteractions: { enabled: true } },
    cookies: { keys: ["for tests"] },
  });
  server.handler = provider.callback();
}

/** Signs in at a provider as somebody; gives the address that leads back. */
function atProvider(browser, begin, login, base) {
  const isBack = (address) => address.startsWith(`${base}/signin/`);
  return browser.visit(begin, isBack, (fields) => ({ ...fields, login, password: "x" }));
}

const [corp, other] = [await listen(), await listen()];
const section = (name, issuer) => `[signin.oidc.${name}]
issuer = "${issuer}"
client_id = "narthex"
email_domains = ["corp.example"]
roles = ["default=author"]
`;
const settings = join(folder, "narthex.toml");
writeFileSync(settings, section("corp", corp.issuer) + section("other", other.issuer));
const up = ["up", "--json", "--listen", "127.0.0.1:0", "--config", config];
const child = spawn(narthex, [...up, "--settings", settings, "--data", join(folder, "data")], {
  stdio: ["ignore", "pipe", "inherit"],
  env: {
    ...process.env,
    NARTHEX_OIDC_SECRET_CORP: "a secret & more",
    NARTHEX_OIDC_SECRET_OTHER: "a secret & more",
  },
});
try {
  let base;
  for await (const line of createInterface({ input: child.stdout })) {
    const event = JSON.parse(line);
    if (event.event === "listening") {
      base = `http://localhost:${new URL(event.url).port}`;
      break;
    }
  }
  provide(corp, `${base}/signin/oidc/corp/callback`);
  provide(other, `${base}/signin/oidc/other/callback`);

  const ada = new Browser();
  const back = await atProvider(ada, `${base}/signin/oidc/corp`, "ada@corp.example", base);
  // Another browser has the address, but began nothing.
  const thief = await new Browser().go(back);
  const signedIn = await ada.go(back);
  const me = JSON.parse((await ada.go(`${base}/api/me`)).text);
  const again = await ada.go(back);
  const second = new Browser();
  await second.go(await atProvider(second, `${base}/signin/oidc/corp`, "ada@corp.example", base));
  const same = JSON.parse((await second.go(`${base}/api/me`)).text);

  const eve = new Browser();
  const stranger = await eve.go(
    await atProvider(eve, `${base}/signin/oidc/corp`, "eve@elsewhere.example", base));

  // An answer of one provider at the address of the other (S20).
  const mixed = new Browser();
  const answer = await atProvider(mixed, `${base}/signin/oidc/corp`, "ada@corp.example", base);
  await mixed.go(`${base}/signin/oidc/other`);
  const mixedUp = await mixed.go(answer.replace("/oidc/corp/", "/oidc/other/"));

  console.log(JSON.stringify({
    signedIn: signedIn.status,
    me,
    same: same.id === me.id,
    thief: thief.status,
    again: again.status,
    stranger: [stranger.status, stranger.text.includes("not allowed to sign in")],
    mixedUp: mixedUp.status,
  }));
} finally {
  child.kill("SIGTERM");
  await new Promise((done) => (child.exitCode === null ? child.on("exit", done) : done()));
  corp.server.close();
  other.server.close();
  corp.server.closeAllConnections();
  other.server.closeAllConnections();
}
