// Sessions of three turns.

#include <stdlib.h>

#include "runner_dataset.h"

struct exports_dataset_generator_t {
  uint32_t number;
  samples ahead;
};

void exports_about_describe(exports_about_info_t *info) {
  info->name = owned_text("mine");
  info->version = owned_text("0.1.0");
  info->summary = owned_text("Sessions of three turns.");
  info->config_schema = schema(NULL, 0);
}

bool exports_dataset_static_generator_open(types_json_t *config, uint64_t seed, exports_dataset_amount_t *amount,
                                           exports_dataset_own_generator_t *generator, types_error_t *error) {
  exports_dataset_generator_t *opened = calloc(1, sizeof *opened);
  if (!opened) abort();
  if (!configured(config, NULL, 0, opened, error)) {
    free(opened);
    return false;
  }
  *generator = exports_dataset_generator_new(opened);
  return true;
}

void exports_dataset_generator_destructor(exports_dataset_generator_t *generator) {
  exports_dataset_list_sample_free(&generator->ahead.list);
  free(generator);
}

static plugin_string_t number_text(const char *before, uint32_t number, const char *after) {
  buffer text = {0};
  put(&text, before);
  put_count(&text, number);
  put(&text, after);
  return finished(&text);
}

bool exports_dataset_method_generator_next(exports_dataset_generator_t *generator, uint32_t limit,
                                           exports_dataset_list_sample_t *result, types_error_t *error) {
  samples found = {0};
  if (limit) take_ahead(&generator->ahead, &found);
  while (found.list.len < limit) {
    uint32_t number = ++generator->number;
    bool root = number % 3 == 1;
    plugin_string_t text = number_text("Turn ", number, ".");
    types_sample_t *sample = add_sample(&found, number_text("", number, ""), slice_of_string(text));
    plugin_string_free(&text);
    // As the others have it: the text of a root, the number of another turn.
    sample->reference.is_some = true;
    sample->reference.val = number_text(root ? "\"" : "", number, root ? "\"" : "");
    if (root) continue;
    types_message_t *message = calloc(1, sizeof *message);
    types_dependency_t *after = calloc(1, sizeof *after);
    if (!message || !after) abort();
    message->role = TYPES_ROLE_USER;
    message->parts.len = 1;
    message->parts.ptr = calloc(1, sizeof *message->parts.ptr);
    if (!message->parts.ptr) abort();
    message->parts.ptr[0].tag = TYPES_PART_TEXT;
    message->parts.ptr[0].val.text = sample->prompt.val.text;
    sample->prompt.tag = TYPES_PROMPT_CONTINUATION;
    sample->prompt.val.continuation.parent = number_text("", number - 1, "");
    sample->prompt.val.continuation.messages.ptr = message;
    sample->prompt.val.continuation.messages.len = 1;
    after->sample = number_text("", number - 1, "");
    after->point = TYPES_POINT_END;
    after->delay = 1000;
    sample->after.ptr = after;
    sample->after.len = 1;
  }
  *result = found.list;
  return true;
}

bool exports_dataset_method_generator_spare(exports_dataset_generator_t *generator, uint32_t limit,
                                            exports_dataset_list_sample_t *result, types_error_t *error) {
  return first_alone(generator, exports_dataset_method_generator_next, &generator->ahead, limit, result, error);
}

void exports_dataset_method_generator_remarks(exports_dataset_generator_t *generator,
                                              exports_dataset_list_remark_t *remarks) {
  *remarks = (exports_dataset_list_remark_t){0};
}
