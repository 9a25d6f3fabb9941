#include "runner_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

slice frame_at(const exports_backend_frames_t *frames, size_t index) {
  size_t start = index ? frames->ends.ptr[index - 1] : 0;
  return (slice){frames->bytes.ptr + start, frames->ends.ptr[index] - start};
}

slice name_of(const exports_backend_frames_t *frames, size_t index) {
  for (size_t at = 0; at < frames->names.len; at++) {
    if (frames->names.ptr[at].f0 == index) return slice_of_string(frames->names.ptr[at].f1);
  }
  return (slice){NULL, 0};
}

// Events.

exports_backend_meaning_t *add(events *events, uint8_t meaning) {
  events->list.ptr = grown(events->list.ptr, events->list.len, &events->capacity, sizeof *events->list.ptr);
  exports_backend_event_t *event = &events->list.ptr[events->list.len++];
  memset(event, 0, sizeof *event);
  event->frame = events->frame;
  event->what.tag = meaning;
  return &event->what;
}

static exports_backend_output_t *add_text(events *events, uint8_t meaning, plugin_string_t text) {
  exports_backend_output_t *piece = &add(events, meaning)->val.text;
  piece->text = text;
  return piece;
}

exports_backend_output_t *add_piece(events *events, uint8_t meaning, slice string) {
  return add_text(events, meaning, text_of(string));
}

exports_backend_output_t *add_plain_piece(events *events, uint8_t meaning, slice text) {
  return add_text(events, meaning, owned(text));
}

void add_finish(events *events, slice string) {
  add(events, EXPORTS_BACKEND_MEANING_FINISH)->val.finish = text_of(string);
}

void add_carry(events *events, slice bytes) {
  buffer copy = {0};
  put_slice(&copy, bytes);
  add(events, EXPORTS_BACKEND_MEANING_CARRY)->val.carry = finished_bytes(&copy);
}

static void set_count(plugin_option_u32_t *count, slice value) { count->is_some = count_of(value, &count->val); }

void add_usage(events *events, counts counts) {
  exports_backend_usage_t *usage = &add(events, EXPORTS_BACKEND_MEANING_USAGE)->val.usage;
  set_count(&usage->input_tokens, counts.input);
  set_count(&usage->cached_input_tokens, counts.cached_input);
  set_count(&usage->output_tokens, counts.output);
  set_count(&usage->reasoning_tokens, counts.reasoning);
  set_count(&usage->draft_tokens, counts.draft);
  set_count(&usage->accepted_draft_tokens, counts.accepted_draft);
  set_count(&usage->input_image_tokens, counts.input_image);
  set_count(&usage->input_video_tokens, counts.input_video);
  set_count(&usage->input_audio_tokens, counts.input_audio);
  set_count(&usage->output_audio_tokens, counts.output_audio);
}

void add_count(events *events, const char *name, slice value) {
  double number;
  // The largest number up to which a JSON number is exact everywhere.
  if (!number_of(value, &number) || number < 0 || number > 9007199254740991.0 || number != floor(number)) return;
  plugin_tuple2_string_u64_t *count = &add(events, EXPORTS_BACKEND_MEANING_COUNT)->val.count;
  count->f0 = owned_text(name);
  count->f1 = (uint64_t)number;
}

static void set_duration(plugin_option_f64_t *duration, slice value, double milliseconds) {
  double number;
  if (!number_of(value, &number)) return;
  duration->val = number * milliseconds;
  duration->is_some = isfinite(duration->val) && duration->val >= 0;
}

void add_timings(events *events, timings timings) {
  exports_backend_timings_t *event = &add(events, EXPORTS_BACKEND_MEANING_TIMINGS)->val.timings;
  set_duration(&event->queue, timings.queue, timings.milliseconds);
  set_duration(&event->prefill, timings.prefill, timings.milliseconds);
  set_duration(&event->first_token, timings.first_token, timings.milliseconds);
  set_duration(&event->decode, timings.decode, timings.milliseconds);
}

