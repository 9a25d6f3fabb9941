// Sessions of three turns.

import { plate } from "./runner_plugin/index.js";
import { Dataset, following, message, sample } from "./runner_plugin/dataset.js";

export const about = plate("mine", "0.1.0", "Sessions of three turns.", {});

class Generator extends Dataset {
  *samples() {
    for (let number = 1; ; number++) {
      const text = `Turn ${number}.`;
      if (number % 3 === 1) yield sample(`${number}`, text, { reference: `${number}` });
      else yield following(`${number}`, `${number - 1}`, 1000, [message("user", text)], { reference: number });
    }
  }
}

export const dataset = { Generator };
