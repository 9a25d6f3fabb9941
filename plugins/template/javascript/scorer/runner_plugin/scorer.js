// The library of a scorer: a base class, and scores.

import { configured, logFailures, logFailure } from "./index.js";

/**
 * Scores answers. Derive a class `Judge` from it, set the static field `config`, and write `judge`, and also `whole`
 * if there are scores of the run as a whole.
 */
export class Scorer {
  /** An `option` for each configuration key. */
  static config = {};

  constructor(config) {
    /** The user's configuration. */
    this.config = config;
    logFailures(this, ["score", "finish"]);
  }

  /**
   * The scores of one answer by name; `{}` if it cannot be scored. The host computes their means.
   * @param {import("./contract").Exchange} _exchange
   * @returns {Object<string, number | boolean>}
   */
  judge(_exchange) {
    return {};
  }

  /** Scores of the run as a whole by name, for measures that are not a mean of `judge`'s. */
  whole() {
    return {};
  }

  // Called by the host.

  static open(config) {
    return logFailure(() => new this(configured(this.config, config)));
  }

  score(exchange) {
    return scores(this.judge(exchange));
  }

  finish() {
    return scores(this.whole());
  }
}

/** The sample's reference as a value, undefined if it has none. */
export const referenceOf = (exchange) =>
  exchange.reference === null ? undefined : JSON.parse(exchange.reference);

const scores = (named) => Object.entries(named).map(([name, value]) => ({ name, value: Number(value) }));
