#!/usr/bin/env node
// Starts the program of this platform, which is in a package of its own.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const name = `@narthex/${process.platform}-${process.arch}`;

function program() {
  try {
    return require.resolve(`${name}/bin/narthex`);
  } catch {
    console.error(
      `narthex: the package ${name} is not installed. Either there is none for this platform,\n` +
        "or npm left out optional packages: install narthex again without --omit=optional.",
    );
    process.exit(1);
  }
}

const path = program();
const words = process.argv.slice(2);

if (typeof process.execve === "function") {
  // The program takes the place of this process, with its number, its signals and its files.
  process.execve(path, [path, ...words], process.env);
}

const child = spawn(path, words, { stdio: "inherit" });
const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
for (const signal of signals) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`narthex: ${path} does not start: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  process.exit(code ?? 128 + (constants.signals[signal] ?? 0));
});
