// The library of a backend: a base class, request bodies, events, and parsing of server replies.

import {
  base64Of,
  bytesOf,
  choice as choiceOf,
  configured,
  invalidConfig,
  invalidInput,
  parsed,
  protocol,
  logFailures,
  textOf,
  logFailure,
  typed,
} from "./index.js";

const NOTHING = new Uint8Array(0);

/** The methods that the host calls. */
const HOST_CALLS = [
  "defaultUrl",
  "control",
  "credentials",
  "readModels",
  "readMetrics",
  "prepare",
  "readPrepared",
  "encode",
  "framing",
  "begin",
  "decode",
  "explain",
];

const FRAMINGS = ["event-stream", "lines", "length-prefixed", "grpc", "whole", "raw"];
const SCHEMES = ["bearer", "header", "sigv4", "hmac", "token", "none"];
const REASONS = [
  "overloaded",
  "unavailable",
  "too-long",
  "unknown-model",
  "unauthorised",
  "invalid",
  "internal",
  "other",
];

/**
 * A server's dialect. Derive a class `Codec` from it, set the static field `config` and the fields `url` and
 * `controls`, and write `encode` and `read`.
 */
export class Backend {
  /** An `option` for each configuration key. */
  static config = {};
  /** The engine's default URL. */
  url = "http://127.0.0.1:8000";
  /** Paths for GET requests other than inference: `health`, `list-models`, `metrics`. */
  controls = {};
  /**
   * The scheme by which the host adds the user's key, which a plugin never sees: `bearer`, `none`, `{ header:
   * "x-api-key" }`, or `{ sigv4: "bedrock" }` for a service of AWS, `{ hmac: { digest, message, encoding, headers } }`
   * for a signature, or `{ token: { login, token, lifetime, headers } }` for a token that a login gives.
   */
  authentication = "bearer";
  /** The environment variable in which people keep the key, such as `OPENAI_API_KEY`, or null. */
  keyVariable = null;
  /** True to have the host keep the cookies of each conversation. */
  cookies = false;

  constructor(config) {
    /** The user's configuration. */
    this.config = config;
    const framing = this.framing;
    this.framing = (streaming) => choiceOf("framing", FRAMINGS, framing.call(this, streaming));
    logFailures(this, HOST_CALLS);
  }

  /**
   * The exchange for a sample: `single(post(…))`, the first of several requests as `steps(step(post(…), …))`, or
   * `socket(path, [text(…), …])`. Pure: the same arguments give the same bytes. `earlier` is null, or has the `carry`
   * of the conversation's last reply and the number of the prompt's `messages` that the server knows already.
   * @param {import("./contract").Sample} _sample
   * @param {import("./contract").Settings} _settings
   * @param {import("./contract").Earlier | null} _earlier
   * @returns {import("./contract").Call}
   */
  encode(_sample, _settings, _earlier) {
    throw invalidConfig("this backend writes no requests");
  }

  /**
   * The request to each target before the first sample's, if `encode` needs something of its reply; or null.
   * @returns {import("./contract").Request | null}
   */
  prepare() {
    return null;
  }

  /**
   * The value of `settings.prepared` in a successful reply to `prepare`: bytes, and their lifetime in nanoseconds as a
   * BigInt, or null.
   * @param {Uint8Array} body
   * @returns {import("./contract").Prepared}
   */
  readPrepared(body) {
    return { value: body, lifetime: null };
  }

  /**
   * The state before the first frame of a reply, from its status, its header fields and whether it is streamed. In an
   * exchange of several requests, `context` has the bytes that came with this one.
   * @param {import("./contract").Head} _head
   */
  start(_head) {
    return {};
  }

  /**
   * Reads one frame (its bytes, and the event's name or null) and adds its meaning to `events`. `state` is an
   * object that is kept for the reply from frame to frame, JSON values only; it is limited to 64 KiB, so don't keep
   * the answer in it. With the framing `raw`, set `events.unread` to the number of bytes at the end of the frame that
   * belong to something incomplete: the next frame begins with them.
   * @param {Uint8Array} _frame
   * @param {string | null} _name
   * @param {Object<string, any>} _state
   * @param {Events} _events
   */
  read(_frame, _name, _state, _events) {}

  // Called by the host; these defaults suit most engines.

  static open(config) {
    return logFailure(() => new this(configured(this.config, config)));
  }

  defaultUrl() {
    return this.url;
  }

  control(what) {
    const path = this.controls[what];
    return path ? { method: "GET", path, headers: [], body: NOTHING } : null;
  }

  credentials() {
    const scheme = choiceOf("authentication", SCHEMES, this.authentication);
    return { scheme, variable: this.keyVariable, cookies: this.cookies };
  }

