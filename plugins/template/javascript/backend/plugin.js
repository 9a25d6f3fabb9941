// {{name}}: a backend for engines that answer conversations with an event stream, as the OpenAI API does.

import { option, plate, textOf } from "./runner_plugin/index.js";
import {
  Backend,
  extended,
  isObject,
  messagesOf,
  modelOf,
  outputTokensOf,
  parse,
  post,
  samplingOf,
  single,
  string,
} from "./runner_plugin/backend.js";

const config = {
  path: option("/v1/chat/completions", "The path of the engine's route, below the target's URL."),
};

export const about = plate(
  "{{name}}",
  "0.1.0",
  "Conversations as an event stream, in the OpenAI API's form.",
  config,
);

class Codec extends Backend {
  static config = config;
  url = "http://127.0.0.1:8000";
  controls = { health: "/health", "list-models": "/v1/models" };

  /** @type {Backend["encode"]} */
  encode(sample, settings, _earlier) {
    const body = {
      model: modelOf(sample, settings),
      messages: messagesOf(sample.prompt),
      ...samplingOf(settings),
    };
    const limit = outputTokensOf(sample, settings);
    if (limit !== null) body.max_completion_tokens = limit;
    if (settings.minOutputTokens !== null) body.min_tokens = settings.minOutputTokens;
    if (settings.ignoreEos) body.ignore_eos = true;
    body.stream = settings.streaming;
    if (settings.streaming) body.stream_options = { include_usage: true };
    return single(post(this.config.path, extended(body, sample, settings)));
  }

  /** @type {Backend["read"]} */
  read(frame, _name, _state, events) {
    if (textOf(frame.subarray(0, 6)) === "[DONE]") {
      events.end();
      return;
    }
    const reply = parse(frame);
    if (reply.error) {
      events.failure(reply.error);
      return;
    }
    const choice = Array.isArray(reply.choices) ? reply.choices[0] : undefined;
    if (isObject(choice)) {
      // A chunk of a stream has a `delta`, a whole reply has a `message`.
      const piece = choice.delta ?? choice.message;
      const thought = string(piece?.reasoning_content) ?? string(piece?.reasoning);
      const text = string(piece?.content);
      const finish = string(choice.finish_reason);
      if (thought) events.reasoning(thought);
      if (text) events.text(text);
      if (!thought && !text && !finish) events.opened();
      if (finish) events.finish(finish);
    }
    const usage = reply.usage;
    if (isObject(usage)) {
      events.usage({
        inputTokens: usage.prompt_tokens,
        cachedInputTokens: usage.prompt_tokens_details?.cached_tokens,
        outputTokens: usage.completion_tokens,
        reasoningTokens: usage.completion_tokens_details?.reasoning_tokens,
        acceptedDraftTokens: usage.completion_tokens_details?.accepted_prediction_tokens,
        inputAudioTokens: usage.prompt_tokens_details?.audio_tokens,
        outputAudioTokens: usage.completion_tokens_details?.audio_tokens,
      });
    }
  }
}

export const backend = { Codec };
