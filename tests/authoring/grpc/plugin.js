// A backend of gRPC, for the messages of `t.proto`.

import { plate } from "./runner_plugin/index.js";
import { Backend, count, single } from "./runner_plugin/backend.js";
import { Fields, Message, call, ended } from "./runner_plugin/grpc.js";

export const about = plate("mine", "0.1.0", "Calls an engine by gRPC.", {});

class Codec extends Backend {
  framing() {
    return { tag: "grpc" };
  }

  encode(sample) {
    const inner = new Message().float(1, 0.5).number(2, true).number(3, -1);
    const ask = new Message().text(1, sample.prompt.val).number(2, 300).double(3, 0.25).zigzag(4, -3).data(5, inner);
    for (const stop of ["a", "b"]) ask.text(6, stop);
    return single(call("/t.Engine/Generate", ask));
  }

  read(frame, name, _state, events) {
    if (ended(frame, name, events)) return;
    const piece = new Fields(frame);
    const numbers = [piece.zigzag(3), piece.double(4), piece.float(5), piece.signed(6), piece.data(300).length];
    events.text(`${piece.text(1)} ${numbers.join(" ")}`, count(piece.number(2)));
  }
}

export const backend = { Codec };
