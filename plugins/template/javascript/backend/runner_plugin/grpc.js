// gRPC without generated code: messages of Protocol Buffers, calls, and their ends.
//
// Sources: the wire format of Protocol Buffers (https://protobuf.dev/programming-guides/encoding/) and gRPC over HTTP/2
// (`doc/PROTOCOL-HTTP2.md` of gRPC). The backend's `framing` returns `{ tag: "grpc" }`; delete this file if your engine
// has no gRPC.

import { bytesOf, protocol, textOf } from "./index.js";
import { reasonOf } from "./backend.js";

/**
 * A message that is written field by field, by their numbers: `new Message().text(1, "m").number(2, 8).bytes()`. A field
 * that is written several times is a repeated one.
 */
export class Message {
  #bytes = [];

  bytes() {
    return Uint8Array.from(this.#bytes);
  }

  #varint(value) {
    let rest = BigInt.asUintN(64, BigInt(value));
    while (rest > 0x7fn) {
      this.#bytes.push(Number(rest & 0x7fn) | 0x80);
      rest >>= 7n;
    }
    this.#bytes.push(Number(rest));
  }

  #add(bytes) {
    for (const byte of bytes) this.#bytes.push(byte);
    return this;
  }

  /** An `int32`, `int64`, `uint32`, `uint64`, `bool` or `enum`: a whole number, a BigInt or a boolean. */
  number(field, value) {
    this.#varint(field * 8);
    this.#varint(value);
    return this;
  }

  /** A `sint32` or `sint64`. */
  zigzag(field, value) {
    const whole = BigInt(value);
    return this.number(field, whole >= 0n ? whole * 2n : -whole * 2n - 1n);
  }

  double(field, value) {
    const view = new DataView(new ArrayBuffer(8));
    view.setFloat64(0, value, true);
    this.#varint(field * 8 + 1);
    return this.#add(new Uint8Array(view.buffer));
  }

  float(field, value) {
    const view = new DataView(new ArrayBuffer(4));
    view.setFloat32(0, value, true);
    this.#varint(field * 8 + 5);
    return this.#add(new Uint8Array(view.buffer));
  }

  /** `bytes`, or a message within this one. */
  data(field, value) {
    const bytes = value instanceof Message ? value.bytes() : value;
    this.#varint(field * 8 + 2);
    this.#varint(bytes.length);
    return this.#add(bytes);
  }

  text(field, value) {
    return this.data(field, bytesOf(value));
  }
}

/**
 * The fields of a message, in its order, as pairs of the field's number and its value: a BigInt from 0 to 2^64 - 1, or
 * bytes: of a text, `bytes` or a message; eight of a `double` or `fixed64`, four of a `float` or `fixed32`.
 */
export function* fields(message) {
  const reader = { at: 0 };
  while (reader.at < message.length) {
    const key = number(message, reader);
    const field = Number(key >> 3n);
    const kind = Number(key & 7n);
    if (kind === 0) {
      yield [field, number(message, reader)];
      continue;
    }
    if (kind !== 1 && kind !== 2 && kind !== 5) {
      throw protocol(`a message of Protocol Buffers with a field of the kind ${kind}, which has no meaning`);
    }
    const length = kind === 2 ? Number(number(message, reader)) : kind === 1 ? 8 : 4;
    const end = reader.at + length;
    if (end > message.length) throw protocol("a message of Protocol Buffers that ends in the middle of a field");
    yield [field, message.subarray(reader.at, end)];
    reader.at = end;
  }
}

function number(message, reader) {
  let value = 0n;
  for (let shift = 0n; shift < 64n; shift += 7n) {
    const byte = message[reader.at++];
    if (byte === undefined) break;
    value |= BigInt(byte & 0x7f) << shift;
    if (byte < 0x80) return BigInt.asUintN(64, value);
  }
  throw protocol("a message of Protocol Buffers with a number that does not end");
}

