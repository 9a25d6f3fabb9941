#include "runner_dataset.h"

#include <stdlib.h>
#include <string.h>

// Bytes to ask the host for at once.
#define PIECE (1 << 20)

bool open_lines(lines *lines, const char *name, types_error_t *error) {
  memset(lines, 0, sizeof *lines);
  plugin_string_t wanted = owned_text(name);
  bool there = files_static_file_open(&wanted, &lines->file);
  plugin_string_free(&wanted);
  if (there) {
    lines->size = files_method_file_size(files_borrow_file(lines->file));
    return true;
  }
  buffer message = {0};
  put(&message, "this dataset reads a file; name it in the scenario: [dataset.files] ");
  put(&message, name);
  put(&message, " = \"PATH\"");
  return fail(error, TYPES_ERROR_INVALID_CONFIG, &message);
}

// Adds a piece of the file to the kept bytes; lines that were handed out are let go.
static bool read_piece(lines *lines, types_error_t *error) {
  if (lines->taken) {
    memmove(lines->kept.ptr, lines->kept.ptr + lines->taken, lines->kept.len - lines->taken);
    lines->kept.len -= lines->taken;
    lines->taken = 0;
  }
  plugin_list_u8_t piece;
  plugin_string_t failure;
  if (!files_method_file_read(files_borrow_file(lines->file), lines->offset, PIECE, &piece, &failure)) {
    buffer message = {0};
    put_slice(&message, slice_of_string(failure));
    plugin_string_free(&failure);
    return fail(error, TYPES_ERROR_INVALID_INPUT, &message);
  }
  put_slice(&lines->kept, slice_of_bytes(piece));
  lines->offset = piece.len ? lines->offset + piece.len : lines->size;
  plugin_list_u8_free(&piece);
  return true;
}

int next_line(lines *lines, slice *line, types_error_t *error) {
  for (;;) {
    slice rest = slice_of_buffer(&lines->kept);
    rest.ptr += lines->taken;
    rest.len -= lines->taken;
    uint8_t *end = rest.len ? memchr(rest.ptr, '\n', rest.len) : NULL;
    bool last = lines->offset >= lines->size;
    if (!end && !last) {
      if (!read_piece(lines, error)) return -1;
      continue;
    }
    if (!end && rest.len == 0) return 0;
    size_t length = end ? (size_t)(end - rest.ptr) : rest.len;
    lines->taken += length + (end != NULL);
    lines->number++;
    if (length && rest.ptr[length - 1] == '\r') length--;
    *line = (slice){rest.ptr, length};
    return 1;
  }
}

void close_lines(lines *lines) {
  files_file_drop_own(lines->file);
  discard(&lines->kept);
}

types_sample_t *add_sample(samples *samples, plugin_string_t id, slice prompt) {
  samples->list.ptr = grown(samples->list.ptr, samples->list.len, &samples->capacity, sizeof *samples->list.ptr);
  types_sample_t *sample = &samples->list.ptr[samples->list.len++];
  memset(sample, 0, sizeof *sample);
  sample->id = id;
  sample->prompt.tag = TYPES_PROMPT_TEXT;
  sample->prompt.val.text = owned(prompt);
  return sample;
}

// Adds a sample that is already there.
static void move_sample(samples *samples, types_sample_t sample) {
  samples->list.ptr = grown(samples->list.ptr, samples->list.len, &samples->capacity, sizeof *samples->list.ptr);
  samples->list.ptr[samples->list.len++] = sample;
}

bool first_alone(exports_dataset_generator_t *generator, further *next, samples *ahead, uint32_t limit,
                 exports_dataset_list_sample_t *result, types_error_t *error) {
  samples alone = {0};
  for (;;) {
    exports_dataset_list_sample_t one = {0};
    if (!next(generator, 1, &one, error)) {
      exports_dataset_list_sample_free(&alone.list);
      return false;
    }
    if (one.len == 0) break;
    if (one.ptr[0].after.len) {
      exports_dataset_list_sample_free(&one);
      continue;
    }
    bool enough = alone.list.len == limit;
    move_sample(enough ? ahead : &alone, one.ptr[0]);
    free(one.ptr);
    if (enough) break;
  }
  *result = alone.list;
  return true;
}

void take_ahead(samples *ahead, samples *found) {
  for (size_t at = 0; at < ahead->list.len; at++) move_sample(found, ahead->list.ptr[at]);
  free(ahead->list.ptr);
  *ahead = (samples){0};
}
