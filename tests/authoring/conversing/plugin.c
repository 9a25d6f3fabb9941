// A backend whose exchanges have several requests, or messages over a WebSocket.

#include <stdlib.h>
#include <string.h>

#include "runner_backend.h"

struct exports_backend_codec_t {
  plugin_string_t scheme;
};

static const option OPTIONS[] = {
    {"scheme", OPTION_STRING, offsetof(exports_backend_codec_t, scheme), "\"hmac\"", "`hmac` or `token`."},
};
#define OPTIONS_LEN (sizeof OPTIONS / sizeof *OPTIONS)

void exports_about_describe(exports_about_info_t *info) {
  info->name = owned_text("mine");
  info->version = owned_text("0.1.0");
  info->summary = owned_text("Asks in several steps.");
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
  plugin_string_free(&codec->scheme);
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

typedef struct {
  const char *name, *value;
} field;

static plugin_list_tuple2_string_string_t headers(size_t len, const field *fields) {
  plugin_list_tuple2_string_string_t list = {malloc(len * sizeof *list.ptr), len};
  if (!list.ptr) abort();
  for (size_t i = 0; i < len; i++)
    list.ptr[i] = (plugin_tuple2_string_string_t){owned_text(fields[i].name), owned_text(fields[i].value)};
  return list;
}

// The host adds the key, which a plugin never sees.
void exports_backend_method_codec_credentials(exports_backend_codec_t *codec,
                                              exports_backend_credentials_t *credentials) {
  *credentials = (exports_backend_credentials_t){.cookies = true};
  if (is(slice_of_string(codec->scheme), "token")) {
    credentials->scheme.tag = EXPORTS_BACKEND_AUTHENTICATION_TOKEN;
    exports_backend_token_t *token = &credentials->scheme.val.token;
    buffer body = {0};
    put(&body, "{\"id\": \"{id}\", \"secret\": \"{secret}\"}");
    post_json(&token->login, slice_of("/v1/login"), &body);
    token->token = owned_text("/access_token");
    token->lifetime.is_some = true;
    token->lifetime.val = owned_text("/expires_in");
    token->headers = headers(1, (field[]){{"authorization", "Token {token}"}});
  } else {
    credentials->scheme.tag = EXPORTS_BACKEND_AUTHENTICATION_HMAC;
    exports_backend_hmac_t *hmac = &credentials->scheme.val.hmac;
    hmac->digest = EXPORTS_BACKEND_DIGEST_SHA256;
    hmac->message = owned_text("{time}{body}");
    hmac->encoding = EXPORTS_BACKEND_ENCODING_HEX;
    hmac->headers = headers(2, (field[]){{"x-time", "{time}"}, {"x-sign", "{signature}"}});
  }
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

bool exports_backend_method_codec_prepare(exports_backend_codec_t *codec, exports_backend_request_t *request) {
  buffer body = {0};
  put(&body, "{}");
  post_json(request, slice_of("/v1/workspaces"), &body);
  return true;
}

bool exports_backend_method_codec_read_prepared(exports_backend_codec_t *codec, plugin_list_u8_t *body,
                                                exports_backend_prepared_t *prepared, types_error_t *error) {
  if (body->len && body->ptr[body->len - 1] == '\n') body->len--;
  *prepared = (exports_backend_prepared_t){.value = *body, .lifetime = {.is_some = true, .val = 60000000000}};
  return true;
}

bool exports_backend_method_codec_encode(exports_backend_codec_t *codec, types_sample_t *sample,
                                         types_settings_t *settings, exports_backend_earlier_t *earlier,
                                         exports_backend_call_t *call, types_error_t *error) {
  if (earlier) exports_backend_earlier_free(earlier);
  if (is(slice_of_string(sample->prompt.val.text), "socket")) {
    exports_backend_socket_t *socket = web_socket(call, "/v1/talk");
    say(socket, slice_of("hello"))->hold = true;
    say(socket, slice_of("bye"))->delay = 500000000;
  } else {
    buffer body = {0}, path = {0};
    put(&body, "{}");
    put(&path, "/v1/");
    put_slice(&path, slice_of_bytes(settings->prepared));
    put(&path, settings->prepared.len ? "/jobs" : "jobs");
    post_json(&first_step(call, EXPORTS_BACKEND_FRAMING_WHOLE)->request, slice_of_buffer(&path), &body);
    discard(&path);
  }
  types_sample_free(sample);
  types_settings_free(settings);
  return true;
}

void exports_backend_method_codec_framing(exports_backend_codec_t *codec, bool streaming,
                                          exports_backend_framing_t *framing) {
  framing->tag =
      streaming ? EXPORTS_BACKEND_FRAMING_EVENT_STREAM : EXPORTS_BACKEND_FRAMING_WHOLE;
}

// The state of a reply is the context that came with its request.
bool exports_backend_method_codec_begin(exports_backend_codec_t *codec, exports_backend_head_t *head,
                                        plugin_list_u8_t *state, types_error_t *error) {
  buffer context = {0};
  put_slice(&context, slice_of_bytes(head->context));
  *state = finished_bytes(&context);
  exports_backend_head_free(head);
  return true;
}

static void hear(slice said, events *events) {
  if (is(said, "ready")) {
    add(events, EXPORTS_BACKEND_MEANING_PROCEED);
  } else if (is(said, "more?")) {
    add_send(events, slice_of("more"));
  } else if (is(said, "sound")) {
    add_audio(events, 20);
  } else if (is(said, "done")) {
    add_plain_piece(events, EXPORTS_BACKEND_MEANING_TEXT, slice_of("heard"));
    add(events, EXPORTS_BACKEND_MEANING_END);
  }
}

static void read_frame(slice frame, slice name, slice context, events *events) {
  if (is(name, "text")) {
    hear(frame, events);
  } else if (is(frame, "wait")) {
    add_count(events, "looks", slice_of("1"));
    add_count(events, "looks", slice_of("null"));
    delete_request(add_clean_up(events), "/v1/jobs/1");
    exports_backend_step_t *step = add_next(events, EXPORTS_BACKEND_FRAMING_WHOLE);
    get_request(&step->request, "/v1/jobs/1");
    step->delay = 500000000;
    step->accepted.len = 1;
    step->accepted.ptr = malloc(sizeof *step->accepted.ptr);
    if (!step->accepted.ptr) abort();
    step->accepted.ptr[0] = 404;
    buffer job = {0};
    put(&job, "job 1");
    step->context = finished_bytes(&job);
  } else if (is(frame, "done")) {
    buffer answer = {0};
    put(&answer, "answer of ");
    put_slice(&answer, context);
    add_plain_piece(events, EXPORTS_BACKEND_MEANING_TEXT, slice_of_buffer(&answer));
    discard(&answer);
    add(events, EXPORTS_BACKEND_MEANING_END);
  }
}

bool exports_backend_method_codec_decode(exports_backend_codec_t *codec, plugin_list_u8_t *state,
                                         exports_backend_frames_t *frames, exports_backend_decoded_t *result,
                                         types_error_t *error) {
  events events = {0};
  buffer new_state = {0};
  slice context = slice_of_bytes(*state);
  for (; events.frame < frames->ends.len; events.frame++) {
    read_frame(frame_at(frames, events.frame), name_of(frames, events.frame), context, &events);
  }
  put_slice(&new_state, context);
  return decoded(true, &events, state, frames, &new_state, result);
}

void exports_backend_method_codec_explain(exports_backend_codec_t *codec, uint16_t status, plugin_list_u8_t *body,
                                          exports_backend_refusal_t *refusal) {
  read_refusal(status, slice_of_bytes(*body), refusal);
  plugin_list_u8_free(body);
}
