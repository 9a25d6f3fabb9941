// A backend of gRPC, for the messages of `t.proto`.

#include <stdlib.h>

#include "runner_grpc.h"

struct exports_backend_codec_t {
  plugin_string_t path;
};

static const option OPTIONS[] = {
    {"path", OPTION_STRING, offsetof(exports_backend_codec_t, path), "\"/v1/chat/completions\"",
     "The path of the engine's route, below the target's URL."},
};
#define OPTIONS_LEN (sizeof OPTIONS / sizeof *OPTIONS)

void exports_about_describe(exports_about_info_t *info) {
  info->name = owned_text("mine");
  info->version = owned_text("0.1.0");
  info->summary = owned_text("Calls an engine by gRPC.");
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
  if (earlier) exports_backend_earlier_free(earlier);
  buffer ask = {0}, inner = {0};
  put_pb_float(&inner, 1, 0.5f);
  put_pb_number(&inner, 2, true);
  put_pb_number(&inner, 3, (uint64_t)-1);
  put_pb_bytes(&ask, 1, slice_of_string(sample->prompt.val.text));
  put_pb_number(&ask, 2, 300);
  put_pb_double(&ask, 3, 0.25);
  put_pb_zigzag(&ask, 4, -3);
  put_pb_bytes(&ask, 5, slice_of_buffer(&inner));
  put_pb_bytes(&ask, 6, slice_of("a"));
  put_pb_bytes(&ask, 6, slice_of("b"));
  discard(&inner);
  call_grpc(single(call), slice_of("/t.Engine/Generate"), &ask);
  types_sample_free(sample);
  types_settings_free(settings);
  return true;
}

void exports_backend_method_codec_framing(exports_backend_codec_t *codec, bool streaming,
                                          exports_backend_framing_t *framing) {
  framing->tag = EXPORTS_BACKEND_FRAMING_GRPC;
}

// Nothing of a reply's beginning matters to this API.
bool exports_backend_method_codec_begin(exports_backend_codec_t *codec, exports_backend_head_t *head,
                                        plugin_list_u8_t *state, types_error_t *error) {
  exports_backend_head_free(head);
  *state = (plugin_list_u8_t){0};
  return true;
}

static void put_signed(buffer *to, int64_t number) {
  put(to, number < 0 ? " -" : " ");
  put_count(to, number < 0 ? -(uint64_t)number : (uint64_t)number);
}

static bool read_frame(slice frame, slice name, events *events, types_error_t *error) {
  if (ended_grpc(events, frame, name)) return true;
  slice text = {0}, more = {0};
  int64_t delta = 0, left = 0;
  uint64_t tokens = 0;
  double score = 0, half = 0;
  pb_field field;
  for (slice rest = frame; rest.len;) {
    if (!next_pb_field(&rest, &field, error)) return false;
    switch (field.number) {
      case 1: text = field.bytes; break;
      case 2: tokens = field.value; break;
      case 3: delta = pb_zigzag(field.value); break;
      case 4: score = pb_double(field.bytes); break;
      case 5: half = pb_float(field.bytes); break;
      case 6: left = (int64_t)field.value; break;
      case 300: more = field.bytes; break;
    }
  }
  buffer said = {0};
  put_slice(&said, text);
  put_signed(&said, delta);
  put(&said, " ");
  put_number(&said, score);
  put(&said, " ");
  put_number(&said, half);
  put_signed(&said, left);
  put_signed(&said, (int64_t)more.len);
  exports_backend_output_t *piece = add_plain_piece(events, EXPORTS_BACKEND_MEANING_TEXT, slice_of_buffer(&said));
  piece->tokens.is_some = true;
  piece->tokens.val = (uint32_t)tokens;
  discard(&said);
  return true;
}

bool exports_backend_method_codec_decode(exports_backend_codec_t *codec, plugin_list_u8_t *state,
                                         exports_backend_frames_t *frames, exports_backend_decoded_t *result,
                                         types_error_t *error) {
  events events = {0};
  buffer new_state = {0};
  bool well = true;
  for (; well && events.frame < frames->ends.len; events.frame++) {
    well = read_frame(frame_at(frames, events.frame), name_of(frames, events.frame), &events, error);
  }
  return decoded(well, &events, state, frames, &new_state, result);
}

void exports_backend_method_codec_explain(exports_backend_codec_t *codec, uint16_t status, plugin_list_u8_t *body,
                                          exports_backend_refusal_t *refusal) {
  read_refusal(status, slice_of_bytes(*body), refusal);
  plugin_list_u8_free(body);
}
