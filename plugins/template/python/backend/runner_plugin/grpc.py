"""gRPC without generated code: messages of Protocol Buffers, calls, and their ends.

Sources: the wire format of Protocol Buffers (https://protobuf.dev/programming-guides/encoding/) and gRPC over HTTP/2
(`doc/PROTOCOL-HTTP2.md` of gRPC). The backend's `framing` is `GRPC`; delete this file if your engine has no gRPC."""

import struct
from urllib.parse import unquote

from runner_plugin import protocol, well_formed
from runner_plugin.backend import reason
from wit_world.exports import backend as api
from wit_world.exports.backend import Reason

GRPC = api.Framing_Grpc()


class Message:
    """A message that is written field by field, by their numbers: `Message().text(1, "m").number(2, 8)`. A field that is
    written several times is a repeated one. `bytes(message)` is the message."""

    def __init__(self):
        self._bytes = bytearray()

    def __bytes__(self):
        return bytes(self._bytes)

    def number(self, field, value):
        """An `int32`, `int64`, `uint32`, `uint64`, `bool` or `enum`."""
        self._bytes += _varint(field << 3) + _varint(int(value) & (2**64 - 1))
        return self

    def zigzag(self, field, value):
        """A `sint32` or `sint64`."""
        return self.number(field, value * 2 if value >= 0 else -value * 2 - 1)

    def double(self, field, value):
        self._bytes += _varint(field << 3 | 1) + struct.pack("<d", value)
        return self

    def float(self, field, value):
        self._bytes += _varint(field << 3 | 5) + struct.pack("<f", value)
        return self

    def data(self, field, value):
        """`bytes`, or a message within this one."""
        value = bytes(value)
        self._bytes += _varint(field << 3 | 2) + _varint(len(value)) + value
        return self

    def text(self, field, value):
        return self.data(field, value.encode())


def _varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return out


def fields(message):
    """The fields of a message, in its order, as pairs of the field's number and its value: a whole number from 0 to
    2^64 - 1, or bytes: of a text, `bytes` or a message; eight of a `double` or `fixed64`, four of a `float` or
    `fixed32`."""
    at = 0
    while at < len(message):
        key, at = _number(message, at)
        kind = key & 7
        if kind == 0:
            value, at = _number(message, at)
            yield key >> 3, value
            continue
        if kind == 2:
            length, at = _number(message, at)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise protocol(f"a message of Protocol Buffers with a field of the kind {kind}, which has no meaning")
        if at + length > len(message):
            raise protocol("a message of Protocol Buffers that ends in the middle of a field")
        yield key >> 3, bytes(message[at : at + length])
        at += length


def _number(message, at):
    value = shift = 0
    while True:
        if at >= len(message) or shift > 63:
            raise protocol("a message of Protocol Buffers with a number that does not end")
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value & (2**64 - 1), at


class Fields:
    """The fields of a message, by their numbers. An absent field has the value 0 or is empty, as in the format; a field
    of another kind is a server's error."""

    def __init__(self, message):
        self._all = {}
        for field, value in fields(message):
            self._all.setdefault(field, []).append(value)

    def _last(self, field, absent, lengths=None):
        value = self._all.get(field, [absent])[-1]
        if type(value) is not type(absent) or (lengths and len(value) != lengths):
            raise protocol(f"a message of Protocol Buffers whose field {field} is of another kind")
        return value

    def number(self, field):
        """A `uint32`, `uint64`, `bool` or `enum`."""
        return self._last(field, 0)

    def signed(self, field):
        """An `int32` or `int64`."""
        value = self.number(field)
        return value - 2**64 if value >= 2**63 else value

    def zigzag(self, field):
        """A `sint32` or `sint64`."""
        value = self.number(field)
        return value >> 1 if value & 1 == 0 else -(value + 1 >> 1)

    def double(self, field):
        return struct.unpack("<d", self._last(field, bytes(8), 8))[0]

    def float(self, field):
        return struct.unpack("<f", self._last(field, bytes(4), 4))[0]

    def data(self, field):
        """`bytes`, or a message within this one."""
        return self._last(field, b"")

    def text(self, field):
        return self.data(field).decode("utf-8", "replace")

    def each(self, field):
        """The values of a repeated field: whole numbers, or bytes."""
        return self._all.get(field, [])


def call(method, message):
    """A call of a method, such as `/package.Service/Method`, with its message."""
    body = bytes(message)
    headers = [("content-type", "application/grpc")]
    return api.Request("POST", well_formed(method), headers, b"\0" + struct.pack(">I", len(body)) + body)


STATUSES = {
    1: ("CANCELLED", Reason.OTHER),
    3: ("INVALID_ARGUMENT", Reason.INVALID),
    4: ("DEADLINE_EXCEEDED", Reason.OVERLOADED),
    5: ("NOT_FOUND", Reason.UNKNOWN_MODEL),
    7: ("PERMISSION_DENIED", Reason.UNAUTHORISED),
    8: ("RESOURCE_EXHAUSTED", Reason.OVERLOADED),
    9: ("FAILED_PRECONDITION", Reason.INVALID),
    11: ("OUT_OF_RANGE", Reason.INVALID),
    12: ("UNIMPLEMENTED", Reason.INVALID),
    13: ("INTERNAL", Reason.INTERNAL),
    14: ("UNAVAILABLE", Reason.UNAVAILABLE),
    15: ("DATA_LOSS", Reason.INTERNAL),
    16: ("UNAUTHENTICATED", Reason.UNAUTHORISED),
}


def ended(frame, name, events):
    """True if the frame ends the call; adds its meaning: the end of the answer, or a failure."""
    if name != "trailers":
        return False
    lines = (line.split(":", 1) for line in frame.decode("utf-8", "replace").splitlines() if ":" in line)
    trailers = {name.strip().lower(): value.strip() for name, value in lines}
    code = trailers.get("grpc-status", "")
    if code == "0":
        events.end()
    elif not code.isdecimal():
        events.failure("the call ended without `grpc-status`")
    else:
        word, why = STATUSES.get(int(code), ("UNKNOWN", Reason.OTHER))
        detail = unquote(trailers.get("grpc-message", ""))
        # The words say more than a code that has many uses.
        guess = reason(None, detail)
        if why in (Reason.INVALID, Reason.INTERNAL, Reason.OTHER) and guess != Reason.OTHER:
            why = guess
        events.failure(f"{word} ({code})" + (f": {detail}" if detail else ""), why)
    return True
