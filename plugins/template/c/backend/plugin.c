// {{name}}: a backend for engines that answer conversations with an event stream, as the OpenAI API does.

#include <stdlib.h>

#include "runner_backend.h"

struct exports_backend_codec_t {
  plugin_string_t path;
};

static const option OPTIONS[] = {
    {"path", OPTION_STRING, offsetof(exports_backend_codec_t, path), "\"/v1/chat/completions\"",
     "The path of the engine's route, below the target's URL."},
};
#define OPTIONS_LEN (sizeof OPTIONS / sizeof *OPTIONS)

void exports_about_describe(exports_about_info_t *info) {
  info->name = owned_text("{{name}}");
  info->version = owned_text("0.1.0");
  info->summary = owned_text("Conversations as an event stream, in the OpenAI API's form.");
  info->config_schema = schema(OPTIONS, OPTIONS_LEN);
}

bool exports_backend_static_codec_open(types_json_t *config, exports_backend_own_codec_t *codec,
                                       types_error_t *error) {
  exports_backend_codec_t *opened = calloc(1, sizeof *opened);
  if (!opened) abort();
  if (!configured(config, OPTIONS, OPTIONS_LEN, opened, error)) {
    free(opened);
    return false;
  }
  *codec = exports_backend_codec_new(opened);
  return true;
}

void exports_backend_codec_destructor(exports_backend_codec_t *codec) {
  plugin_string_free(&codec->path);
  free(codec);
}

void exports_backend_method_codec_default_url(exports_backend_codec_t *codec, plugin_string_t *url) {
  *url = owned_text("http://127.0.0.1:8000");
}

bool exports_backend_method_codec_control(exports_backend_codec_t *codec, exports_backend_control_t what,
                                          exports_backend_request_t *request) {
  if (what == EXPORTS_BACKEND_CONTROL_HEALTH) get_request(request, "/health");
  else if (what == EXPORTS_BACKEND_CONTROL_LIST_MODELS) get_request(request, "/v1/models");
  else return false;
  return true;
}

// The host adds the key, which a plugin never sees.
void exports_backend_method_codec_credentials(exports_backend_codec_t *codec,
                                              exports_backend_credentials_t *credentials) {
  *credentials = (exports_backend_credentials_t){0};
  credentials->scheme.tag = EXPORTS_BACKEND_AUTHENTICATION_BEARER;
}

bool exports_backend_method_codec_read_models(exports_backend_codec_t *codec, plugin_list_u8_t *body,
                                              exports_backend_list_served_model_t *models, types_error_t *error) {
  bool well = read_openai_models(slice_of_bytes(*body), models, error);
  plugin_list_u8_free(body);
  return well;
}

bool exports_backend_method_codec_read_metrics(exports_backend_codec_t *codec, plugin_list_u8_t *body,
                                               exports_backend_list_reading_t *readings, types_error_t *error) {
  plugin_list_u8_free(body);
  *readings = (exports_backend_list_reading_t){0};
  return true;
}

bool exports_backend_method_codec_encode(exports_backend_codec_t *codec, types_sample_t *sample,
                                         types_settings_t *settings, exports_backend_earlier_t *earlier,
                                         exports_backend_call_t *call, types_error_t *error) {
  // This API has no memory: each request holds the whole conversation.
  if (earlier) exports_backend_earlier_free(earlier);
  buffer body = {0};
  put_string_field(&body, "model", model_of(sample, settings));
  bool well = put_messages(&body, &sample->prompt, error);
  if (well) {
    put_sampling(&body, &settings->sampling);
    uint32_t limit;
    if (output_tokens_of(sample, settings, &limit)) put_count_field(&body, "max_completion_tokens", limit);
    if (settings->min_output_tokens.is_some) put_count_field(&body, "min_tokens", settings->min_output_tokens.val);
    if (settings->ignore_eos) put_bool_field(&body, "ignore_eos", true);
    put_bool_field(&body, "stream", settings->streaming);
    if (settings->streaming) {
      put_key(&body, "stream_options");
      put(&body, "{\"include_usage\":true}");
    }
    close_body(&body, sample, settings);
    post_json(single(call), slice_of_string(codec->path), &body);
  }
  discard(&body);
  types_sample_free(sample);
  types_settings_free(settings);
  return well;
}

