// Drives the browser's part of passkeys. Everything else on the page works without it.
"use strict";

const toBytes = (text) =>
  Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));

const toText = (buffer) =>
  btoa(String.fromCharCode(...new Uint8Array(buffer)))
    .replace(/\+/g, "-")
    .replace(/\//g, "_")
    .replace(/=+$/, "");

const withBytes = (list) => (list || []).map((one) => ({ ...one, id: toBytes(one.id) }));

function readOptions(options) {
  const read = { ...options, challenge: toBytes(options.challenge) };
  if (options.user) {
    read.user = { ...options.user, id: toBytes(options.user.id) };
    read.excludeCredentials = withBytes(options.excludeCredentials);
  } else {
    read.allowCredentials = withBytes(options.allowCredentials);
  }
  return read;
}

function writeCredential(credential) {
  const response = {};
  for (const part of ["clientDataJSON", "attestationObject", "authenticatorData", "signature",
    "userHandle"]) {
    if (credential.response[part]) {
      response[part] = toText(credential.response[part]);
    }
  }
  return {
    id: credential.id,
    rawId: toText(credential.rawId),
    type: credential.type,
    response,
    clientExtensionResults: credential.getClientExtensionResults(),
  };
}

async function post(path, body) {
  const headers = { "content-type": "application/json" };
  const csrf = document.body.dataset.csrf;
  if (csrf) {
    headers["x-narthex-csrf"] = csrf;
  }
  const answer = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
  const read = await answer.json();
  if (!answer.ok) {
    throw new Error(read.detail);
  }
  return read;
}

async function signIn() {
  const begun = await post("/signin/passkey/begin", {});
  const publicKey = readOptions(begun.options.publicKey);
  const credential = await navigator.credentials.get({ publicKey });
  const answer = { ceremony: begun.ceremony, credential: writeCredential(credential) };
  location.assign((await post("/signin/passkey/finish", answer)).location);
}

async function add(form) {
  const label = form.elements.label.value;
  const begun = await post("/signin/passkeys/new", {});
  const publicKey = readOptions(begun.options.publicKey);
  const credential = await navigator.credentials.create({ publicKey });
  const answer = { ceremony: begun.ceremony, credential: writeCredential(credential), label };
  const added = await post("/signin/passkeys", answer);
  location.assign(form.dataset.then || added.location);
}

function tell(error) {
  const refused = error.name === "NotAllowedError";
  document.getElementById("told").textContent =
    refused ? "The passkey was not used. Try again." : error.message;
}

const button = document.getElementById("sign-in");
if (button && window.PublicKeyCredential) {
  button.hidden = false;
  button.addEventListener("click", () => signIn().catch(tell));
}

const form = document.getElementById("add");
if (form && window.PublicKeyCredential) {
  form.hidden = false;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    add(form).catch(tell);
  });
}
