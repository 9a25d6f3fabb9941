// {{name}}: a dataset of prompts, one a line of a text file.

import { option, plate } from "./runner_plugin/index.js";
import { Dataset, lines, sample } from "./runner_plugin/dataset.js";

const config = {
  "output-tokens": option(128, "Output tokens to request."),
};

export const about = plate(
  "{{name}}",
  "0.1.0",
  "Prompts, one a line of the file that the scenario calls `prompts`.",
  config,
);

class Generator extends Dataset {
  static config = config;

  *samples() {
    for (const [number, line] of lines("prompts")) {
      const prompt = line.trim();
      if (prompt === "") continue;
      const id = `prompt-${String(number).padStart(6, "0")}`;
      yield sample(id, prompt, { outputTokens: this.config["output-tokens"] });
    }
  }
}

export const dataset = { Generator };
