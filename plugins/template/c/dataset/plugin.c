// {{name}}: a dataset of prompts, one a line of a text file.

#include <stdlib.h>

#include "runner_dataset.h"

struct exports_dataset_generator_t {
  uint32_t output_tokens;
  lines prompts;
  samples ahead;
};

static const option OPTIONS[] = {
    {"output-tokens", OPTION_COUNT, offsetof(exports_dataset_generator_t, output_tokens), "128",
     "Output tokens to request."},
};
#define OPTIONS_LEN (sizeof OPTIONS / sizeof *OPTIONS)

void exports_about_describe(exports_about_info_t *info) {
  info->name = owned_text("{{name}}");
  info->version = owned_text("0.1.0");
  info->summary = owned_text("Prompts, one a line of the file that the scenario calls `prompts`.");
  info->config_schema = schema(OPTIONS, OPTIONS_LEN);
}

bool exports_dataset_static_generator_open(types_json_t *config, uint64_t seed, exports_dataset_amount_t *amount,
                                           exports_dataset_own_generator_t *generator, types_error_t *error) {
  exports_dataset_generator_t *opened = calloc(1, sizeof *opened);
  if (!opened) abort();
  if (!configured(config, OPTIONS, OPTIONS_LEN, opened, error) || !open_lines(&opened->prompts, "prompts", error)) {
    free(opened);
    return false;
  }
  *generator = exports_dataset_generator_new(opened);
  return true;
}

void exports_dataset_generator_destructor(exports_dataset_generator_t *generator) {
  close_lines(&generator->prompts);
  exports_dataset_list_sample_free(&generator->ahead.list);
  free(generator);
}

// `prompt-000001`
static plugin_string_t name_of(uint64_t number) {
  buffer digits = {0}, name = {0};
  put_count(&digits, number);
  put(&name, "prompt-");
  for (size_t length = digits.len; length < 6; length++) put(&name, "0");
  put_slice(&name, slice_of_buffer(&digits));
  discard(&digits);
  return finished(&name);
}

bool exports_dataset_method_generator_next(exports_dataset_generator_t *generator, uint32_t limit,
                                           exports_dataset_list_sample_t *result, types_error_t *error) {
  samples found = {0};
  slice line;
  int read = 1;
  if (limit) take_ahead(&generator->ahead, &found);
  while (found.list.len < limit && (read = next_line(&generator->prompts, &line, error)) > 0) {
    slice prompt = trimmed(line);
    if (prompt.len == 0) continue;
    types_sample_t *sample = add_sample(&found, name_of(generator->prompts.number), prompt);
    sample->output_tokens = (plugin_option_u32_t){true, generator->output_tokens};
  }
  if (read < 0) exports_dataset_list_sample_free(&found.list);
  else *result = found.list;
  return read >= 0;
}

// The first samples that stand alone, so `next` never gives them again.
bool exports_dataset_method_generator_spare(exports_dataset_generator_t *generator, uint32_t limit,
                                            exports_dataset_list_sample_t *result, types_error_t *error) {
  return first_alone(generator, exports_dataset_method_generator_next, &generator->ahead, limit, result, error);
}

// Nothing is left out or changed.
void exports_dataset_method_generator_remarks(exports_dataset_generator_t *generator,
                                              exports_dataset_list_remark_t *remarks) {
  *remarks = (exports_dataset_list_remark_t){0};
}