void add_speculation(events *events, slice steps, slice steps_by_accepted) {
  uint32_t all;
  if (!count_of(steps, &all)) return;
  exports_backend_speculation_t *event = &add(events, EXPORTS_BACKEND_MEANING_SPECULATION)->val.speculation;
  event->steps = all;
  if (!is_list(steps_by_accepted)) return;
  plugin_list_u32_t list = {0};
  size_t capacity = 0;
  uint64_t sum = 0;
  for (slice rest = steps_by_accepted, item; next(&rest, &item);) {
    list.ptr = grown(list.ptr, list.len, &capacity, sizeof *list.ptr);
    // An item that is no count makes the sum differ.
    if (list.len == 1024 || !count_of(item, &list.ptr[list.len])) {
      sum = UINT64_MAX;
      break;
    }
    sum += list.ptr[list.len++];
  }
  if (sum == all) event->steps_by_accepted = list;
  else free(list.ptr);
}

bool decoded(bool well, events *events, plugin_list_u8_t *old_state, exports_backend_frames_t *frames,
             buffer *new_state, exports_backend_decoded_t *result) {
  plugin_list_u8_free(old_state);
  exports_backend_frames_free(frames);
  exports_backend_decoded_t all = {events->list, finished_bytes(new_state), 0};
  if (well) *result = all;
  else exports_backend_decoded_free(&all);
  return well;
}

bool no_object(types_error_t *error, slice found) {
  buffer message = {0};
  put(&message, "expected a JSON object, found ");
  put_excerpt(&message, found, 200);
  return fail(error, TYPES_ERROR_PROTOCOL, &message);
}

// Requests.

void get_request(exports_backend_request_t *request, const char *path) {
  memset(request, 0, sizeof *request);
  request->method = owned_text("GET");
  request->path = owned_text(path);
}

void delete_request(exports_backend_request_t *request, const char *path) {
  memset(request, 0, sizeof *request);
  request->method = owned_text("DELETE");
  request->path = owned_text(path);
}

exports_backend_request_t *add_clean_up(events *events) {
  return &add(events, EXPORTS_BACKEND_MEANING_CLEAN_UP)->val.clean_up;
}

exports_backend_request_t *single(exports_backend_call_t *call) {
  call->tag = EXPORTS_BACKEND_CALL_REQUEST;
  return &call->val.request;
}

static exports_backend_step_t *step_of(exports_backend_step_t *step, uint8_t framing) {
  memset(step, 0, sizeof *step);
  step->framing.tag = framing;
  return step;
}

exports_backend_step_t *first_step(exports_backend_call_t *call, uint8_t framing) {
  call->tag = EXPORTS_BACKEND_CALL_STEPS;
  return step_of(&call->val.steps, framing);
}

exports_backend_step_t *add_next(events *events, uint8_t framing) {
  return step_of(&add(events, EXPORTS_BACKEND_MEANING_NEXT)->val.next, framing);
}

exports_backend_socket_t *web_socket(exports_backend_call_t *call, const char *path) {
  call->tag = EXPORTS_BACKEND_CALL_SOCKET;
  exports_backend_socket_t *socket = &call->val.socket;
  memset(socket, 0, sizeof *socket);
  socket->path = owned_text(path);
  return socket;
}

static exports_backend_outgoing_t *outgoing_of(exports_backend_outgoing_t *outgoing, slice text) {
  memset(outgoing, 0, sizeof *outgoing);
  outgoing->message.tag = EXPORTS_BACKEND_MESSAGE_TEXT;
  outgoing->message.val.text = owned(text);
  return outgoing;
}

exports_backend_outgoing_t *say(exports_backend_socket_t *socket, slice text) {
  size_t count = socket->messages.len + 1;
  exports_backend_outgoing_t *messages = realloc(socket->messages.ptr, count * sizeof *messages);
  if (!messages) abort();
  socket->messages.ptr = messages;
  socket->messages.len = count;
  return outgoing_of(&messages[count - 1], text);
}

