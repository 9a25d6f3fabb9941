"""A backend whose exchanges have several requests, or messages over a WebSocket."""

from dataclasses import dataclass

from runner_plugin import plate
from runner_plugin.backend import Backend, api, delete, get, post, socket, step, text

WHOLE = api.Framing_Whole()


@dataclass
class Config:
    scheme: str = "hmac"
    """`hmac` or `token`."""


HMAC = api.Authentication_Hmac(
    api.Hmac(api.Digest.SHA256, "{time}{body}", api.Encoding.HEX, [("x-time", "{time}"), ("x-sign", "{signature}")])
)
TOKEN = api.Authentication_Token(
    api.Token(
        post("/v1/login", {"id": "{id}", "secret": "{secret}"}),
        "/access_token",
        "/expires_in",
        [("authorization", "Token {token}")],
    )
)


About = plate("mine", "0.1.0", "Asks in several steps.", Config)


class Codec(Backend):
    Config = Config
    cookies = True

    @property
    def authentication(self):
        return TOKEN if self.config.scheme == "token" else HMAC

    def encode(self, sample, settings, earlier):
        if sample.prompt.value == "socket":
            return socket("/v1/talk", [text("hello", hold=True), text("bye", seconds=0.5)])
        workspace = settings.prepared.decode()
        return step(post(f"/v1/{workspace}/jobs" if workspace else "/v1/jobs", {}), WHOLE)

    def prepare(self):
        return post("/v1/workspaces", {})

    def read_prepared(self, body):
        return api.Prepared(body.strip(), 60_000_000_000)

    def start(self, head):
        return {"context": head.context.decode("utf-8", "replace")}

    def read(self, frame, name, state, events):
        if name == "text":
            self.hear(frame, events)
        elif frame == b"wait":
            look = get("/v1/jobs/1")
            events.count("looks", 1)
            events.count("looks", None)
            events.clean_up(delete("/v1/jobs/1"))
            events.next(step(look, WHOLE, seconds=0.5, accepted=[404], context=b"job 1"))
        elif frame == b"done":
            events.text(f"answer of {state['context']}")
            events.end()

    def hear(self, frame, events):
        if frame == b"ready":
            events.proceed()
        elif frame == b"more?":
            events.send(text("more"))
        elif frame == b"sound":
            events.audio(20)
        elif frame == b"done":
            events.text("heard")
            events.end()
