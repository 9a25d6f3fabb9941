// {{name}}: a scorer that looks for the reference in the answer.

#include <stdlib.h>

#include "runner_plugin.h"

struct exports_scorer_judge_t {
  bool ignore_case;
  uint64_t exchanges, answered;
};

static const option OPTIONS[] = {
    {"ignore-case", OPTION_BOOLEAN, offsetof(exports_scorer_judge_t, ignore_case), "true",
     "Ignore the case of ASCII letters."},
};
#define OPTIONS_LEN (sizeof OPTIONS / sizeof *OPTIONS)

void exports_about_describe(exports_about_info_t *info) {
  info->name = owned_text("{{name}}");
  info->version = owned_text("0.1.0");
  info->summary = owned_text("Checks that the answer holds the sample's reference.");
  info->config_schema = schema(OPTIONS, OPTIONS_LEN);
}

bool exports_scorer_static_judge_open(types_json_t *config, exports_scorer_own_judge_t *judge, types_error_t *error) {
  exports_scorer_judge_t *opened = calloc(1, sizeof *opened);
  if (!opened) abort();
  if (!configured(config, OPTIONS, OPTIONS_LEN, opened, error)) {
    free(opened);
    return false;
  }
  *judge = exports_scorer_judge_new(opened);
  return true;
}

void exports_scorer_judge_destructor(exports_scorer_judge_t *judge) { free(judge); }

// A list of one score.
static void set_score(exports_scorer_list_score_t *scores, const char *name, double value) {
  scores->ptr = malloc(sizeof *scores->ptr);
  if (!scores->ptr) abort();
  scores->ptr[0] = (exports_scorer_score_t){owned_text(name), value};
  scores->len = 1;
}

// True if the answer contains the text of a JSON string.
static bool answer_holds(const exports_scorer_judge_t *judge, slice output, slice string) {
  buffer text = {0};
  put_text(&text, string);
  bool found = holds(output, slice_of_buffer(&text), judge->ignore_case);
  discard(&text);
  return found;
}

bool exports_scorer_method_judge_score(exports_scorer_judge_t *judge, exports_scorer_exchange_t *exchange,
                                       exports_scorer_list_score_t *scores, types_error_t *error) {
  slice output = slice_of_string(exchange->output);
  judge->exchanges++;
  judge->answered += trimmed(output).len != 0;
  slice reference = exchange->reference.is_some ? json(slice_of_string(exchange->reference.val)) : (slice){0};
  bool comparable = is_string(reference) || is_list(reference);
  bool found = is_string(reference) && answer_holds(judge, output, reference);
  slice item;
  for (slice rest = reference; next(&rest, &item);) {
    comparable = comparable && is_string(item);
    found = found || answer_holds(judge, output, item);
  }
  // Nothing to compare with: return no score rather than a wrong one.
  *scores = (exports_scorer_list_score_t){0};
  if (comparable) set_score(scores, "contains", found);
  exports_scorer_exchange_free(exchange);
  return true;
}

bool exports_scorer_method_judge_finish(exports_scorer_judge_t *judge, exports_scorer_list_score_t *scores,
                                        types_error_t *error) {
  *scores = (exports_scorer_list_score_t){0};
  if (judge->exchanges) set_score(scores, "answered", (double)judge->answered / (double)judge->exchanges);
  return true;
}
