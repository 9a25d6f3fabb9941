// The library of a dataset, in addition to `runner_plugin.h`: samples, and reading the files that the scenario names.

#ifndef RUNNER_DATASET_H
#define RUNNER_DATASET_H

#include "runner_plugin.h"

// A file that is read line by line, in pieces, so it may be larger than the plugin's memory; a line may not.
typedef struct {
  files_own_file_t file;
  uint64_t size, offset;
  buffer kept;
  size_t taken;
  // The number of the line that was read last, from 1.
  uint64_t number;
} lines;

// Opens the file that the scenario calls `name`; false, and an error, if it names none.
bool open_lines(lines *lines, const char *name, types_error_t *error);
// Reads the next line, without its end: 1 if there is one, 0 at the end of the file, -1 and an error if it cannot
// be read. The line is valid until the next call.
int next_line(lines *lines, slice *line, types_error_t *error);
void close_lines(lines *lines);

// Samples; begins as `{0}`.
typedef struct {
  exports_dataset_list_sample_t list;
  size_t capacity;
} samples;

// Adds a sample with only an id and a prompt, which is a text.
types_sample_t *add_sample(samples *samples, plugin_string_t id, slice prompt);

// A function that gives at most `limit` further samples, as `exports_dataset_method_generator_next` does.
typedef bool further(exports_dataset_generator_t *generator, uint32_t limit, exports_dataset_list_sample_t *result,
                     types_error_t *error);
// Samples that are not measured: the first ones that depend on no other. The rest of a session that begins with one of
// them is left out. The sample after them goes to `ahead`, which begins as `{0}`; `next` gives it first.
bool first_alone(exports_dataset_generator_t *generator, further *next, samples *ahead, uint32_t limit,
                 exports_dataset_list_sample_t *result, types_error_t *error);
// Gives the samples that were drawn ahead. Call it at the beginning of `next`, if its limit is not 0.
void take_ahead(samples *ahead, samples *found);

#endif
