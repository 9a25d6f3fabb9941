"""Support for backends: a base class, request bodies, events, and parsing of server replies."""

import base64
import json
import math
from dataclasses import fields

from runner_plugin import configured, invalid_config, invalid_input, parsed, protocol, well_formed
from wit_world.exports import backend as api
from wit_world.exports.backend import Control, Reason, ServerMetric
from wit_world.imports import types


class Backend:
    """A server's dialect. Derive a class `Codec` from it, set `Config` and `url`, and write `encode` and `read`."""

    Config = None
    """The dataclass of the user's settings; an instance is in `self.config`."""
    url = "http://127.0.0.1:8000"
    """The engine's default URL."""
    controls = {}
    """Paths for GET requests other than inference, by `Control`."""
    authentication = api.Authentication_Bearer()
    """The scheme by which the host adds the user's key, which a plugin never sees: `Authentication_Bearer()`,
    `Authentication_None_()`, `Authentication_Header("x-api-key")`, `Authentication_Sigv4("bedrock")` for a service of
    AWS, or `Authentication_Hmac(Hmac(Digest.SHA256, message, Encoding.HEX, headers))` for a signature, or
    `Authentication_Token(Token(login, pointer, lifetime, headers))` for a token that a login gives."""
    key_variable = None
    """The environment variable in which people keep the key, such as `OPENAI_API_KEY`."""
    cookies = False
    """True to have the host keep the cookies of each conversation."""

    def __init__(self, config):
        self.config = config

    def encode(self, sample, settings, earlier):
        """The exchange for a sample: `single(post(…))`, the first of several requests as `step(post(…), …)`, or
        `socket(path, [text(…), …])`. Pure: the same arguments give the same bytes. `earlier` is None, or has the
        `carry` of the conversation's last reply and the number of the prompt's `messages` that the server knows
        already."""
        raise NotImplementedError

    def prepare(self):
        """The request to each target before the first sample's, if `encode` needs something of its reply; or None."""
        return None

    def read_prepared(self, body):
        """The value of `settings.prepared` in a successful reply to `prepare`: bytes, and their lifetime in nanoseconds
        or None."""
        return api.Prepared(body, None)

    def start(self, head):
        """The state before the first frame of a reply, from its status, its header fields and whether it is streamed.
        In an exchange of several requests, `head.context` has the bytes that came with this one."""
        return {}

    def read(self, frame, name, state, events):
        """Reads one frame (its bytes, and the event's name or None) and adds its meanings to `events`. `state` is a
        dict that is kept for the reply from frame to frame, JSON values only; it is limited to 64 KiB, so don't keep
        the answer in it. With the framing `raw`, set `events.unread` to the number of bytes at the end of the frame
        that belong to an incomplete unit: the next frame begins with them."""
        raise NotImplementedError

    # Called by the host; these defaults suit most engines.

    @classmethod
    def open(cls, config):
        return cls(configured(cls.Config, config))

    def default_url(self):
        return self.url

    def control(self, what):
        path = self.controls.get(what)
        return path and api.Request("GET", path, [], b"")

    def credentials(self):
        return api.Credentials(self.authentication, self.key_variable, self.cookies)

    def read_models(self, body):
        """The models in the OpenAI API's form, with the fields that engines add."""
        try:
            return [_served(model) for model in parsed(body)["data"]]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise protocol(f'expected {{"data": [{{"id": …}}, …]}}, found {excerpt(body)}') from None

    def read_metrics(self, body):
        return []

    def framing(self, streaming):
        return api.Framing_EventStream() if streaming else api.Framing_Whole()

    def begin(self, head):
        return _stored(self.start(head))

    def decode(self, state, frames):
        state = json.loads(state) if state else {}
        names = dict(frames.names)
        events = Events()
        start = 0
        for index, end in enumerate(frames.ends):
            events.frame = index
            # The bytes of all frames are in one piece, so unread bytes are in front of the next ones.
            start -= events.unread
            events.unread = 0
            self.read(frames.bytes[start:end], names.get(index), state, events)
            start = end
        return api.Decoded(events.all, _stored(state), events.unread)

    def explain(self, status, body):
        return refusal(status, body)


