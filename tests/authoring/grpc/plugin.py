"""A backend of gRPC, for the messages of `t.proto`."""

from dataclasses import dataclass

from runner_plugin import plate
from runner_plugin.backend import Backend, count, single
from runner_plugin.grpc import GRPC, Fields, Message, call, ended


@dataclass
class Config:
    pass


About = plate("mine", "0.1.0", "Calls an engine by gRPC.", Config)


class Codec(Backend):
    Config = Config

    def framing(self, streaming):
        return GRPC

    def encode(self, sample, settings, earlier):
        inner = Message().float(1, 0.5).number(2, True).number(3, -1)
        ask = Message().text(1, sample.prompt.value).number(2, 300).double(3, 0.25).zigzag(4, -3).data(5, inner)
        for stop in ("a", "b"):
            ask.text(6, stop)
        return single(call("/t.Engine/Generate", ask))

    def read(self, frame, name, state, events):
        if ended(frame, name, events):
            return
        piece = Fields(frame)
        numbers = f"{piece.zigzag(3)} {piece.double(4):g} {piece.float(5):g} {piece.signed(6)} {len(piece.data(300))}"
        events.text(f"{piece.text(1)} {numbers}", count(piece.number(2)))