/**
 * The fields of a message, by their numbers. A field that is not there has the value 0 or is empty, as the format has it;
 * one of another kind than it is read as is an error of the server's.
 */
export class Fields {
  #all = new Map();

  constructor(message) {
    for (const [field, value] of fields(message)) {
      const values = this.#all.get(field);
      if (values) values.push(value);
      else this.#all.set(field, [value]);
    }
  }

  #last(field, absent, length = null) {
    const value = this.#all.get(field)?.at(-1) ?? absent;
    if (typeof value !== typeof absent || (length !== null && value.length !== length)) {
      throw protocol(`a message of Protocol Buffers whose field ${field} is of another kind`);
    }
    return value;
  }

  #view(field, length) {
    const bytes = this.#last(field, new Uint8Array(length), length);
    return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** A `uint32`, `uint64`, `bool` or `enum`, as a number. */
  number(field) {
    return Number(this.#last(field, 0n));
  }

  /** An `int32` or `int64`. */
  signed(field) {
    return Number(BigInt.asIntN(64, this.#last(field, 0n)));
  }

  /** A `sint32` or `sint64`. */
  zigzag(field) {
    const value = this.#last(field, 0n);
    return Number(value & 1n ? -(value + 1n) / 2n : value / 2n);
  }

  double(field) {
    return this.#view(field, 8).getFloat64(0, true);
  }

  float(field) {
    return this.#view(field, 4).getFloat32(0, true);
  }

  /** `bytes`, or a message within this one. */
  data(field) {
    return this.#last(field, new Uint8Array());
  }

  text(field) {
    return textOf(this.data(field));
  }

  /** The values of a repeated field: BigInts, or bytes. */
  each(field) {
    return this.#all.get(field) ?? [];
  }
}

/** A call of a method, such as `/package.Service/Method`, with its message. */
export function call(method, message) {
  const sent = message instanceof Message ? message.bytes() : message;
  const body = new Uint8Array(5 + sent.length);
  new DataView(body.buffer).setUint32(1, sent.length);
  body.set(sent, 5);
  return { method: "POST", path: method, headers: [["content-type", "application/grpc"]], body };
}

const STATUSES = {
  1: ["CANCELLED", "other"],
  3: ["INVALID_ARGUMENT", "invalid"],
  4: ["DEADLINE_EXCEEDED", "overloaded"],
  5: ["NOT_FOUND", "unknown-model"],
  7: ["PERMISSION_DENIED", "unauthorised"],
  8: ["RESOURCE_EXHAUSTED", "overloaded"],
  9: ["FAILED_PRECONDITION", "invalid"],
  11: ["OUT_OF_RANGE", "invalid"],
  12: ["UNIMPLEMENTED", "invalid"],
  13: ["INTERNAL", "internal"],
  14: ["UNAVAILABLE", "unavailable"],
  15: ["DATA_LOSS", "internal"],
  16: ["UNAUTHENTICATED", "unauthorised"],
};

/** True if the frame ends the call; adds its meaning: the end of the answer, or a failure. */
export function ended(frame, name, events) {
  if (name !== "trailers") return false;
  const trailers = new Map();
  for (const line of textOf(frame).split("\r\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) trailers.set(line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim());
  }
  const code = trailers.get("grpc-status") ?? "";
  if (code === "0") {
    events.end();
  } else if (!/^\d+$/.test(code)) {
    events.failure("the call ended without `grpc-status`");
  } else {
    const [word, usual] = STATUSES[code] ?? ["UNKNOWN", "other"];
    const detail = unescaped(trailers.get("grpc-message") ?? "");
    // The words say more than a code that has many uses.
    const guess = reasonOf(null, detail);
    const why = ["invalid", "internal", "other"].includes(usual) && guess !== "other" ? guess : usual;
    events.failure(`${word} (${code})${detail ? `: ${detail}` : ""}`, why);
  }
  return true;
}

/** A status message, whose bytes outside of printable ASCII are percent-encoded. */
function unescaped(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