def _stored(state):
    return json.dumps(state).encode() if state else b""


def _served(model):
    root = string(model, "root")
    return api.ServedModel(well_formed(model["id"]), root and well_formed(root), count(model.get("max_model_len")))


class Events:
    """The meanings of a batch of frames, in order."""

    def __init__(self):
        self.frame = 0
        self.all = []
        self.unread = 0
        """The number of unread bytes at the end of the frame; only with the framing `raw`."""

    def _add(self, meaning):
        self.all.append(api.Event(self.frame, meaning))

    def opened(self):
        """The reply has begun, but contains nothing of the answer yet."""
        self._add(api.Meaning_Opened())

    def text(self, text, tokens=None, choice=0):
        """A piece of the answer, its number of tokens if the server reports it, and the index of its answer among
        several, from 0."""
        self._add(api.Meaning_Text(api.Output(well_formed(text), tokens, choice)))

    def reasoning(self, text, tokens=None, choice=0):
        """A piece of reasoning before the answer."""
        self._add(api.Meaning_Reasoning(api.Output(well_formed(text), tokens, choice)))

    def tool_call(self, text, tokens=None, choice=0):
        """A piece of a tool call, as JSON text."""
        self._add(api.Meaning_ToolCall(api.Output(well_formed(text), tokens, choice)))

    def audio(self, milliseconds=None, choice=0):
        """A piece of sound, and its length; None if only decoding it tells."""
        self._add(api.Meaning_Audio(api.Sound(duration(milliseconds), choice)))

    def vector(self, index, values):
        """The vector of the request's text of this index, for a prompt of the kind `embedding`."""
        self._add(api.Meaning_Vector(api.Embedded(index, values)))

    def order(self, ranked):
        """An order, best first, of pairs of an index and a score, for a prompt of the kind `ranking`."""
        self._add(api.Meaning_Order([api.Ranked(index, score) for index, score in ranked]))

    def carry(self, data):
        """Bytes, such as an id that the server issued, for the next request of the conversation; at most 64 KiB."""
        self._add(api.Meaning_Carry(data))

    def usage(self, **counts):
        """The server's token counts, by the names of the contract's record `usage`, such as `input_tokens=12`. A value
        that is not a count, such as null, counts as absent, like a missing one."""
        absent = dict.fromkeys(field.name for field in fields(api.Usage))
        given = {name: count(value) for name, value in counts.items()}
        self._add(api.Meaning_Usage(api.Usage(**absent | given)))

    def count(self, name, value):
        """Another number that the server counts for the request, by a name such as `image-tokens`. A value that is not a
        count, such as None, is treated as absent."""
        if type(value) is int and 0 <= value < 2**64:
            self._add(api.Meaning_Count((name, value)))

    def clean_up(self, request):
        """A request, as `delete(…)`, that the host sends when the exchange has ended, however it ended. The last one
        counts."""
        self._add(api.Meaning_CleanUp(request))

    def timings(self, **parts):
        """Durations of the request's parts by the server's own clock, in milliseconds, by the names of the contract's
        record `timings`, such as `queue=1.5`. A value that is no duration, such as null or one below zero, counts as
        absent, like a missing one."""
        given = {name: duration(value) for name, value in parts.items()}
        absent = dict.fromkeys(field.name for field in fields(api.Timings))
        self._add(api.Meaning_Timings(api.Timings(**absent | given)))

    def speculation(self, steps, steps_by_accepted=()):
        """The steps of speculative decoding, and the numbers of them that accepted 0, 1, 2, … proposed tokens, if the
        server reports them; a list with another sum is left out. No event if `steps` is no count."""
        if count(steps) is None:
            return
        listed = steps_by_accepted if isinstance(steps_by_accepted, list) else []
        adds_up = len(listed) <= 1024 and None not in map(count, listed) and sum(listed) == steps
        self._add(api.Meaning_Speculation(api.Speculation(steps, listed if adds_up else [])))

    def finish(self, reason):
        """The finish reason, in the server's own word."""
        self._add(api.Meaning_Finish(well_formed(reason)))

    def failure(self, error, why=None):
        """The server reported an error inside a reply with a success status; `error` is the sent value. `why` is a
        `Reason`; without one, the words of the error decide."""
        text = message(error)
        self._add(api.Meaning_Failure(api.Refusal(reason(None, text) if why is None else why, text)))

    def next(self, call):
        """In an exchange of several requests: the next one, as `step(…)`, to be sent when this reply has ended."""
        self._add(api.Meaning_Next(call.value))

    def send(self, outgoing):
        """Over a WebSocket: a message, as `text(…)` or `binary(…)`, to be sent after all waiting ones."""
        self._add(api.Meaning_Send(outgoing))

    def proceed(self):
        """Over a WebSocket: sends the held messages, up to the next one that holds."""
        self._add(api.Meaning_Proceed())

    def ends_with_body(self):
        """The reply has no end marker: it is complete when its body is."""
        self._add(api.Meaning_EndsWithBody())

    def end(self):
        """The end marker: the reply is complete."""
        self._add(api.Meaning_End())


