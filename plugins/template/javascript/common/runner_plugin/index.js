// Support for every kind of plugin: its description, its configuration, errors, log lines and text as bytes.
//
// This folder is yours: it came with the project, and you may change it. The component is a snapshot of the QuickJS
// interpreter after it has loaded your module. It has the language, and no files, no network, no `TextDecoder` and no
// `Buffer`. Its clock stands still at 0. `Math.random()` gives the same numbers in every instance; in a dataset they
// follow from its seed. `console` writes to the log.

import log from "runner:plugin/log@1.0.0";

/** An error to throw if the user's configuration is wrong. Name the key, the expected value, and the remedy. */
export const invalidConfig = (message) => ({ tag: "invalid-config", val: message.toWellFormed() });

/** An error to throw if an input file is wrong. Name the place in the file and the expected content. */
export const invalidInput = (message) => ({ tag: "invalid-input", val: message.toWellFormed() });

/** An error to throw if the server sent something that this plugin does not understand. */
export const protocol = (message) => ({ tag: "protocol", val: message.toWellFormed() });

/** An error to throw for anything else. */
export const other = (message) => ({ tag: "other", val: message.toWellFormed() });

// The host can only be called once the snapshot has been taken, which is when it first calls the plugin.
let early = [];

/** Called by the host's first calls: from now on there is a log. */
export function started() {
  const lines = early ?? [];
  early = null;
  for (const [level, line] of lines) log.write(level, line);
  return true;
}

const printed = (level) => (...values) => {
  const line = values.map(shown).join(" ").toWellFormed();
  if (early) early.push([level, line]);
  else log.write(level, line);
};

function shown(value) {
  if (typeof value === "string") return value;
  if (value instanceof Error) return `${value}\n${value.stack}`;
  try {
    return JSON.stringify(value, (_key, inner) => (typeof inner === "bigint" ? `${inner}n` : inner)) ?? String(value);
  } catch {
    return String(value);
  }
}

globalThis.console = {
  debug: printed("debug"),
  log: printed("info"),
  info: printed("info"),
  warn: printed("warn"),
  error: printed("error"),
};

/** Random numbers of at least 0 and below 1 that follow from a seed (the generator sfc32). */
export function random(seed) {
  const whole = BigInt.asUintN(64, BigInt(seed));
  let a = Number(whole & 0xffffffffn) | 0;
  let b = Number(whole >> 32n) | 0;
  let c = 0;
  let counter = 1;
  const next = () => {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (c << 21) | (c >>> 11);
    c = (c + sum) | 0;
    return (sum >>> 0) / 2 ** 32;
  };
  // The first numbers of seeds that are close to each other are close too.
  for (let i = 0; i < 15; i++) next();
  return next;
}

// The interpreter's own numbers, and the start of its clock, would come from the moment of the build.
Math.random = random(0);
globalThis.performance = { now: () => 0, timeOrigin: 0 };

/** Has `Math.random` follow from a seed. */
export function seedRandom(seed) {
  Math.random = random(seed);
}

const KINDS = ["invalid-config", "invalid-input", "protocol", "other"];

let lastLogged;

/** Calls a function of the plugin. An exception ends the call: why, and where, goes to the log. */
export function logFailure(call) {
  try {
    return call();
  } catch (error) {
    // The calls around it rethrow the error of one call of the plugin's.
    if (KINDS.includes(error?.tag) || error === lastLogged) throw error;
    lastLogged = error;
    const place = error instanceof Error ? placeOf(error.stack ?? "") : "";
    log.write("error", `${error instanceof Error ? error : `threw ${shown(error)}`}${place}`.toWellFormed());
    throw error;
  }
}

/** The innermost line of the author's own in a stack, or else its innermost line. */
function placeOf(stack) {
  const lines = [...stack.matchAll(/at (\S+) \(\/?([^()]+?):(\d+)(?::\d+)?\)/g)];
  const line = lines.find(([, , file]) => !file.startsWith("runner_plugin/")) ?? lines[0];
  return line ? ` at ${line[1]}, ${line[2]} line ${line[3]}` : "";
}

/** Has an object tell why its methods of these names fail, which the host calls. */
export function logFailures(object, names) {
  for (const name of names) {
    const method = object[name];
    object[name] = (...values) => logFailure(() => method.apply(object, values));
  }
}

/** Throws unless these fields have the type that the host takes, or are null. The message names the field. */
export function typed(of, type, fields) {
  for (const [name, value] of Object.entries(fields)) {
    if (value !== null && typeof value !== type) {
      throw new TypeError(`${of}: ${name}: expected a ${type}, found ${shown(value)}, a ${typeof value}`);
    }
  }
}

