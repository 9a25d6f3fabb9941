// What a scorer needs: a class to derive from, and scores.

import { configured } from "./index.js";

/**
 * A judge of answers. Derive a class `Judge` from it, set the static field `config`, and write `judge`, and `whole`
 * where there is something to say of the run as a whole.
 */
export class Scorer {
  /** An `option` for each key that the user may set. */
  static config = {};

  constructor(config) {
    /** What the user set. */
    this.config = config;
  }

  /** The scores of one answer by name; `{}` where it cannot be judged. The host gives their mean. */
  judge(_exchange) {
    return {};
  }

  /** Scores of the run as a whole by name, for measures that are not a mean of `judge`'s. */
  whole() {
    return {};
  }

  // What the host calls.

  static open(config) {
    return new this(configured(this.config, config));
  }

  score(exchange) {
    return scores(this.judge(exchange));
  }

  finish() {
    return scores(this.whole());
  }
}

/** The sample's reference as a value, undefined where it has none. */
export const referenceOf = (exchange) =>
  exchange.reference === null ? undefined : JSON.parse(exchange.reference);

const scores = (named) => Object.entries(named).map(([name, value]) => ({ name, value: Number(value) }));
