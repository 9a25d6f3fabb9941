// Protocol Buffers and gRPC; see `runner_grpc.h`.

#include "runner_grpc.h"

#include <stdlib.h>
#include <string.h>

static void put_byte(buffer *to, uint8_t byte) {
  put_slice(to, (slice){&byte, 1});
}

static void put_varint(buffer *to, uint64_t value) {
  for (; value > 0x7f; value >>= 7) put_byte(to, (uint8_t)(value & 0x7f) | 0x80);
  put_byte(to, (uint8_t)value);
}

static void put_fixed(buffer *to, uint32_t field, uint8_t kind, const void *value, size_t bytes) {
  put_varint(to, (uint64_t)field << 3 | kind);
  // WebAssembly keeps numbers with the lowest byte first, as the format does.
  put_slice(to, (slice){value, bytes});
}

void put_pb_number(buffer *message, uint32_t field, uint64_t value) {
  put_varint(message, (uint64_t)field << 3);
  put_varint(message, value);
}

void put_pb_zigzag(buffer *message, uint32_t field, int64_t value) {
  put_pb_number(message, field, (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0));
}

void put_pb_double(buffer *message, uint32_t field, double value) {
  put_fixed(message, field, 1, &value, sizeof value);
}

void put_pb_float(buffer *message, uint32_t field, float value) {
  put_fixed(message, field, 5, &value, sizeof value);
}

void put_pb_bytes(buffer *message, uint32_t field, slice bytes) {
  put_varint(message, (uint64_t)field << 3 | 2);
  put_varint(message, bytes.len);
  put_slice(message, bytes);
}

static slice taken(slice *rest, size_t bytes) {
  slice part = {rest->ptr, bytes};
  rest->ptr += bytes;
  rest->len -= bytes;
  return part;
}

