// The library of a backend, in addition to `runner_plugin.h`: frames, events, requests, and parsing of server replies.

#ifndef RUNNER_BACKEND_H
#define RUNNER_BACKEND_H

#include "runner_plugin.h"

// The bytes of a frame.
slice frame_at(const exports_backend_frames_t *frames, size_t index);
// The name of a frame's event; an empty slice if it has none.
slice name_of(const exports_backend_frames_t *frames, size_t index);

// The events of a batch of frames, in order; begins as `{0}`. Set `frame` before adding its events.
typedef struct {
  exports_backend_list_event_t list;
  size_t capacity;
  uint32_t frame;
} events;

// An event with a meaning of `EXPORTS_BACKEND_MEANING_…`; the rest of it is the caller's to fill in.
exports_backend_meaning_t *add(events *events, uint8_t meaning);
// A piece of the first answer, of its reasoning or of its tool call: the text of a JSON string. Its number of tokens is
// left absent; fill it in where the server reports it.
exports_backend_output_t *add_piece(events *events, uint8_t meaning, slice string);
// The same of a plain text, such as a part of a frame.
exports_backend_output_t *add_plain_piece(events *events, uint8_t meaning, slice text);
// The finish reason, in the server's own word: the text of a JSON string.
void add_finish(events *events, slice string);
// The server's token counts, such as `(counts){.input = get(usage, "prompt_tokens")}`. A value that is not a count is
// treated as absent, as is one that is not named.
typedef struct {
  slice input, cached_input, output, reasoning;
  slice draft, accepted_draft;
  slice input_image, input_video, input_audio, output_audio;
} counts;
void add_usage(events *events, counts counts);
// Another number that the server counts for the request, by a name such as `image-tokens`: a JSON number. No event if it
// is no count.
void add_count(events *events, const char *name, slice value);
// Durations of the parts of the request by the server's own clock: JSON numbers in a unit of this many milliseconds,
// such as 1000 for seconds. A value that is no duration is treated as absent, like an unnamed one.
typedef struct {
  slice queue, prefill, first_token, decode;
  double milliseconds;
} timings;
void add_timings(events *events, timings timings);
// The steps of speculative decoding, and the numbers of them that accepted 0, 1, 2, … proposed tokens: a JSON number,
// and a JSON list, which is left out if it does not add up to the steps. No event if there is no such number.
void add_speculation(events *events, slice steps, slice steps_by_accepted);
// The server reported an error, which is a JSON value, inside a reply with a success status.
void add_failure(events *events, slice error);

// Data for the next request of the conversation, such as an id that the server issued; at most 64 KiB.
void add_carry(events *events, slice bytes);

// Ends a decoding: returns events and state if it succeeded, frees them if not, and frees the input. With the framing
// `raw`, set `result->unread` afterwards to the number of bytes at the end that belong to something incomplete.
bool decoded(bool well, events *events, plugin_list_u8_t *old_state, exports_backend_frames_t *frames,
             buffer *new_state, exports_backend_decoded_t *result);

// `expected a JSON object, found …`: false, to be returned.
bool no_object(types_error_t *error, slice found);

// Requests. They consume the body. In a step, the path may be a whole URL.
void get_request(exports_backend_request_t *request, const char *path);
void delete_request(exports_backend_request_t *request, const char *path);
void post_json(exports_backend_request_t *request, slice path, buffer *body);

// The exchange of `encode`: one request, whose reply is the answer;
exports_backend_request_t *single(exports_backend_call_t *call);
// the first of several requests, whose reply is split as `EXPORTS_BACKEND_FRAMING_…` says; fill in its request, and
// where needed its delay in nanoseconds, the statuses it accepts, and its context;
exports_backend_step_t *first_step(exports_backend_call_t *call, uint8_t framing);
// or messages over a WebSocket, for `say`.
exports_backend_socket_t *web_socket(exports_backend_call_t *call, const char *path);
// Adds a text message to a WebSocket's messages, and returns it, for its `delay` in nanoseconds and its `hold`.
exports_backend_outgoing_t *say(exports_backend_socket_t *socket, slice text);

// The next of several requests, as `first_step`: it is sent when this reply has ended.
exports_backend_step_t *add_next(events *events, uint8_t framing);
// A request, for `delete_request`, that the host sends when the exchange has ended, however it ended. The last one counts.
exports_backend_request_t *add_clean_up(events *events);
// Over a WebSocket: a text message, to be sent after all waiting ones.
exports_backend_outgoing_t *add_send(events *events, slice text);
// A piece of sound of this many milliseconds; less than 0 if only decoding it would tell.
void add_audio(events *events, double milliseconds);

// A JSON object under construction; begins as `{0}`, and `close_body` ends it.
void put_key(buffer *body, const char *key);
void put_string_field(buffer *body, const char *key, plugin_string_t value);
void put_count_field(buffer *body, const char *key, uint64_t value);
void put_bool_field(buffer *body, const char *key, bool value);
// The sampling settings that are set, by their names in OpenAI's API and its extensions.
void put_sampling(buffer *body, const types_sampling_t *sampling);
// Ends the object: merges the sample's own parameters over it, and the user's extra body over both.
void close_body(buffer *body, const types_sample_t *sample, const types_settings_t *settings);
// The prompt as the OpenAI API's `messages`; a text becomes a user message. False, and an error, where it
// cannot be one.
bool put_messages(buffer *body, const types_prompt_t *prompt, types_error_t *error);
// The model name to send: the sample's adapter, or the model.
plugin_string_t model_of(const types_sample_t *sample, const types_settings_t *settings);
// The number of tokens to request; false if the server decides.
bool output_tokens_of(const types_sample_t *sample, const types_settings_t *settings, uint32_t *tokens);

// The models in the OpenAI API's form, with the fields that engines add.
bool read_openai_models(slice body, exports_backend_list_served_model_t *models, types_error_t *error);
// The kind of error, from the status (0 if there is none) and from words that engines use.
exports_backend_reason_t reason_of(uint16_t status, slice text);
// The error in a reply with an error status, in any of the forms that engines and proxies use.
void read_refusal(uint16_t status, slice body, exports_backend_refusal_t *refusal);

#endif
