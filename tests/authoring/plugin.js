// Follows the instruction in the reference of each exchange.

import { choice, invalidInput, plate, typed } from "./runner_plugin/index.js";
import { Scorer, referenceOf } from "./runner_plugin/scorer.js";

export const about = plate("mine", "0.1.0", "Does what it is told.", {});

console.log("while it loads");

class Judge extends Scorer {
  judge(exchange) {
    // A test also gives references of other kinds.
    const does = this[referenceOf(exchange)];
    return typeof does === "function" ? does() : {};
  }

  prints() {
    console.log("from", "log", { a: 1, b: 2n });
    console.warn("from warn");
    return { well: 1 };
  }

  clocks() {
    return { date: Date.now(), performance: performance.now() };
  }

  chance() {
    return { random: Math.random() };
  }

  property() {
    const nothing = [][0];
    return { value: nothing.value }; // here: property
  }

  own() {
    throw new RangeError("of my own"); // here: own
  }

  arrival() {
    typed("sample 1", "number", { turn: null, arrival: 5n }); // here: arrival
  }

  unknown() {
    choice("framing", ["lines", "whole"], "lins"); // here: unknown
  }

  forms() {
    const forms = [{ header: "x" }, { tag: "header", val: "x" }].map((form) => choice("scheme", ["header"], form));
    return { equal: JSON.stringify(forms[0]) === JSON.stringify(forms[1]) && forms[1].val === "x" };
  }

  text() {
    throw "only a text";
  }

  half() {
    throw new Error("half \ud83d a character"); // here: half
  }

  half_input() {
    throw invalidInput("half \ud83d a character");
  }
}

export const scorer = { Judge };
