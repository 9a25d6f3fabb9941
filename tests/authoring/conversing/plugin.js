// A backend whose exchanges have several requests, or messages over a WebSocket.

import { bytesOf, option, plate, textOf } from "./runner_plugin/index.js";
import { Backend, del, get, post, socket, step, steps, text } from "./runner_plugin/backend.js";

const config = { scheme: option("hmac", "`hmac` or `token`.") };

export const about = plate("mine", "0.1.0", "Asks in several steps.", config);

const HMAC = {
  digest: "sha256",
  message: "{time}{body}",
  encoding: "hex",
  headers: [
    ["x-time", "{time}"],
    ["x-sign", "{signature}"],
  ],
};
const TOKEN = {
  login: post("/v1/login", { id: "{id}", secret: "{secret}" }),
  token: "/access_token",
  lifetime: "/expires_in",
  headers: [["authorization", "Token {token}"]],
};

class Codec extends Backend {
  static config = config;
  cookies = true;

  constructor(config) {
    super(config);
    this.authentication = this.config.scheme === "token" ? { token: TOKEN } : { hmac: HMAC };
  }

  encode(sample, settings) {
    if (sample.prompt.val === "socket") {
      return socket("/v1/talk", [text("hello", { hold: true }), text("bye", { seconds: 0.5 })]);
    }
    const workspace = textOf(settings.prepared);
    return steps(step(post(workspace ? `/v1/${workspace}/jobs` : "/v1/jobs", {}), "whole"));
  }

  prepare() {
    return post("/v1/workspaces", {});
  }

  readPrepared(body) {
    return { value: bytesOf(textOf(body).trim()), lifetime: 60_000_000_000 };
  }

  start(head) {
    return { context: textOf(head.context) };
  }

  read(frame, name, state, events) {
    const said = textOf(frame);
    if (name === "text") {
      this.hear(said, events);
    } else if (said === "wait") {
      const options = { seconds: 0.5, accepted: [404], context: bytesOf("job 1") };
      events.count("looks", 1);
      events.count("looks", null);
      events.cleanUp(del("/v1/jobs/1"));
      events.next(step(get("/v1/jobs/1"), "whole", options));
    } else if (said === "done") {
      events.text(`answer of ${state.context}`);
      events.end();
    }
  }

  hear(said, events) {
    if (said === "ready") {
      events.proceed();
    } else if (said === "more?") {
      events.send(text("more"));
    } else if (said === "sound") {
      events.audio(20);
    } else if (said === "done") {
      events.text("heard");
      events.end();
    }
  }
}

export const backend = { Codec };