  /** The models in the OpenAI API's form, with the fields that engines add. */
  readModels(body) {
    const list = parsed(body)?.data;
    if (!Array.isArray(list) || !list.every((model) => typeof model?.id === "string")) {
      throw protocol(`expected {"data": [{"id": …}, …]}, found ${excerpt(body)}`);
    }
    return list.map((model) => ({
      name: model.id.toWellFormed(),
      root: string(model.root)?.toWellFormed() ?? null,
      contextTokens: count(model.max_model_len),
    }));
  }

  readMetrics(_body) {
    return [];
  }

  /**
   * The framing of a reply.
   * @param {boolean} streaming
   * @returns {string | import("./contract").Framing}
   */
  framing(streaming) {
    return streaming ? "event-stream" : "whole";
  }

  begin(head) {
    return stored(this.start(head));
  }

  decode(state, frames) {
    const kept = state.length ? JSON.parse(textOf(state)) : {};
    const names = new Map(frames.names);
    const events = new Events();
    let start = 0;
    frames.ends.forEach((end, index) => {
      events.frame = index;
      // The bytes of all frames are in one piece, so unread bytes are in front of the next ones.
      const from = start - events.unread;
      events.unread = 0;
      this.read(frames.bytes.subarray(from, end), names.get(index) ?? null, kept, events);
      start = end;
    });
    return { events: events.all, state: stored(kept), unread: events.unread };
  }

  explain(status, body) {
    return refusal(status, body);
  }
}

/** A state as bytes. */
function stored(state) {
  const text = JSON.stringify(state);
  return text === "{}" ? NOTHING : bytesOf(text);
}

/** The meanings of a batch's frames, in order. */
export class Events {
  frame = 0;
  all = [];
  /** The number of unread bytes at the end of the frame; only with the framing `raw`. */
  unread = 0;

  add(tag, val) {
    this.all.push({ frame: this.frame, what: { tag, val } });
  }

  /** The reply has begun, but contains nothing of the answer yet. */
  opened() {
    this.add("opened");
  }

  /**
   * A piece of the answer, its number of tokens if the server reports it, and which of several answers to the request
   * it belongs to, from 0.
   */
  text(text, tokens = null, choice = 0) {
    this.piece("text", text, tokens, choice);
  }

  /** A piece of reasoning before the answer. */
  reasoning(text, tokens = null, choice = 0) {
    this.piece("reasoning", text, tokens, choice);
  }

  /** A piece of a tool call, as JSON text. */
  toolCall(text, tokens = null, choice = 0) {
    this.piece("tool-call", text, tokens, choice);
  }

  piece(kind, text, tokens, choice) {
    typed(`event ${kind}`, "string", { text });
    typed(`event ${kind}`, "number", { tokens, choice });
    this.add(kind, { text: text.toWellFormed(), tokens, choice });
  }

  /** The server's token counts. A value that is not a count, such as null, is treated as absent. */
  usage(counts) {
    this.add("usage", {
      inputTokens: count(counts.inputTokens),
      cachedInputTokens: count(counts.cachedInputTokens),
      outputTokens: count(counts.outputTokens),
      reasoningTokens: count(counts.reasoningTokens),
      draftTokens: count(counts.draftTokens),
      acceptedDraftTokens: count(counts.acceptedDraftTokens),
      inputImageTokens: count(counts.inputImageTokens),
      inputVideoTokens: count(counts.inputVideoTokens),
      inputAudioTokens: count(counts.inputAudioTokens),
      outputAudioTokens: count(counts.outputAudioTokens),
    });
  }

  /**
   * Another number that the server counts for the request, by a name such as `image-tokens`. A value that is not a
   * count, such as null, is treated as absent.
   */
  count(name, value) {
    if (Number.isSafeInteger(value) && value >= 0) this.add("count", [name, value]);
  }

  /**
   * A request, as `del(…)`, that the host sends when the exchange has ended, however it ended. The last one counts.
   * @param {import("./contract").Request} request
   */
  cleanUp(request) {
    this.add("clean-up", request);
  }

  /**
   * Durations of the request's parts by the server's own clock, in milliseconds. A value that is no duration, such as
   * null or one below zero, is treated as absent.
   */
  timings({ queue, prefill, firstToken, decode }) {
    this.add("timings", {
      queue: duration(queue),
      prefill: duration(prefill),
      firstToken: duration(firstToken),
      decode: duration(decode),
    });
  }

