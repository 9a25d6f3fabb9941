// A backend for TensorRT-LLM behind Triton's generate extension: `/v2/models/MODEL/generate_stream`.

#include <stdlib.h>
#include <string.h>

#include "runner_backend.h"

struct exports_backend_codec_t {
  plugin_string_t version;
  plugin_string_t min_tokens_field;
  plugin_string_t seed_field;
};

static const option OPTIONS[] = {
    {"version", OPTION_STRING, offsetof(exports_backend_codec_t, version), "\"\"",
     "The model's version; empty leaves it to the server."},
    {"min-tokens-field", OPTION_STRING, offsetof(exports_backend_codec_t, min_tokens_field), "\"min_tokens\"",
     "The input that takes the least number of tokens: `min_length` for models of older releases."},
    {"seed-field", OPTION_STRING, offsetof(exports_backend_codec_t, seed_field), "\"seed\"",
     "The input that takes the seed: `random_seed` for models of older releases."},
};
#define OPTIONS_LEN (sizeof OPTIONS / sizeof *OPTIONS)

void exports_about_describe(exports_about_info_t *info) {
  info->name = owned_text("triton-trtllm");
  info->version = owned_text("0.1.0");
  info->summary = owned_text("TensorRT-LLM behind Triton's generate extension.");
  info->config_schema = schema(OPTIONS, OPTIONS_LEN);
}

static void close_codec(exports_backend_codec_t *codec) {
  plugin_string_free(&codec->version);
  plugin_string_free(&codec->min_tokens_field);
  plugin_string_free(&codec->seed_field);
  free(codec);
}

bool exports_backend_static_codec_open(types_json_t *config, exports_backend_own_codec_t *codec,
                                       types_error_t *error) {
  exports_backend_codec_t *opened = calloc(1, sizeof *opened);
  if (!opened) abort();
  if (!configured(config, OPTIONS, OPTIONS_LEN, opened, error)) {
    close_codec(opened);
    return false;
  }
  *codec = exports_backend_codec_new(opened);
  return true;
}

void exports_backend_codec_destructor(exports_backend_codec_t *codec) { close_codec(codec); }

void exports_backend_method_codec_default_url(exports_backend_codec_t *codec, plugin_string_t *url) {
  *url = owned_text("http://127.0.0.1:8000");
}

// Metrics are served on a port of their own, where the host sends nothing.
bool exports_backend_method_codec_control(exports_backend_codec_t *codec, exports_backend_control_t what,
                                          exports_backend_request_t *request) {
  buffer body = {0};
  switch (what) {
    case EXPORTS_BACKEND_CONTROL_HEALTH: get_request(request, "/v2/health/ready"); return true;
    case EXPORTS_BACKEND_CONTROL_LIST_MODELS:
      put_bool_field(&body, "ready", true);
      put(&body, "}");
      post_json(request, slice_of("/v2/repository/index"), &body);
      return true;
    default: return false;
  }
}

// Triton asks for no key. Operators who put a proxy before it usually have it ask for a bearer token.
void exports_backend_method_codec_credentials(exports_backend_codec_t *codec,
                                              exports_backend_credentials_t *credentials) {
  *credentials = (exports_backend_credentials_t){0};
  credentials->scheme.tag = EXPORTS_BACKEND_AUTHENTICATION_BEARER;
}

// `[{"name": "ensemble", "version": "1", "state": "READY"}, …]`, one entry a version.
bool exports_backend_method_codec_read_models(exports_backend_codec_t *codec, plugin_list_u8_t *body,
                                              exports_backend_list_served_model_t *models, types_error_t *error) {
  slice list = json(slice_of_bytes(*body)), item;
  exports_backend_list_served_model_t found = {0};
  size_t capacity = 0;
  bool well = is_list(list);
  for (slice rest = list; well && next(&rest, &item);) {
    slice name = get(item, "name");
    well = is_string(name);
    if (!well || is(get(item, "state"), "\"UNAVAILABLE\"")) continue;
    plugin_string_t text = text_of(name);
    bool known = false;
    for (size_t at = 0; at < found.len; at++) {
      known = known || same(slice_of_string(found.ptr[at].name), slice_of_string(text));
    }
    if (known) {
      plugin_string_free(&text);
      continue;
    }
    found.ptr = grown(found.ptr, found.len, &capacity, sizeof *found.ptr);
    found.ptr[found.len++] = (exports_backend_served_model_t){.name = text};
  }
  if (well) {
    *models = found;
  } else {
    buffer message = {0};
    put(&message, "expected [{\"name\": …}, …], found ");
    put_excerpt(&message, slice_of_bytes(*body), 200);
    fail(error, TYPES_ERROR_PROTOCOL, &message);
    exports_backend_list_served_model_free(&found);
  }
  plugin_list_u8_free(body);
  return well;
}