void exports_backend_method_codec_framing(exports_backend_codec_t *codec, bool streaming,
                                          exports_backend_framing_t *framing) {
  framing->tag =
      streaming ? EXPORTS_BACKEND_FRAMING_EVENT_STREAM : EXPORTS_BACKEND_FRAMING_WHOLE;
}

// Nothing of a reply's beginning matters to this API.
bool exports_backend_method_codec_begin(exports_backend_codec_t *codec, exports_backend_head_t *head,
                                        plugin_list_u8_t *state, types_error_t *error) {
  exports_backend_head_free(head);
  *state = (plugin_list_u8_t){0};
  return true;
}

// A choice of a chunk, or of a whole reply.
static void read_choice(slice choice, events *events) {
  slice piece = get(choice, "delta");
  if (piece.len == 0) piece = get(choice, "message");
  slice thought = get(piece, "reasoning_content");
  if (!is_string(thought)) thought = get(piece, "reasoning");
  slice text = get(piece, "content");
  slice finish = get(choice, "finish_reason");
  // Strings longer than their quotes.
  bool thinks = is_string(thought) && thought.len > 2;
  bool speaks = is_string(text) && text.len > 2;
  bool ends = is_string(finish) && finish.len > 2;
  if (thinks) add_piece(events, EXPORTS_BACKEND_MEANING_REASONING, thought);
  if (speaks) add_piece(events, EXPORTS_BACKEND_MEANING_TEXT, text);
  if (!thinks && !speaks && !ends) add(events, EXPORTS_BACKEND_MEANING_OPENED);
  if (ends) add_finish(events, finish);
}

static bool read_frame(slice frame, events *events, types_error_t *error) {
  if (is(frame, "[DONE]")) {
    add(events, EXPORTS_BACKEND_MEANING_END);
    return true;
  }
  slice reply = json(frame);
  if (!is_object(reply)) return no_object(error, frame);
  slice failure = get(reply, "error");
  if (failure.len && !is(failure, "null")) {
    add_failure(events, failure);
    return true;
  }
  slice choices = get(reply, "choices"), choice;
  if (next(&choices, &choice) && is_object(choice)) read_choice(choice, events);
  slice usage = get(reply, "usage");
  if (is_object(usage)) {
    slice of_prompt = get(usage, "prompt_tokens_details"), of_answer = get(usage, "completion_tokens_details");
    add_usage(events, (counts){
                          .input = get(usage, "prompt_tokens"),
                          .cached_input = get(of_prompt, "cached_tokens"),
                          .output = get(usage, "completion_tokens"),
                          .reasoning = get(of_answer, "reasoning_tokens"),
                          .accepted_draft = get(of_answer, "accepted_prediction_tokens"),
                          .input_audio = get(of_prompt, "audio_tokens"),
                          .output_audio = get(of_answer, "audio_tokens"),
                      });
  }
  return true;
}

bool exports_backend_method_codec_decode(exports_backend_codec_t *codec, plugin_list_u8_t *state,
                                         exports_backend_frames_t *frames, exports_backend_decoded_t *result,
                                         types_error_t *error) {
  events events = {0};
  buffer new_state = {0};
  bool well = true;
  for (; well && events.frame < frames->ends.len; events.frame++) {
    well = read_frame(frame_at(frames, events.frame), &events, error);
  }
  return decoded(well, &events, state, frames, &new_state, result);
}

void exports_backend_method_codec_explain(exports_backend_codec_t *codec, uint16_t status, plugin_list_u8_t *body,
                                          exports_backend_refusal_t *refusal) {
  read_refusal(status, slice_of_bytes(*body), refusal);
  plugin_list_u8_free(body);
}