  /**
   * The steps of speculative decoding, and the numbers of them that accepted 0, 1, 2, … proposed tokens, if the server
   * reports them; a list with another sum is left out. No event if `steps` is no count.
   */
  speculation(steps, stepsByAccepted = []) {
    if (count(steps) === null) return;
    const list = Array.isArray(stepsByAccepted) ? stepsByAccepted : [];
    const sum = list.reduce((sum, more) => sum + (count(more) ?? NaN), 0);
    const addsUp = list.length <= 1024 && sum === steps;
    this.add("speculation", { steps, stepsByAccepted: addsUp ? list : [] });
  }

  /** The finish reason, in the server's own word. */
  finish(reason) {
    this.add("finish", reason.toWellFormed());
  }

  /** A piece of sound, and its milliseconds; null if only decoding it tells. */
  audio(milliseconds = null, choice = 0) {
    this.add("audio", { duration: duration(milliseconds), choice });
  }

  /** The vector of the request's text of this index, for a prompt of the kind `embedding`. */
  vector(index, values) {
    this.add("vector", { index, values });
  }

  /** An order, best first, of `{ index, score }`, for a prompt of the kind `ranking`. */
  order(ranked) {
    this.add("order", ranked);
  }

  /** Text, such as an id that the server issued, for the next request of the conversation; at most 64 KiB. */
  carry(text) {
    this.add("carry", bytesOf(text));
  }

  /**
   * The server reported an error inside a reply with a success status; `error` is the sent value. `why` is a reason of
   * the contract, such as `overloaded`; without one, the words of the error decide.
   */
  failure(error, why = null) {
    const message = messageIn(error);
    const reason = choiceOf("event failure: reason", REASONS, why ?? reasonOf(null, message)).tag;
    this.add("failure", { reason, message });
  }

  /** In an exchange of several requests: the next one, a `step`, to be sent when this reply has ended. */
  next(step) {
    this.add("next", step);
  }

  /** Over a WebSocket: a message, as `text(…)` or `binary(…)`, to be sent after all waiting ones. */
  send(outgoing) {
    this.add("send", outgoing);
  }

  /** Over a WebSocket: the messages that are held may be sent, up to the next one that holds. */
  proceed() {
    this.add("proceed");
  }

  /** The reply has no end marker: it is complete when its body is. */
  endsWithBody() {
    this.add("ends-with-body");
  }

  /** The end marker: the reply is complete. */
  end() {
    this.add("end");
  }
}

/** A frame that holds a JSON object. */
export function parse(frame) {
  const value = parsed(frame);
  if (!isObject(value)) throw protocol(`expected a JSON object, found ${excerpt(frame)}`);
  return value;
}

export const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** The value if it is a string that is not empty, or null. */
export const string = (value) => (typeof value === "string" && value !== "" ? value : null);

/** The value if it is a number of tokens, or null. */
export const count = (value) => (Number.isInteger(value) && value >= 0 && value < 2 ** 32 ? value : null);

/** The value if it is a duration, a number that is finite and not negative, or null. */
export const duration = (value) => (Number.isFinite(value) && value >= 0 ? value : null);

/** A POST of a JSON body. */
export function post(path, body, headers = []) {
  return {
    method: "POST",
    path,
    headers: [["content-type", "application/json"], ...headers],
    body: bytesOf(JSON.stringify(body)),
  };
}

/** A GET; `path` may be a whole URL in a step. */
export const get = (path, headers = []) => ({ method: "GET", path, headers, body: NOTHING });

/** A DELETE. */
export const del = (path, headers = []) => ({ method: "DELETE", path, headers, body: NOTHING });

/** One request, whose reply is the answer. */
export const single = (request) => ({ tag: "request", val: request });

/** Several requests, beginning with this step. */
export const steps = (first) => ({ tag: "steps", val: first });

/**
 * One of several requests: the framing of its reply, its delay after the previous reply, the further statuses that are
 * answers too, and the `context` that `start` gets in the head.
 */
export function step(request, framing, { seconds = 0, accepted = [], context = NOTHING } = {}) {
  return { request, framing: choiceOf("step", FRAMINGS, framing), delay: nanoseconds(seconds), accepted, context };
}

/**
 * Messages over a WebSocket, each as `text(…)` or `binary(…)`. The messages of the server are frames with the name
 * `text` or `binary`, and its close is one with the name `close`.
 */
export const socket = (path, messages, headers = []) => ({ tag: "socket", val: { path, headers, messages } });

/** A text message: its delay after the previous message's due time, and whether it waits for `events.proceed()`. */
export function text(content, { seconds = 0, hold = false } = {}) {
  return { message: { tag: "text", val: content.toWellFormed() }, delay: nanoseconds(seconds), hold };
}