bool exports_backend_method_codec_read_metrics(exports_backend_codec_t *codec, plugin_list_u8_t *body,
                                               exports_backend_list_reading_t *readings, types_error_t *error) {
  plugin_list_u8_free(body);
  *readings = (exports_backend_list_reading_t){0};
  return true;
}

// A segment of a path, in which only RFC 3986's unreserved characters stand unescaped.
static void put_segment(buffer *path, slice text) {
  static const char HEX[] = "0123456789ABCDEF";
  for (size_t at = 0; at < text.len; at++) {
    uint8_t byte = text.ptr[at];
    bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9');
    if (letter || (byte && strchr("-._~", byte))) {
      put_slice(path, (slice){&text.ptr[at], 1});
    } else {
      char escaped[] = {'%', HEX[byte >> 4], HEX[byte & 15], 0};
      put(path, escaped);
    }
  }
}

static void put_path(buffer *path, const exports_backend_codec_t *codec, const types_settings_t *settings) {
  put(path, "/v2/models/");
  put_segment(path, slice_of_string(settings->model));
  if (codec->version.len) {
    put(path, "/versions/");
    put_segment(path, slice_of_string(codec->version));
  }
  put(path, settings->streaming ? "/generate_stream" : "/generate");
}

static void put_number_field(buffer *body, const char *key, plugin_option_f64_t value) {
  if (!value.is_some) return;
  put_key(body, key);
  put_number(body, value.val);
}

// A field whose name is the user's.
static void put_named_count(buffer *body, plugin_string_t name, uint64_t value) {
  put(body, ",");
  put_quoted(body, slice_of_string(name));
  put(body, ":");
  put_count(body, value);
}

// The adapter is known to the engine by a number.
static bool put_adapter(buffer *body, const types_sample_t *sample, types_error_t *error) {
  if (!sample->adapter.is_some) return true;
  uint32_t task;
  if (!count_of(slice_of_string(sample->adapter.val), &task)) {
    buffer message = {0};
    put(&message, "TensorRT-LLM knows adapters by number; expected one such as `7`, found `");
    put_slice(&message, slice_of_string(sample->adapter.val));
    put(&message, "`");
    return fail(error, TYPES_ERROR_INVALID_CONFIG, &message);
  }
  put_count_field(body, "lora_task_id", task);
  return true;
}

// The names come from the inputs of the model `ensemble` that TensorRT-LLM ships for Triton.
static bool put_body(buffer *body, const exports_backend_codec_t *codec, const types_sample_t *sample,
                     const types_settings_t *settings, types_error_t *error) {
  const types_sampling_t *sampling = &settings->sampling;
  uint32_t limit;
  if (sample->prompt.tag == TYPES_PROMPT_MESSAGES) {
    return fail_text(error, TYPES_ERROR_INVALID_CONFIG,
                     "the dataset gives conversations, which this engine has no template for; have it give text");
  }
  if (sample->prompt.tag == TYPES_PROMPT_TOKENS) {
    return fail_text(error, TYPES_ERROR_INVALID_CONFIG,
                     "the dataset gives token ids, which this engine makes itself; have it give text");
  }
  if (sample->prompt.tag != TYPES_PROMPT_TEXT) {
    return fail_text(error, TYPES_ERROR_INVALID_CONFIG,
                     "the dataset gives texts to embed or to rank, but this engine writes answers; have it give text");
  }
  if (!output_tokens_of(sample, settings, &limit)) {
    return fail_text(error, TYPES_ERROR_INVALID_CONFIG,
                     "this engine needs the length of every answer; set the output length");
  }
  put_string_field(body, "text_input", sample->prompt.val.text);
  put_count_field(body, "max_tokens", limit);
  // To ignore the end of a text is to have no end before the last token.
  if (settings->ignore_eos) put_named_count(body, codec->min_tokens_field, limit);
  else if (settings->min_output_tokens.is_some) {
    put_named_count(body, codec->min_tokens_field, settings->min_output_tokens.val);
  }
  put_number_field(body, "temperature", sampling->temperature);
  put_number_field(body, "top_p", sampling->top_p);
  if (sampling->top_k.is_some) put_count_field(body, "top_k", sampling->top_k.val);
  put_number_field(body, "repetition_penalty", sampling->repetition_penalty);
  put_number_field(body, "presence_penalty", sampling->presence_penalty);
  put_number_field(body, "frequency_penalty", sampling->frequency_penalty);
  if (sampling->seed.is_some) put_named_count(body, codec->seed_field, sampling->seed.val);
  for (size_t at = 0; at < sampling->stop.len; at++) {
    if (at == 0) put_key(body, "stop_words");
    put(body, at ? "," : "[");
    put_quoted(body, slice_of_string(sampling->stop.ptr[at]));
    if (at + 1 == sampling->stop.len) put(body, "]");
  }
  if (!put_adapter(body, sample, error)) return false;
  put_bool_field(body, "stream", settings->streaming);
  put_bool_field(body, "exclude_input_in_output", true);
  put_bool_field(body, "return_num_input_tokens", true);
  put_bool_field(body, "return_num_output_tokens", true);
  // Tells the last event of a stream, which nothing else does.
  put_bool_field(body, "return_perf_metrics", true);
  close_body(body, sample, settings);
  return true;
}