def parse(frame):
    """A frame that holds a JSON object."""
    try:
        value = parsed(frame)
    except ValueError:
        raise protocol(f"expected a JSON object, found {excerpt(frame)}") from None
    if not isinstance(value, dict):
        raise protocol(f"expected a JSON object, found {excerpt(frame)}")
    return value


def table(value, key):
    """The object under a key, or an empty one where there is none."""
    value = value.get(key)
    return value if isinstance(value, dict) else {}


def string(value, *keys):
    """The string that is not empty under the first of these keys that has one, or None."""
    for key in keys:
        if isinstance(value.get(key), str) and value[key]:
            return value[key]
    return None


def count(value):
    """The value if it is a number of tokens, or None."""
    return value if type(value) is int and 0 <= value < 2**32 else None


def duration(value):
    """The value if it is a duration, a number that is finite and not negative, or None."""
    is_number = type(value) in (int, float) and math.isfinite(value)
    return float(value) if is_number and value >= 0 else None


def post(path, body, headers=()):
    """A POST of a JSON body."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    fields = [("content-type", "application/json"), *((name, well_formed(value)) for name, value in headers)]
    return api.Request("POST", well_formed(path), fields, well_formed(text).encode())


def get(path, headers=()):
    """A GET; `path` may be a whole URL in a step."""
    return api.Request("GET", well_formed(path), [(name, well_formed(value)) for name, value in headers], b"")


def delete(path, headers=()):
    """A DELETE."""
    return api.Request("DELETE", well_formed(path), [(name, well_formed(value)) for name, value in headers], b"")


def single(request):
    """One request, whose reply is the answer."""
    return api.Call_Request(request)


def step(request, framing, seconds=0, accepted=(), context=b""):
    """One of several requests: the framing of its reply, its delay after the previous reply, the further statuses that
    are answers too, and the value of `head.context` in `start`."""
    return api.Call_Steps(api.Step(request, framing, round(seconds * 1e9), list(accepted), context))


def socket(path, messages, headers=()):
    """Messages over a WebSocket, each as `text(…)` or `binary(…)`. The messages of the server are frames with the
    name `text` or `binary`, and its close is one with the name `close`."""
    return api.Call_Socket(api.Socket(well_formed(path), list(headers), list(messages)))


def text(content, seconds=0, hold=False):
    """A text message: its delay after the previous message's due time, and whether it waits for `events.proceed()`."""
    return api.Outgoing(api.Message_Text(well_formed(content)), round(seconds * 1e9), hold)


def binary(data, seconds=0, hold=False):
    """A binary message, as `text`."""
    return api.Outgoing(api.Message_Binary(data), round(seconds * 1e9), hold)


def extended(body, sample, settings):
    """Merges the sample's own parameters over the body, and the user's extra body over both."""
    for extra in (sample.parameters, settings.extra_body):
        if extra is not None:
            body = _merged(body, json.loads(extra))
    return body


def _merged(under, over):
    if isinstance(under, dict) and isinstance(over, dict):
        return {**under, **{key: _merged(under.get(key), value) for key, value in over.items()}}
    return over