static bool varint(slice *rest, uint64_t *value, types_error_t *error) {
  *value = 0;
  for (unsigned shift = 0; shift < 64 && rest->len; shift += 7) {
    uint8_t byte = taken(rest, 1).ptr[0];
    *value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return fail_text(error, TYPES_ERROR_PROTOCOL, "a message of Protocol Buffers with a number that does not end");
}

bool next_pb_field(slice *rest, pb_field *field, types_error_t *error) {
  uint64_t key, length;
  if (!varint(rest, &key, error)) return false;
  *field = (pb_field){.number = (uint32_t)(key >> 3)};
  switch (key & 7) {
    case 0: field->is_number = true; return varint(rest, &field->value, error);
    case 1: length = 8; break;
    case 5: length = 4; break;
    case 2:
      if (!varint(rest, &length, error)) return false;
      break;
    default:
      return fail_text(error, TYPES_ERROR_PROTOCOL,
                       "a message of Protocol Buffers with a field of a kind that has no meaning");
  }
  if (length > rest->len) {
    return fail_text(error, TYPES_ERROR_PROTOCOL,
                     "a message of Protocol Buffers that ends in the middle of a field");
  }
  field->bytes = taken(rest, (size_t)length);
  return true;
}

int64_t pb_zigzag(uint64_t value) { return (int64_t)(value >> 1) ^ -(int64_t)(value & 1); }

double pb_double(slice bytes) {
  double value = 0;
  if (bytes.len == sizeof value) memcpy(&value, bytes.ptr, sizeof value);
  return value;
}

float pb_float(slice bytes) {
  float value = 0;
  if (bytes.len == sizeof value) memcpy(&value, bytes.ptr, sizeof value);
  return value;
}

void call_grpc(exports_backend_request_t *request, slice method, buffer *message) {
  buffer body = {0};
  put_byte(&body, 0);
  for (int shift = 24; shift >= 0; shift -= 8) put_byte(&body, (uint8_t)(message->len >> shift));
  put_slice(&body, slice_of_buffer(message));
  discard(message);
  post_json(request, method, &body);
  plugin_string_t *type = &request->headers.ptr[0].f1;
  plugin_string_free(type);
  *type = owned_text("application/grpc");
}

// The value of a trailer field; an empty slice if it is not there.
static slice trailer(slice lines, const char *name) {
  while (lines.len) {
    size_t end = 0, colon = 0;
    while (end < lines.len && lines.ptr[end] != '\n') end++;
    slice line = taken(&lines, end);
    if (lines.len) taken(&lines, 1);
    while (colon < line.len && line.ptr[colon] != ':') colon++;
    slice key = {line.ptr, colon};
    if (colon < line.len && key.len == strlen(name) && holds(key, slice_of(name), true)) {
      return trimmed((slice){line.ptr + colon + 1, line.len - colon - 1});
    }
  }
  return (slice){0};
}

static int digit(uint8_t byte) {
  if (byte >= '0' && byte <= '9') return byte - '0';
  if (byte >= 'a' && byte <= 'f') return byte - 'a' + 10;
  return byte >= 'A' && byte <= 'F' ? byte - 'A' + 10 : -1;
}

// A status message, whose bytes outside of printable ASCII are percent-encoded.
static void put_unescaped(buffer *to, slice text) {
  for (size_t at = 0; at < text.len; at++) {
    bool escaped = text.ptr[at] == '%' && at + 2 < text.len && digit(text.ptr[at + 1]) >= 0 && digit(text.ptr[at + 2]) >= 0;
    if (escaped) {
      put_byte(to, (uint8_t)(digit(text.ptr[at + 1]) * 16 + digit(text.ptr[at + 2])));
      at += 2;
    } else {
      put_byte(to, text.ptr[at]);
    }
  }
}

static const struct {
  uint32_t code;
  const char *name;
  uint8_t reason;
} STATUSES[] = {
    {1, "CANCELLED", EXPORTS_BACKEND_REASON_OTHER},
    {3, "INVALID_ARGUMENT", EXPORTS_BACKEND_REASON_INVALID},
    {4, "DEADLINE_EXCEEDED", EXPORTS_BACKEND_REASON_OVERLOADED},
    {5, "NOT_FOUND", EXPORTS_BACKEND_REASON_UNKNOWN_MODEL},
    {7, "PERMISSION_DENIED", EXPORTS_BACKEND_REASON_UNAUTHORISED},
    {8, "RESOURCE_EXHAUSTED", EXPORTS_BACKEND_REASON_OVERLOADED},
    {9, "FAILED_PRECONDITION", EXPORTS_BACKEND_REASON_INVALID},
    {11, "OUT_OF_RANGE", EXPORTS_BACKEND_REASON_INVALID},
    {12, "UNIMPLEMENTED", EXPORTS_BACKEND_REASON_INVALID},
    {13, "INTERNAL", EXPORTS_BACKEND_REASON_INTERNAL},
    {14, "UNAVAILABLE", EXPORTS_BACKEND_REASON_UNAVAILABLE},
    {15, "DATA_LOSS", EXPORTS_BACKEND_REASON_INTERNAL},
    {16, "UNAUTHENTICATED", EXPORTS_BACKEND_REASON_UNAUTHORISED},
};

static void add_status(events *events, slice code, slice detail) {
  const char *name = "UNKNOWN";
  uint8_t reason = EXPORTS_BACKEND_REASON_OTHER;
  uint32_t number;
  for (size_t at = 0; count_of(code, &number) && at < sizeof STATUSES / sizeof *STATUSES; at++) {
    if (STATUSES[at].code != number) continue;
    name = STATUSES[at].name;
    reason = STATUSES[at].reason;
  }
  buffer words = {0}, message = {0};
  put_unescaped(&words, detail);
  uint8_t guess = reason_of(0, slice_of_buffer(&words));
  bool is_general = reason == EXPORTS_BACKEND_REASON_INVALID || reason == EXPORTS_BACKEND_REASON_INTERNAL ||
                    reason == EXPORTS_BACKEND_REASON_OTHER;
  // The words say more than a code that has many uses.
  if (is_general && guess != EXPORTS_BACKEND_REASON_OTHER) reason = guess;
  put(&message, name);
  put(&message, " (");
  put_slice(&message, code);
  put(&message, words.len ? "): " : ")");
  put_slice(&message, slice_of_buffer(&words));
  discard(&words);
  exports_backend_refusal_t *refusal = &add(events, EXPORTS_BACKEND_MEANING_FAILURE)->val.failure;
  refusal->reason = reason;
  // A server's bytes need not be text.
  refusal->message = owned(slice_of_buffer(&message));
  discard(&message);
}

bool ended_grpc(events *events, slice frame, slice name) {
  if (!is(name, "trailers")) return false;
  slice code = trailer(frame, "grpc-status");
  uint32_t number;
  if (is(code, "0")) {
    add(events, EXPORTS_BACKEND_MEANING_END);
  } else if (count_of(code, &number)) {
    add_status(events, code, trailer(frame, "grpc-message"));
  } else {
    exports_backend_refusal_t *refusal = &add(events, EXPORTS_BACKEND_MEANING_FAILURE)->val.failure;
    refusal->reason = EXPORTS_BACKEND_REASON_OTHER;
    refusal->message = owned_text("the call ended without `grpc-status`");
  }
  return true;
}