/** A choice of the contract, which may be written as `"lines"`, `{ header: "x" }` or `{ tag: "header", val: "x" }`. */
export function choice(of, known, value) {
  const [tag, val] =
    typeof value === "string" ? [value] : value?.tag ? [value.tag, value.val] : (Object.entries(value ?? {})[0] ?? []);
  if (!known.includes(tag)) throw new TypeError(`${of}: expected one of ${known.join(", ")}, found ${shown(value)}`);
  return val === undefined ? { tag } : { tag, val };
}

/** Writes a line to the run's log, for the person who runs the benchmark. */
export const note = (message) => log.write("info", message.toWellFormed());

/** Writes a warning to the run's log. */
export const warn = (message) => log.write("warn", message.toWellFormed());

/**
 * A key of the configuration: its default and its description.
 * Its type is the default's: a string, a number, a boolean or a list of strings. If the default is a whole
 * number, the value must be one too.
 */
export const option = (fallback, description) => ({ fallback, description });

/** The export `about` of a plugin. `config` has an `option` for each configuration key. */
export function plate(name, version, summary, config) {
  const properties = {};
  for (const [key, { fallback, description }] of Object.entries(config)) {
    const type = typeOf(fallback);
    const items = type === "array" ? { items: { type: "string" } } : {};
    properties[key] = { description, type, ...items, default: fallback };
  }
  const schema = { type: "object", properties, additionalProperties: false };
  const info = { name, version, summary, configSchema: JSON.stringify(schema) };
  return { describe: () => started() && info };
}

/** The user's configuration, a JSON object, completed with defaults; all mistakes are reported at once. */
export function configured(config, text) {
  started();
  const values = {};
  for (const [key, { fallback }] of Object.entries(config)) values[key] = fallback;
  const mistakes = [];
  for (const [key, value] of Object.entries(JSON.parse(text))) {
    if (!Object.hasOwn(config, key)) {
      const known = Object.keys(config).sort().map((name) => `\`${name}\``).join(", ") || "none";
      mistakes.push(`key \`${key}\`: there is no such key; known: ${known}`);
    } else if (!fits(value, typeOf(config[key].fallback))) {
      const expected = EXPECTED[typeOf(config[key].fallback)];
      mistakes.push(`key \`${key}\`: expected ${expected}, found ${JSON.stringify(value)}`);
    } else {
      values[key] = value;
    }
  }
  if (mistakes.length) throw invalidConfig(mistakes.join("; "));
  return values;
}

const EXPECTED = {
  string: "a string",
  boolean: "true or false",
  integer: "a whole number",
  number: "a number",
  array: "a list of strings",
};

function typeOf(value) {
  if (Array.isArray(value)) return "array";
  return Number.isInteger(value) ? "integer" : typeof value;
}

function fits(value, type) {
  if (type === "array") return Array.isArray(value) && value.every((item) => typeof item === "string");
  if (type === "integer") return Number.isInteger(value);
  return typeof value === type;
}

/** The JSON value in bytes from outside, undefined if they are not JSON. */
export function parsed(bytes) {
  const text = textOf(bytes);
  // The parser calls itself for each level, and a reply of brackets alone would exhaust the stack.
  if (isDeep(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const OPENING = /[[{]/g;
const BRACKETS = /"(?:[^"\\]|\\[^])*"?|[[\]{}]/g;
const DEEPEST = 64;

function isDeep(text) {
  if ((text.match(OPENING)?.length ?? 0) <= DEEPEST) return false;
  let depth = 0;
  for (const [token] of text.matchAll(BRACKETS)) {
    if (token === "[" || token === "{") {
      if (++depth > DEEPEST) return true;
    } else if (token === "]" || token === "}") {
      depth--;
    }
  }
  return false;
}

/** Bytes as text; invalid UTF-8 is replaced. */
export function textOf(bytes) {
  let text = "";
  // A call takes about this many arguments at most.
  for (let start = 0; start < bytes.length; start += 16384) {
    text += String.fromCharCode.apply(null, bytes.subarray(start, start + 16384));
  }
  if (!/[\x80-\xff]/.test(text)) return text;
  try {
    return decodeURIComponent(escape(text));
  } catch {
    return text.replace(CHARACTERS, (bytes) =>
      bytes.length > 1 ? decodeURIComponent(escape(bytes)) : "\ufffd",
    );
  }
}

// Characters of several bytes as UTF-8 allows them, and any other byte that is not ASCII.
const CHARACTERS =
  /[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}|[\x80-\xff]/g;

/** Text as bytes in UTF-8. */
export function bytesOf(text) {
  const latin = /[^\x00-\x7f]/.test(text) ? unescape(encodeURIComponent(text.toWellFormed())) : text;
  const bytes = new Uint8Array(latin.length);
  for (let at = 0; at < latin.length; at++) bytes[at] = latin.charCodeAt(at);
  return bytes;
}

/** Bytes as base64. */
export function base64Of(bytes) {
  let latin = "";
  for (let start = 0; start < bytes.length; start += 16384) {
    latin += String.fromCharCode.apply(null, bytes.subarray(start, start + 16384));
  }
  return btoa(latin);
}