def model(sample, settings):
    """The model name to send: the sample's adapter, or the model."""
    return sample.adapter or settings.model


def output_tokens(sample, settings):
    """The number of tokens to request, or None if the server decides."""
    return settings.output_tokens if sample.output_tokens is None else sample.output_tokens


def sampling(settings):
    """The sampling settings that are set, by their names in OpenAI's API and its extensions."""
    chosen = {key: value for key, value in vars(settings.sampling).items() if value is not None}
    if not chosen["stop"]:
        del chosen["stop"]
    return chosen


def messages(prompt):
    """The prompt as the OpenAI API's `messages`; a text becomes a user message."""
    match prompt:
        case types.Prompt_Text(text):
            return [{"role": "user", "content": text}]
        case types.Prompt_Messages(conversation):
            return [_message(message) for message in conversation]
        case _:
            kinds = {types.Prompt_Tokens: "token ids", types.Prompt_Embedding: "texts to embed"}
            kind = kinds.get(type(prompt), "texts to rank")
            raise invalid_config(f"the dataset gives {kind}, which a conversation cannot carry; have it give text")


def _message(message):
    parts = [_part(part) for part in message.parts]
    whole = len(parts) == 1 and parts[0]["type"] == "text"
    content = parts[0]["text"] if whole else parts
    extra = json.loads(message.extra) if message.extra else {}
    return {"role": message.role.name.lower(), "content": content, **extra}


def _part(part):
    match part:
        case types.Part_Text(text):
            return {"type": "text", "text": text}
        case types.Part_Image(media):
            data = base64.b64encode(media.bytes).decode()
            return {"type": "image_url", "image_url": {"url": f"data:{media.media_type};base64,{data}"}}
        case _:
            raise invalid_input("a message contains audio or a video; this backend can send text and images")


def refusal(status, body):
    """The error in a reply with an error status, in any of the forms that engines and proxies use."""
    try:
        text = message(parsed(body))
    except ValueError:
        text = excerpt(body, 400)
    return api.Refusal(reason(status, text), text or "the server gave no reason")


def message(error):
    """The message in an error value, such as {"error": {"message": "…"}}."""
    for _ in range(8):
        if not isinstance(error, dict):
            break
        keys = [key for key in ("error", "message", "msg", "detail") if error.get(key)]
        if not keys:
            break
        error = error[keys[0]]
    text = error if isinstance(error, str) else json.dumps(error)
    return excerpt(well_formed(text).encode(), 400)


def reason(status, text):
    """The kind of error, from the status (None if there is none) and from words that engines use."""
    text = text.lower()

    def says(*words):
        return any(word in text for word in words)

    model = says("model", "adapter", "lora") and says("not found", "not exist", "unknown", "no such")
    busy = says("overload", "queue is full", "too many requests", "rate limit", "capacity", "try again later")
    if status in (401, 403):
        return Reason.UNAUTHORISED
    if status in (429, 529) or (busy and status in (None, 503)):
        return Reason.OVERLOADED
    if status in (502, 503, 504):
        return Reason.UNAVAILABLE
    if status == 413 or says("context length", "context window", "maximum context", "too long", "longer than"):
        return Reason.TOO_LONG
    if model and status in (None, 400, 404, 422):
        return Reason.UNKNOWN_MODEL
    if status is None:
        return Reason.OTHER
    return Reason.INVALID if 400 <= status < 500 else Reason.INTERNAL if status >= 500 else Reason.OTHER


def excerpt(data, longest=200):
    """The beginning of some bytes, on one line."""
    text = " ".join(bytes(data[: 4 * longest]).decode("utf-8", "replace").split())
    return text if len(text) <= longest else text[:longest] + "…"


__all__ = [
    "Backend",
    "Control",
    "Events",
    "Reason",
    "ServerMetric",
    "api",
    "count",
    "delete",
    "excerpt",
    "extended",
    "invalid_config",
    "invalid_input",
    "message",
    "messages",
    "model",
    "output_tokens",
    "parse",
    "post",
    "protocol",
    "reason",
    "refusal",
    "sampling",
    "string",
    "table",
]
