// gRPC without generated code: messages of Protocol Buffers, calls, and their ends.
//
// Sources: the wire format of Protocol Buffers (https://protobuf.dev/programming-guides/encoding/) and gRPC over HTTP/2
// (`doc/PROTOCOL-HTTP2.md` of gRPC). The backend's `framing` is `EXPORTS_BACKEND_FRAMING_GRPC`; delete this file and
// `runner_grpc.c` if your engine has no gRPC.

#ifndef RUNNER_GRPC_H
#define RUNNER_GRPC_H

#include "runner_backend.h"

// Writing a message, which begins as `{0}`, field by field, by their numbers. A field that is written several times is a
// repeated one.

// An `int32`, `int64`, `uint32`, `uint64`, `bool` or `enum`; a negative number as it is cast.
void put_pb_number(buffer *message, uint32_t field, uint64_t value);
// A `sint32` or `sint64`.
void put_pb_zigzag(buffer *message, uint32_t field, int64_t value);
void put_pb_double(buffer *message, uint32_t field, double value);
void put_pb_float(buffer *message, uint32_t field, float value);
// A `string`, `bytes`, or a message within this one.
void put_pb_bytes(buffer *message, uint32_t field, slice bytes);

// A field that was read: a number, or bytes of a text, `bytes` or a message, eight of a `double` or `fixed64`, four of a
// `float` or `fixed32`.
typedef struct {
  uint32_t number;
  bool is_number;
  uint64_t value;
  slice bytes;
} pb_field;

// Reads the next field: `for (slice rest = message; rest.len;) if (!next_pb_field(&rest, &field, error)) return false;`.
// False, and an error, where the message is none.
bool next_pb_field(slice *rest, pb_field *field, types_error_t *error);
// A `sint32` or `sint64`.
int64_t pb_zigzag(uint64_t value);
// 0 if it has not the bytes of one.
double pb_double(slice bytes);
float pb_float(slice bytes);

// A call of a method, such as `/package.Service/Method`, with its message, which it consumes.
void call_grpc(exports_backend_request_t *request, slice method, buffer *message);
// True if the frame ends the call; adds its meaning: the end of the answer, or a failure.
bool ended_grpc(events *events, slice frame, slice name);

#endif
