// The library of a dataset: a base class, samples, and reading the files that the scenario names.

import files from "runner:plugin/files@1.0.0";

import { configured, invalidConfig, invalidInput, seedRandom, logFailures, textOf, logFailure, typed } from "./index.js";

/** A sequence of samples. Derive a class `Generator` from it, set the static field `config`, and write `samples`. */
export class Dataset {
  /** An `option` for each configuration key. */
  static config = {};

  /**
   * `config` is the user's configuration; `seed` is the source of all random choices, exact up to 2^53; `count` is the
   * number of samples that the run will measure, `sessions` the number of sessions, or null.
   */
  constructor(config, seed, { count = null, sessions = null } = {}) {
    this.config = config;
    this.seed = seed;
    this.count = count;
    this.sessions = sessions;
    this.noted = [];
    this.rest = this.samples();
    this.ahead = [];
    logFailures(this, ["next", "spare", "remarks"]);
  }

  /**
   * A generator of all samples, in their order. The same configuration, seed, files and tokenizer give the same
   * samples, everywhere: draw random numbers from `Math.random`, which follows from the seed, or from `random(seed)` of
   * `index.js`, and from nothing else.
   * @returns {Generator<import("./contract").Sample>}
   */
  *samples() {}

  /**
   * Counts a treatment of the input, for the result of a run: `what` is `dropped`, `truncated`, `repaired` or
   * `repeated`, `reason` is the reason, and `example` names the case.
   */
  remark(what, reason, example = null) {
    const known = this.noted.find((remark) => remark.what === what && remark.reason === reason);
    if (known) known.count += 1;
    else this.noted.push({ what, reason: reason.toWellFormed(), count: 1, first: example });
  }

  // Called by the host.

  static open(config, seed, { tag, val }) {
    const amount = { samples: { count: Number(val) }, sessions: { sessions: Number(val) } }[tag];
    seedRandom(seed);
    return logFailure(() => new this(configured(this.config, config), seed, amount));
  }

  next(limit) {
    const taken = this.ahead.splice(0, limit);
    while (taken.length < limit) {
      const { value, done } = this.rest.next();
      if (done) break;
      taken.push(value);
    }
    return taken;
  }

  /**
   * Samples for requests that are not measured: the first ones that depend on no other, so `next` never gives them
   * again. The rest of a session that begins with one of them is left out.
   */
  spare(limit) {
    const alone = [];
    for (;;) {
      const [sample] = this.next(1);
      if (sample === undefined) return alone;
      if (sample.after.length) continue;
      if (alone.length === limit) {
        this.ahead.push(sample);
        return alone;
      }
      alone.push(sample);
    }
  }

  remarks() {
    return this.noted;
  }
}

/**
 * A sample: its id, unique within a run, and its prompt: a text, or a prompt of the contract's type, such as
 * `{ tag: "tokens", val: [1, 2] }`. Further fields follow the sample in `wit/types.wit`, in camel case. `reference` is
 * a plain value, such as 8, "8" or ["eight", "8"]; `parameters` is an object, or the text of one in JSON.
 * @param {string} id
 * @param {string | import("./contract").Prompt} prompt
 * @returns {import("./contract").Sample}
 */
export function sample(id, prompt, fields = {}) {
  const { inputTokens = null, outputTokens = null, audioDuration = null, arrival = null } = fields;
  typed(`sample ${id}`, "number", { inputTokens, outputTokens, audioDuration, arrival });
  const { recordedAnswer = null, class: kind = null, adapter = null } = fields;
  typed(`sample ${id}`, "string", { id, recordedAnswer, class: kind, adapter });
  return {
    id,
    prompt: typeof prompt === "string" ? { tag: "text", val: prompt.toWellFormed() } : prompt,
    after: [],
    recordedAnswer: null,
    inputTokens: null,
    audioDuration: null,
    recordedDuration: null,
    outputTokens: null,
    reference: null,
    turn: null,
    class: null,
    arrival: null,
    adapter: null,
    parameters: null,
    further: null,
    ...fields,
    ...asText(fields),
  };
}

/** The fields of a sample that the host wants as JSON text. */
function asText({ reference = null, parameters = null }) {
  return {
    reference: reference === null ? null : JSON.stringify(reference).toWellFormed(),
    parameters: parameters === null || typeof parameters === "string" ? parameters : JSON.stringify(parameters),
  };
}

/**
 * The next turn of a conversation, due this many nanoseconds after the end of the reply to the sample `parent`. The
 * host puts the history before its messages. The turns of a session follow their first sample directly.
 */
export function following(id, parent, delay, messages, fields = {}) {
  const prompt = { tag: "continuation", val: { parent, messages } };
  return sample(id, prompt, { after: [{ sample: parent, point: "end", delay }], ...fields });
}

/** A message of one text. */
export const message = (role, text) => ({
  role,
  parts: [{ tag: "text", val: text.toWellFormed() }],
  extra: null,
});

/**
 * The lines of the file that the scenario calls `name` without their ends, and their numbers from 1. The file is
 * read in pieces, so it may be larger than the plugin's memory; a line may not.
 */
export function* lines(name) {
  const file = files.File.open(name);
  if (file === null) {
    throw invalidConfig(
      `this dataset reads a file; name it in the scenario: [dataset.files] ${name} = "PATH"`,
    );
  }
  const size = Number(file.size());
  let number = 0;
  let rest = [];
  for (let offset = 0; offset < size; ) {
    let piece;
    try {
      piece = file.read(offset, 1 << 20);
    } catch (error) {
      throw invalidInput(`file \`${name}\`: ${error}`);
    }
    if (piece.length === 0) break;
    offset += piece.length;
    for (let start = 0; start < piece.length; ) {
      const end = piece.indexOf(10, start);
      rest.push(piece.subarray(start, end < 0 ? piece.length : end));
      if (end < 0) break;
      yield [++number, line(rest)];
      rest = [];
      start = end + 1;
    }
  }
  if (rest.length) yield [++number, line(rest)];
}

/** A line's text, of pieces that may cut a character. */
function line(pieces) {
  if (pieces.length === 1) return textOf(pieces[0]).replace(/\r$/, "");
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return textOf(whole).replace(/\r$/, "");
}