exports_backend_outgoing_t *add_send(events *events, slice text) {
  return outgoing_of(&add(events, EXPORTS_BACKEND_MEANING_SEND)->val.send, text);
}

void add_audio(events *events, double milliseconds) {
  exports_backend_sound_t *sound = &add(events, EXPORTS_BACKEND_MEANING_AUDIO)->val.audio;
  memset(sound, 0, sizeof *sound);
  sound->duration.is_some = milliseconds >= 0;
  sound->duration.val = milliseconds;
}

void post_json(exports_backend_request_t *request, slice path, buffer *body) {
  request->method = owned_text("POST");
  request->path = owned(path);
  request->headers.len = 1;
  request->headers.ptr = malloc(sizeof *request->headers.ptr);
  if (!request->headers.ptr) abort();
  request->headers.ptr[0].f0 = owned_text("content-type");
  request->headers.ptr[0].f1 = owned_text("application/json");
  request->body = finished_bytes(body);
}

void put_key(buffer *body, const char *key) {
  put(body, body->len == 0 ? "{" : ",");
  put_quoted(body, slice_of(key));
  put(body, ":");
}

void put_string_field(buffer *body, const char *key, plugin_string_t value) {
  put_key(body, key);
  put_quoted(body, slice_of_string(value));
}

void put_count_field(buffer *body, const char *key, uint64_t value) {
  put_key(body, key);
  put_count(body, value);
}

void put_bool_field(buffer *body, const char *key, bool value) {
  put_key(body, key);
  put(body, value ? "true" : "false");
}

static void put_option(buffer *body, const char *key, plugin_option_f64_t value) {
  if (!value.is_some) return;
  put_key(body, key);
  put_number(body, value.val);
}

void put_sampling(buffer *body, const types_sampling_t *sampling) {
  put_option(body, "temperature", sampling->temperature);
  put_option(body, "top_p", sampling->top_p);
  if (sampling->top_k.is_some) put_count_field(body, "top_k", sampling->top_k.val);
  put_option(body, "min_p", sampling->min_p);
  put_option(body, "frequency_penalty", sampling->frequency_penalty);
  put_option(body, "presence_penalty", sampling->presence_penalty);
  put_option(body, "repetition_penalty", sampling->repetition_penalty);
  if (sampling->seed.is_some) put_count_field(body, "seed", sampling->seed.val);
  for (size_t at = 0; at < sampling->stop.len; at++) {
    if (at == 0) put_key(body, "stop");
    put(body, at ? "," : "[");
    put_quoted(body, slice_of_string(sampling->stop.ptr[at]));
    if (at + 1 == sampling->stop.len) put(body, "]");
  }
}

static void lay_over(buffer *body, types_option_json_t extra) {
  if (!extra.is_some) return;
  buffer merged = {0};
  put_merged(&merged, slice_of_buffer(body), json(slice_of_string(extra.val)));
  discard(body);
  *body = merged;
}

void close_body(buffer *body, const types_sample_t *sample, const types_settings_t *settings) {
  put(body, body->len == 0 ? "{}" : "}");
  lay_over(body, sample->parameters);
  lay_over(body, settings->extra_body);
}

static void put_part(buffer *body, const types_part_t *part) {
  if (part->tag == TYPES_PART_TEXT) {
    put(body, "{\"type\":\"text\",\"text\":");
    put_quoted(body, slice_of_string(part->val.text));
    put(body, "}");
    return;
  }
  buffer url = {0};
  put(&url, "data:");
  put_slice(&url, slice_of_string(part->val.image.media_type));
  put(&url, ";base64,");
  put_base64(&url, slice_of_bytes(part->val.image.bytes));
  put(body, "{\"type\":\"image_url\",\"image_url\":{\"url\":");
  put_quoted(body, slice_of_buffer(&url));
  put(body, "}}");
  discard(&url);
}

