#!/usr/bin/env node
// Starts the program, which is in the package of this machine, in the place of this process.
"use strict";

const { spawn } = require("node:child_process");

const name = `runner-llm-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/runner`);
} catch {
  console.error(
    `runner: the package ${name} is not installed. Install runner-llm again without --omit=optional; ` +
      "programs are made for linux-x64 and linux-arm64.",
  );
  process.exit(127);
}

const words = process.argv.slice(2);
if (process.execve) {
  try {
    process.execve(program, [program, ...words], process.env);
  } catch {
    // Node says so where it may not replace itself. Then it starts the program below.
  }
}

const child = spawn(program, words, { stdio: "inherit" });
// A terminal sends its signals to the program too, and a second interrupt means more than one. What
// comes without a terminal comes to this process alone.
const hasTerminal = [0, 1, 2].some((number) => require("node:tty").isatty(number));
for (const signal of ["SIGINT", "SIGHUP", "SIGQUIT"]) {
  process.on(signal, () => hasTerminal || child.kill(signal));
}
process.on("SIGTERM", () => child.kill("SIGTERM"));
child.on("error", (error) => {
  console.error(`runner: ${program} does not start: ${error.message}`);
  process.exit(126);
});
child.on("exit", (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exit(code);
  }
});