bool exports_backend_method_codec_encode(exports_backend_codec_t *codec, types_sample_t *sample,
                                         types_settings_t *settings, exports_backend_earlier_t *earlier,
                                         exports_backend_call_t *call, types_error_t *error) {
  if (earlier) exports_backend_earlier_free(earlier);
  buffer body = {0}, path = {0};
  bool well = put_body(&body, codec, sample, settings, error);
  if (well) {
    put_path(&path, codec, settings);
    post_json(single(call), slice_of_buffer(&path), &body);
  }
  discard(&path);
  discard(&body);
  types_sample_free(sample);
  types_settings_free(settings);
  return well;
}

void exports_backend_method_codec_framing(exports_backend_codec_t *codec, bool streaming,
                                          exports_backend_framing_t *framing) {
  framing->tag = streaming ? EXPORTS_BACKEND_FRAMING_EVENT_STREAM : EXPORTS_BACKEND_FRAMING_WHOLE;
}

// A reply's state begins empty, which reads as 0.
bool exports_backend_method_codec_begin(exports_backend_codec_t *codec, exports_backend_head_t *head,
                                        plugin_list_u8_t *state, types_error_t *error) {
  exports_backend_head_free(head);
  *state = (plugin_list_u8_t){0};
  return true;
}

// A reply's state: the tokens counted so far; each event tells only its own.
static uint32_t counted(plugin_list_u8_t state) {
  uint32_t tokens = 0;
  count_of(slice_of_bytes(state), &tokens);
  return tokens;
}

// Reads one event of a stream, or a whole reply.
static bool read_frame(slice frame, uint32_t *tokens, events *events, types_error_t *error) {
  slice reply = json(frame);
  if (!is_object(reply)) return no_object(error, frame);
  slice failure = get(reply, "error");
  if (failure.len) {
    add_failure(events, reply);
    return true;
  }
  uint32_t here;
  bool has_count = count_of(get(reply, "num_output_tokens"), &here);
  if (has_count && here <= UINT32_MAX - *tokens) *tokens += here;
  slice text = get(reply, "text_output");
  if (is_string(text)) {
    exports_backend_meaning_t *piece = add(events, EXPORTS_BACKEND_MEANING_TEXT);
    piece->val.text.text = text_of(text);
    piece->val.text.tokens = (plugin_option_u32_t){has_count, has_count ? here : 0};
  }
  // The engine notes when it made the last token once it has made it; until then it is 0.
  slice last = get(reply, "last_token_time_ns");
  if (last.len && !is(last, "0") && !is(last, "null")) {
    buffer total = {0};
    put_count(&total, *tokens);
    counts counted = {.input = get(reply, "num_input_tokens")};
    if (has_count) counted.output = slice_of_buffer(&total);
    add_usage(events, counted);
    discard(&total);
    add(events, EXPORTS_BACKEND_MEANING_END);
  }
  return true;
}

bool exports_backend_method_codec_decode(exports_backend_codec_t *codec, plugin_list_u8_t *state,
                                         exports_backend_frames_t *frames, exports_backend_decoded_t *result,
                                         types_error_t *error) {
  events events = {0};
  buffer new_state = {0};
  uint32_t tokens = counted(*state);
  bool well = true;
  for (; well && events.frame < frames->ends.len; events.frame++) {
    well = read_frame(frame_at(frames, events.frame), &tokens, &events, error);
  }
  put_count(&new_state, tokens);
  return decoded(well, &events, state, frames, &new_state, result);
}

void exports_backend_method_codec_explain(exports_backend_codec_t *codec, uint16_t status, plugin_list_u8_t *body,
                                          exports_backend_refusal_t *refusal) {
  slice text = slice_of_bytes(*body);
  read_refusal(status, text, refusal);
  if (holds(text, slice_of("exceeds maximum input length"), true)) refusal->reason = EXPORTS_BACKEND_REASON_TOO_LONG;
  if (holds(text, slice_of("exceeds maximum queue size"), true)) refusal->reason = EXPORTS_BACKEND_REASON_OVERLOADED;
  plugin_list_u8_free(body);
}
