// A backend for Ollama: `/api/chat` and `/api/generate`, replies as JSON, one a line.

import { base64Of, invalidConfig, invalidInput, option, parsed, plate, protocol } from "./runner_plugin/index.js";
import {
  Backend,
  excerpt,
  extended,
  isObject,
  modelOf,
  outputTokensOf,
  parse,
  post,
  refusal,
  single,
  string,
} from "./runner_plugin/backend.js";

const config = {
  route: option("chat", "`chat` for /api/chat, `generate` for /api/generate."),
  raw: option(false, "With `generate`: send the prompt as it is, without the model's template."),
  think: option("", "Reasoning before the answer: `true`, `false`, or a level such as `low`; empty leaves the choice to the model."),
};

export const about = plate("ollama", "0.1.0", "Ollama's own API: /api/chat and /api/generate.", config);

// Ollama's names of the sampling settings; all stand under `options`.
const OPTIONS = {
  temperature: "temperature",
  topP: "top_p",
  topK: "top_k",
  minP: "min_p",
  frequencyPenalty: "frequency_penalty",
  presencePenalty: "presence_penalty",
  repetitionPenalty: "repeat_penalty",
  seed: "seed",
};

class Codec extends Backend {
  static config = config;
  url = "http://127.0.0.1:11434";
  controls = { health: "/api/version", "list-models": "/api/tags" };

  constructor(config) {
    super(config);
    const { route, raw } = config;
    if (route !== "chat" && route !== "generate") {
      throw invalidConfig(`key \`route\`: expected \`chat\` or \`generate\`, found \`${route}\``);
    }
    if (raw && route !== "generate") {
      throw invalidConfig("key `raw`: /api/chat always applies the model's template; set route = \"generate\"");
    }
  }

  encode(sample, settings, _earlier) {
    const body = { model: modelOf(sample, settings), ...this.promptFields(sample.prompt) };
    const { think } = this.config;
    if (think !== "") body.think = think === "true" || (think === "false" ? false : think);
    body.stream = settings.streaming;
    const options = {};
    const limit = outputTokensOf(sample, settings);
    if (limit !== null) options.num_predict = limit;
    for (const [key, name] of Object.entries(OPTIONS)) {
      if (settings.sampling[key] !== null) options[name] = settings.sampling[key];
    }
    if (settings.sampling.stop.length) options.stop = settings.sampling.stop;
    if (Object.keys(options).length) body.options = options;
    return single(post(`/api/${this.config.route}`, extended(body, sample, settings)));
  }

  /** The fields of the body that hold the prompt. */
  promptFields({ tag, val }) {
    if (this.config.route === "generate") {
      if (tag !== "text") {
        throw invalidConfig(
          tag === "messages"
            ? "key `route`: the dataset gives conversations, which /api/generate does not accept; set route = \"chat\""
            : notText(tag),
        );
      }
      return this.config.raw ? { prompt: val, raw: true } : { prompt: val };
    }
    switch (tag) {
      case "text":
        return { messages: [{ role: "user", content: val }] };
      case "messages":
        return { messages: val.map(message) };
      default:
        throw invalidConfig(notText(tag));
    }
  }

  framing(streaming) {
    return { tag: streaming ? "lines" : "whole" };
  }

  /** A line of a stream, or a whole reply, which looks like a last line that holds everything. */
  read(frame, _name, _state, events) {
    const reply = parse(frame);
    if (reply.error) {
      events.failure(reply);
      return;
    }
    const message = isObject(reply.message) ? reply.message : {};
    const thought = string(message.thinking) ?? string(reply.thinking);
    const text = string(message.content) ?? string(reply.response);
    const calls = Array.isArray(message.tool_calls) && message.tool_calls.length ? message.tool_calls : null;
    if (thought) events.reasoning(thought);
    if (text) events.text(text);
    if (calls) events.toolCall(JSON.stringify(calls));
    if (reply.done !== true) {
      if (!thought && !text && !calls) events.opened();
      return;
    }
    if (string(reply.done_reason)) events.finish(reply.done_reason);
    // The counts stand in the last line. A prompt that was found whole in the cache may have none.
    const counted = { inputTokens: reply.prompt_eval_count, outputTokens: reply.eval_count };
    if (Object.values(counted).some(Number.isInteger)) events.usage(counted);
    events.end();
  }

  /** `{"models": [{"name": "llama3.2:latest", …}]}`; a name without a tag means the tag `latest`. */
  readModels(body) {
    const list = parsed(body)?.models;
    if (!Array.isArray(list) || !list.every((model) => typeof model?.name === "string")) {
      throw protocol(`expected {"models": [{"name": …}, …]}, found ${excerpt(body)}`);
    }
    return list.flatMap(({ name }) => {
      const known = name.toWellFormed();
      const names = known.endsWith(":latest") ? [known, known.slice(0, -":latest".length)] : [known];
      return names.map((name) => ({ name, root: null, contextTokens: null }));
    });
  }

  explain(status, body) {
    const error = refusal(status, body);
    // `server busy, please try again.  maximum pending requests exceeded`
    if (status === 503 && error.message.includes("server busy")) error.reason = "overloaded";
    return error;
  }
}

const KINDS = { tokens: "token ids", embedding: "texts to embed", ranking: "texts to rank" };

const notText = (tag) => `the dataset gives ${KINDS[tag]}, which Ollama does not accept; have it give text`;

// The contract's `developer` message is a system message to Ollama.
function message({ role, parts, extra }) {
  const texts = parts.filter(({ tag }) => tag === "text").map(({ val }) => val);
  const images = parts.filter(({ tag }) => tag === "image").map(({ val }) => base64Of(val.bytes));
  if (texts.length + images.length < parts.length) {
    throw invalidInput("a message holds a sound; Ollama takes text and images");
  }
  return {
    role: role === "developer" ? "system" : role,
    content: texts.join("\n"),
    ...(images.length ? { images } : {}),
    ...(extra === null ? {} : JSON.parse(extra)),
  };
}

export const backend = { Codec };
