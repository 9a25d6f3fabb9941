"""{{name}}: a backend for engines that answer conversations with an event stream, as the OpenAI API does."""

from dataclasses import dataclass

from runner_plugin import option, plate
from runner_plugin.backend import (
    Backend,
    Control,
    extended,
    messages,
    model,
    output_tokens,
    parse,
    post,
    sampling,
    single,
    string,
    table,
)


@dataclass
class Config:
    path: str = option("/v1/chat/completions", "The path of the engine's route, below the target's URL.")


About = plate("{{name}}", "0.1.0", "Conversations as an event stream, in the OpenAI API's form.", Config)


class Codec(Backend):
    Config = Config
    url = "http://127.0.0.1:8000"
    controls = {Control.HEALTH: "/health", Control.LIST_MODELS: "/v1/models"}

    def encode(self, sample, settings, earlier):
        body = {"model": model(sample, settings), "messages": messages(sample.prompt), **sampling(settings)}
        limit = output_tokens(sample, settings)
        if limit is not None:
            body["max_completion_tokens"] = limit
        if settings.min_output_tokens is not None:
            body["min_tokens"] = settings.min_output_tokens
        if settings.ignore_eos:
            body["ignore_eos"] = True
        body["stream"] = settings.streaming
        if settings.streaming:
            body["stream_options"] = {"include_usage": True}
        return single(post(self.config.path, extended(body, sample, settings)))

    def read(self, frame, name, state, events):
        if frame == b"[DONE]":
            events.end()
            return
        reply = parse(frame)
        if reply.get("error"):
            events.failure(reply["error"])
            return
        choices = reply.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            choice = choices[0]
            # A chunk of a stream has a `delta`, a whole reply has a `message`.
            piece = table(choice, "delta") or table(choice, "message")
            thought = string(piece, "reasoning_content", "reasoning")
            text = string(piece, "content")
            finish = string(choice, "finish_reason")
            if thought:
                events.reasoning(thought)
            if text:
                events.text(text)
            elif not (thought or finish):
                events.opened()
            if finish:
                events.finish(finish)
        usage = table(reply, "usage")
        if usage:
            events.usage(
                input_tokens=usage.get("prompt_tokens"),
                cached_input_tokens=table(usage, "prompt_tokens_details").get("cached_tokens"),
                output_tokens=usage.get("completion_tokens"),
                reasoning_tokens=table(usage, "completion_tokens_details").get("reasoning_tokens"),
                accepted_draft_tokens=table(usage, "completion_tokens_details").get("accepted_prediction_tokens"),
                input_audio_tokens=table(usage, "prompt_tokens_details").get("audio_tokens"),
                output_audio_tokens=table(usage, "completion_tokens_details").get("audio_tokens"),
            )