static const char *const ROLES[] = {"system", "developer", "user", "assistant", "tool"};

static bool put_message(buffer *body, const types_message_t *message, types_error_t *error) {
  buffer fields = {0};
  put_key(&fields, "role");
  put_quoted(&fields, slice_of(ROLES[message->role]));
  put_key(&fields, "content");
  if (message->parts.len == 1 && message->parts.ptr[0].tag == TYPES_PART_TEXT) {
    put_quoted(&fields, slice_of_string(message->parts.ptr[0].val.text));
  } else {
    put(&fields, "[");
    for (size_t at = 0; at < message->parts.len; at++) {
      uint8_t tag = message->parts.ptr[at].tag;
      if (tag != TYPES_PART_TEXT && tag != TYPES_PART_IMAGE) {
        discard(&fields);
        return fail_text(error, TYPES_ERROR_INVALID_INPUT,
                         "a message contains audio or a video; this backend can send text and images");
      }
      if (at) put(&fields, ",");
      put_part(&fields, &message->parts.ptr[at]);
    }
    put(&fields, "]");
  }
  put(&fields, "}");
  lay_over(&fields, message->extra);
  put_slice(body, slice_of_buffer(&fields));
  discard(&fields);
  return true;
}

bool put_messages(buffer *body, const types_prompt_t *prompt, types_error_t *error) {
  if (prompt->tag != TYPES_PROMPT_TEXT && prompt->tag != TYPES_PROMPT_MESSAGES) {
    buffer message = {0};
    put(&message, "the dataset gives ");
    put(&message, prompt->tag == TYPES_PROMPT_TOKENS      ? "token ids"
                  : prompt->tag == TYPES_PROMPT_EMBEDDING ? "texts to embed"
                                                          : "texts to rank");
    put(&message, ", which a conversation cannot carry; have it give text");
    return fail(error, TYPES_ERROR_INVALID_CONFIG, &message);
  }
  put_key(body, "messages");
  if (prompt->tag == TYPES_PROMPT_TEXT) {
    put(body, "[{\"role\":\"user\",\"content\":");
    put_quoted(body, slice_of_string(prompt->val.text));
    put(body, "}]");
    return true;
  }
  put(body, "[");
  for (size_t at = 0; at < prompt->val.messages.len; at++) {
    if (at) put(body, ",");
    if (!put_message(body, &prompt->val.messages.ptr[at], error)) return false;
  }
  put(body, "]");
  return true;
}

plugin_string_t model_of(const types_sample_t *sample, const types_settings_t *settings) {
  return sample->adapter.is_some ? sample->adapter.val : settings->model;
}

bool output_tokens_of(const types_sample_t *sample, const types_settings_t *settings, uint32_t *tokens) {
  plugin_option_u32_t wanted = sample->output_tokens.is_some ? sample->output_tokens : settings->output_tokens;
  *tokens = wanted.val;
  return wanted.is_some;
}

// Server replies.

bool read_openai_models(slice body, exports_backend_list_served_model_t *models, types_error_t *error) {
  slice data = get(json(body), "data"), item;
  exports_backend_list_served_model_t found = {0};
  size_t capacity = 0;
  bool well = is_list(data);
  for (slice rest = data; well && next(&rest, &item);) {
    slice id = get(item, "id");
    well = is_string(id);
    if (!well) break;
    found.ptr = grown(found.ptr, found.len, &capacity, sizeof *found.ptr);
    exports_backend_served_model_t *model = &found.ptr[found.len++];
    memset(model, 0, sizeof *model);
    model->name = text_of(id);
    slice root = get(item, "root");
    model->root.is_some = is_string(root);
    if (model->root.is_some) model->root.val = text_of(root);
    set_count(&model->context_tokens, get(item, "max_model_len"));
  }
  if (well) {
    *models = found;
    return true;
  }
  exports_backend_list_served_model_free(&found);
  buffer message = {0};
  put(&message, "expected {\"data\": [{\"id\": …}, …]}, found ");
  put_excerpt(&message, body, 200);
  return fail(error, TYPES_ERROR_PROTOCOL, &message);
}

