// What every kind of plugin needs: its description, its configuration, errors, log lines and text as bytes.
//
// This folder is yours: it came with the project, and you may change it. The component is a snapshot of the
// QuickJS interpreter after it has loaded your module. It has the language, and no files, no clock, no network,
// no `TextDecoder` and no `Buffer`.

import log from "runner:plugin/log@0.3.0";

/** An error to throw if the user's configuration is wrong. Name the key, what was expected, and what to do. */
export const invalidConfig = (message) => ({ tag: "invalid-config", val: message.toWellFormed() });

/** An error to throw if an input file is wrong. Name the place in the file and what was expected. */
export const invalidInput = (message) => ({ tag: "invalid-input", val: message.toWellFormed() });

/** An error to throw if the server sent something that this plugin does not understand. */
export const protocol = (message) => ({ tag: "protocol", val: message.toWellFormed() });

/** An error to throw for anything else. */
export const other = (message) => ({ tag: "other", val: message.toWellFormed() });

/** Writes a line to the run's log, for the person who runs the benchmark. */
export const note = (message) => log.write("info", message.toWellFormed());

/** Writes a warning to the run's log. */
export const warn = (message) => log.write("warn", message.toWellFormed());

/**
 * A key of the configuration: its default and its description.
 * Its type is that of the default: a string, a number, a boolean or a list of strings. If the default is a whole
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
  return { describe: () => info };
}

/** The user's configuration, a JSON object, completed with defaults; all mistakes are reported at once. */
export function configured(config, text) {
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

/** Bytes as text; what is not UTF-8 is replaced. */
export function textOf(bytes) {
  let text = "";
  // A call takes so many arguments and not many more.
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
