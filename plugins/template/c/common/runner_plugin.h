// Support for every kind of plugin: text, JSON, configuration, errors and log lines.
//
// This file is yours: it came with the project, and you may change it. There is a C library, but none of its input
// and output (`printf` and even `snprintf` would import files, which no plugin has): write text with the functions
// below. A function of the contract owns its arguments, and frees them; its results belong to the host, so they are
// memory of `malloc`, as `owned` and the like give it.

#ifndef RUNNER_PLUGIN_H
#define RUNNER_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plugin.h"

// A borrowed piece of text.
typedef struct {
  const uint8_t *ptr;
  size_t len;
} slice;

slice slice_of(const char *text);
slice slice_of_string(plugin_string_t text);
slice slice_of_bytes(plugin_list_u8_t bytes);
bool same(slice a, slice b);
bool is(slice text, const char *expected);
// True if a text contains another; with `ignore_case`, the case of ASCII letters does not matter.
bool holds(slice text, slice part, bool ignore_case);
// A text without the white space around it.
slice trimmed(slice text);

// A copy for the host, always valid text: bytes that are not UTF-8 are replaced.
plugin_string_t owned(slice text);
plugin_string_t owned_text(const char *text);

// A text under construction; begins as `{0}`.
typedef struct {
  uint8_t *ptr;
  size_t len, capacity;
} buffer;

void put(buffer *to, const char *text);
void put_slice(buffer *to, slice text);
void put_count(buffer *to, uint64_t number);
// A number as JSON, with as many digits as are needed to tell it from others, at most 15.
void put_number(buffer *to, double number);
// A text as a JSON string.
void put_quoted(buffer *to, slice text);
// The beginning of a text on one line, for messages.
void put_excerpt(buffer *to, slice text, size_t longest);
void put_base64(buffer *to, slice bytes);
slice slice_of_buffer(const buffer *text);
// The finished text for the host; the buffer is empty afterwards.
plugin_string_t finished(buffer *text);
plugin_list_u8_t finished_bytes(buffer *text);
void discard(buffer *text);

// JSON. A value is the slice of text that it stands in; a missing value is an empty slice, and so is any value
// inside it, so `get(get(reply, "usage"), "tokens")` needs no checks between.

// The value in a text; an empty slice if there is none, or if it is nested deeper than 64 levels. The other functions
// take slices of a value that this one has checked, and never read beyond it.
slice json(slice text);
// The value under a key of an object.
slice get(slice object, const char *key);
// Iterates over a list: `for (slice rest = list, item; next(&rest, &item);)`.
bool next(slice *rest, slice *item);
// Iterates over an object in the same way; the key is a JSON string.
bool next_field(slice *rest, slice *key, slice *value);
bool is_object(slice value);
bool is_list(slice value);
bool is_string(slice value);
// True if a value is the JSON string of this text, which is written without quotes: `is_text(get(line, "kind"),
// "token")`.
bool is_text(slice value, const char *expected);
// Adds the text of a JSON string to a buffer; adds nothing and returns false if the value is not a string.
bool put_text(buffer *to, slice value);
// The text of a JSON string for the host; an empty one if the value is not a string.
plugin_string_t text_of(slice value);
// A whole number from 0 to 2^32 - 1.
bool count_of(slice value, uint32_t *count);
bool number_of(slice value, double *number);
// Merges one object over another; if both have an object under a key, the two are merged.
void put_merged(buffer *to, slice under, slice over);

// Configuration: the keys that the user may set, in a table that also gives the JSON Schema.
typedef enum {
  // `plugin_string_t`
  OPTION_STRING,
  // `uint32_t`
  OPTION_COUNT,
  // `double`
  OPTION_NUMBER,
  // `bool`
  OPTION_BOOLEAN,
} option_type;

typedef struct {
  const char *key;
  option_type type;
  // The place of the value in the structure: `offsetof(…)`.
  size_t offset;
  // The default value, as JSON.
  const char *fallback;
  // The description.
  const char *description;
} option;

plugin_string_t schema(const option *options, size_t count);
// Fills a structure with the user's configuration; false, and an error that reports all mistakes, if it is wrong.
// The configuration is freed.
bool configured(plugin_string_t *config, const option *options, size_t count, void *structure, types_error_t *error);

// Errors for the host: `TYPES_ERROR_INVALID_CONFIG` and so on, and the message. Returns false, to be returned.
bool fail(types_error_t *error, uint8_t tag, buffer *sentence);
bool fail_text(types_error_t *error, uint8_t tag, const char *sentence);

// Writes a line to the run's log: `LOG_LEVEL_INFO` and so on.
void note(log_level_t level, const char *line);

// Memory of `malloc` that is larger by one element if it was full. `capacity` begins as 0.
void *grown(void *list, size_t length, size_t *capacity, size_t element);

#endif