/** A binary message, as `text`. */
export function binary(bytes, { seconds = 0, hold = false } = {}) {
  return { message: { tag: "binary", val: bytes }, delay: nanoseconds(seconds), hold };
}

const nanoseconds = (seconds) => Math.round(seconds * 1e9);

/** Merges the sample's own parameters over the body, and the user's extra body over both. */
export function extended(body, sample, settings) {
  for (const extra of [sample.parameters, settings.extraBody]) {
    if (extra !== null) body = merged(body, JSON.parse(extra));
  }
  return body;
}

function merged(under, over) {
  if (!isObject(under) || !isObject(over)) return over;
  const both = { ...under };
  for (const [key, value] of Object.entries(over)) {
    both[key] = Object.hasOwn(under, key) ? merged(under[key], value) : value;
  }
  return both;
}

/** The model name to send: the sample's adapter, or the model. */
export const modelOf = (sample, settings) => sample.adapter ?? settings.model;

/** The number of tokens to request, or null if the server decides. */
export const outputTokensOf = (sample, settings) => sample.outputTokens ?? settings.outputTokens;

/** The sampling settings that are set, by their names in OpenAI's API and its extensions. */
export function samplingOf(settings) {
  const { stop, ...chosen } = settings.sampling;
  const fields = Object.entries(chosen)
    .filter(([, value]) => value !== null)
    .map(([key, value]) => [key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), value]);
  return { ...Object.fromEntries(fields), ...(stop.length ? { stop } : {}) };
}

const KINDS = { tokens: "token ids", embedding: "texts to embed", ranking: "texts to rank" };

/** The prompt as the OpenAI API's `messages`; a text becomes a user message. */
export function messagesOf(prompt) {
  switch (prompt.tag) {
    case "text":
      return [{ role: "user", content: prompt.val }];
    case "messages":
      return prompt.val.map(({ role, parts, extra }) => {
        const content = parts.length === 1 && parts[0].tag === "text" ? parts[0].val : parts.map(part);
        return { role, content, ...(extra === null ? {} : JSON.parse(extra)) };
      });
    default:
      throw invalidConfig(
        `the dataset gives ${KINDS[prompt.tag]}, which a conversation cannot carry; have it give text`,
      );
  }
}

function part({ tag, val }) {
  switch (tag) {
    case "text":
      return { type: "text", text: val };
    case "image":
      return { type: "image_url", image_url: { url: `data:${val.mediaType};base64,${base64Of(val.bytes)}` } };
    default:
      throw invalidInput("a message contains audio or a video; this backend can send text and images");
  }
}

/** The error in a reply with an error status, in any of the forms that engines and proxies use. */
export function refusal(status, body) {
  const value = parsed(body);
  const message = value === undefined ? excerpt(body, 400) : messageIn(value);
  return { reason: reasonOf(status, message), message: message || "the server gave no reason" };
}

/** The message in an error value, such as {"error": {"message": "…"}}. */
export function messageIn(error) {
  for (let depth = 0; depth < 8 && isObject(error); depth++) {
    const key = ["error", "message", "msg", "detail"].find((key) => Object.hasOwn(error, key) && error[key]);
    if (key === undefined) break;
    error = error[key];
  }
  return line(typeof error === "string" ? error : JSON.stringify(error), 400);
}

/** The kind of error, from the status (null if there is none) and from words that engines use. */
export function reasonOf(status, message) {
  const text = message.toLowerCase();
  const says = (...words) => words.some((word) => text.includes(word));
  const model =
    says("model", "adapter", "lora") && says("not found", "not exist", "unknown", "no such");
  const busy = says(
    "overload",
    "queue is full",
    "too many requests",
    "rate limit",
    "capacity",
    "try again later",
  );
  if (status === 401 || status === 403) return "unauthorised";
  if (status === 429 || status === 529) return "overloaded";
  if (busy && (status === null || status === 503)) return "overloaded";
  if (status >= 502 && status <= 504) return "unavailable";
  if (status === 413) return "too-long";
  if (says("context length", "context window", "maximum context", "too long", "longer than")) return "too-long";
  if (model && [null, 400, 404, 422].includes(status)) return "unknown-model";
  if (status >= 400 && status < 500) return "invalid";
  return status >= 500 ? "internal" : "other";
}

/** The beginning of some bytes, on one line. */
export const excerpt = (bytes, longest = 200) => line(textOf(bytes.subarray(0, 4 * longest)), longest);

function line(text, longest) {
  const words = text.toWellFormed().split(/[\s\x00-\x1f]+/).filter(Boolean).join(" ");
  const characters = words.length > longest ? [...words.slice(0, 2 * longest)] : [];
  return characters.length > longest ? `${characters.slice(0, longest).join("")}…` : words;
}