// Adds the sentence in an error value, such as {"error": {"message": "…"}}.
static void put_message_in(buffer *to, slice error) {
  static const char *const KEYS[] = {"error", "message", "msg", "detail"};
  for (bool deeper = true; deeper && is_object(error);) {
    deeper = false;
    for (size_t key = 0; key < 4 && !deeper; key++) {
      slice inner = get(error, KEYS[key]);
      deeper = inner.len && !is(inner, "null") && !is(inner, "\"\"");
      if (deeper) error = inner;
    }
  }
  buffer text = {0};
  if (!put_text(&text, error)) put_slice(&text, error);
  put_excerpt(to, slice_of_buffer(&text), 400);
  discard(&text);
}

static bool says(slice text, const char *const *words) {
  for (; *words; words++) {
    if (holds(text, slice_of(*words), true)) return true;
  }
  return false;
}

// The kind of error, from the status (0 if there is none) and from words that engines use.
exports_backend_reason_t reason_of(uint16_t status, slice text) {
  static const char *const MODEL[] = {"model", "adapter", "lora", NULL};
  static const char *const UNKNOWN[] = {"not found", "not exist", "unknown", "no such", NULL};
  static const char *const BUSY[] = {"overload",   "queue is full",   "too many requests", "rate limit",
                                     "capacity",   "try again later", NULL};
  static const char *const LONG[] = {"context length", "context window", "maximum context", "too long",
                                     "longer than",    NULL};
  bool busy = says(text, BUSY);
  if (status == 401 || status == 403) return EXPORTS_BACKEND_REASON_UNAUTHORISED;
  if (status == 429 || status == 529) return EXPORTS_BACKEND_REASON_OVERLOADED;
  if (busy && (status == 0 || status == 503)) return EXPORTS_BACKEND_REASON_OVERLOADED;
  if (status >= 502 && status <= 504) return EXPORTS_BACKEND_REASON_UNAVAILABLE;
  if (status == 413 || says(text, LONG)) return EXPORTS_BACKEND_REASON_TOO_LONG;
  bool could_be_model = status == 0 || status == 400 || status == 404 || status == 422;
  if (could_be_model && says(text, MODEL) && says(text, UNKNOWN)) return EXPORTS_BACKEND_REASON_UNKNOWN_MODEL;
  if (status >= 400 && status < 500) return EXPORTS_BACKEND_REASON_INVALID;
  return status >= 500 ? EXPORTS_BACKEND_REASON_INTERNAL : EXPORTS_BACKEND_REASON_OTHER;
}

void add_failure(events *events, slice error) {
  buffer message = {0};
  put_message_in(&message, error);
  exports_backend_refusal_t *refusal = &add(events, EXPORTS_BACKEND_MEANING_FAILURE)->val.failure;
  refusal->reason = reason_of(0, slice_of_buffer(&message));
  refusal->message = finished(&message);
}

void read_refusal(uint16_t status, slice body, exports_backend_refusal_t *refusal) {
  buffer message = {0};
  slice value = json(body);
  if (value.len) put_message_in(&message, value);
  else put_excerpt(&message, body, 400);
  refusal->reason = reason_of(status, slice_of_buffer(&message));
  if (message.len == 0) put(&message, "the server gave no reason");
  refusal->message = finished(&message);
}

// A backend that needs something before the first request has functions of these names.

__attribute__((weak)) bool exports_backend_method_codec_prepare(exports_backend_codec_t *codec,
                                                                exports_backend_request_t *request) {
  return false;
}

__attribute__((weak)) bool exports_backend_method_codec_read_prepared(exports_backend_codec_t *codec,
                                                                      plugin_list_u8_t *body,
                                                                      exports_backend_prepared_t *prepared,
                                                                      types_error_t *error) {
  *prepared = (exports_backend_prepared_t){.value = *body};
  return true;
}
