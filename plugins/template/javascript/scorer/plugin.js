// {{name}}: a scorer that looks for the reference in the answer.

import { option, plate } from "./runner_plugin/index.js";
import { Scorer, referenceOf } from "./runner_plugin/scorer.js";

const config = {
  "ignore-case": option(true, "Ignore the case of letters."),
};

export const about = plate("{{name}}", "0.1.0", "Checks that the answer holds the sample's reference.", config);

class Judge extends Scorer {
  static config = config;
  exchanges = 0;
  answered = 0;

  /** @type {Scorer["judge"]} */
  judge(exchange) {
    this.exchanges += 1;
    if (exchange.output.trim() !== "") this.answered += 1;
    const reference = referenceOf(exchange);
    const expected = typeof reference === "string" ? [reference] : reference;
    // Nothing to compare with: return no score rather than a wrong one.
    if (!Array.isArray(expected) || !expected.every((text) => typeof text === "string")) return {};
    const output = this.folded(exchange.output);
    return { contains: expected.some((text) => output.includes(this.folded(text))) };
  }

  whole() {
    return this.exchanges ? { answered: this.answered / this.exchanges } : {};
  }

  folded(text) {
    return this.config["ignore-case"] ? text.toLowerCase() : text;
  }
}

export const scorer = { Judge };
