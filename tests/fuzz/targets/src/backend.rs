//! Reading replies with the backends that ship, compiled natively.

use model::frame::{Framer, Frames};
use model::units::Nanos;
use runner_plugin::{Backend, Error, Frame, Framing, Head, Meaning, Reading, Refusal, ServedModel};

use crate::bytes::{Cuts, first};

// Components are all that their packages build, so their sources are compiled here once more.
#[path = "../../../../plugins/backends/anthropic/src/lib.rs"]
mod anthropic;
#[path = "../../../../plugins/backends/cohere/src/lib.rs"]
mod cohere;
#[path = "../../../../plugins/backends/gemini/src/lib.rs"]
mod gemini;
#[path = "../../../../plugins/backends/llamacpp/src/lib.rs"]
mod llamacpp;
#[path = "../../../../plugins/backends/lmdeploy/src/lib.rs"]
mod lmdeploy;
#[path = "../../../../plugins/backends/ollama/src/lib.rs"]
mod ollama;
#[path = "../../../../plugins/backends/openai/src/lib.rs"]
mod openai;
#[path = "../../../../plugins/backends/realtime/src/lib.rs"]
mod realtime;
#[path = "../../../../plugins/backends/sglang/src/lib.rs"]
mod sglang;
#[path = "../../../../plugins/backends/tensorrt-llm/src/lib.rs"]
mod tensorrt_llm;
#[path = "../../../../plugins/backends/tgi/src/lib.rs"]
mod tgi;
#[path = "../../../../plugins/backends/triton-grpc/src/lib.rs"]
mod triton_grpc;
#[path = "../../../../plugins/backends/vllm/src/lib.rs"]
mod vllm;

/// Most bytes of state that the host accepts.
const STATE_BYTES: usize = 64 << 10;

/// The backends, each with a configuration for every way in which it reads replies.
pub(crate) const CONFIGURED: [(&str, &str); 21] = [
    ("openai", "{}"),
    ("openai", r#"{"route":"completions"}"#),
    ("vllm", "{}"),
    ("vllm", r#"{"route":"chat"}"#),
    ("sglang", "{}"),
    ("sglang", r#"{"route":"chat"}"#),
    ("lmdeploy", "{}"),
    ("lmdeploy", r#"{"route":"generate"}"#),
    ("anthropic", "{}"),
    ("cohere", "{}"),
    ("gemini", "{}"),
    ("llamacpp", "{}"),
    ("llamacpp", r#"{"route":"chat"}"#),
    ("ollama", "{}"),
    ("tensorrt-llm", r#"{"route":"generate"}"#),
    ("tgi", "{}"),
    ("tgi", r#"{"route":"chat"}"#),
    ("openai", r#"{"route":"transcriptions"}"#),
    ("triton-grpc", "{}"),
    ("realtime", r#"{"piece":1}"#),
    ("realtime", r#"{"api":"openai","output":"audio"}"#),
];

/// The kind of one of an engine's answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyKind {
    /// A reply, streamed or not.
    Reply { streaming: bool },
    /// An answer with an error status.
    Error { status: u16 },
    /// The list of models.
    Models,
    /// The server's metrics.
    Metrics,
}

/// The choices of an input: the backend, the kind of answer that it reads, and the cuts.
pub(crate) struct Question<'d> {
    /// The backend's place in [`CONFIGURED`].
    pub configured: usize,
    pub of: ReplyKind,
    /// The seed that divides frames into batches.
    pub seed: u8,
    pub body: &'d [u8],
}

impl<'d> Question<'d> {
    pub fn new(data: &'d [u8]) -> Self {
        let (choice, data) = first(data);
        let (seed, body) = first(data);
        let of = match choice >> 3 & 7 {
            0..=3 => ReplyKind::Reply { streaming: true },
            4 => ReplyKind::Reply { streaming: false },
            5 => ReplyKind::Error { status: [400, 401, 404, 429, 500, 503][usize::from(seed) % 6] },
            6 => ReplyKind::Models,
            _ => ReplyKind::Metrics,
        };
        Question {
            // The low bits came first, and the committed inputs have no others.
            configured: usize::from(choice & 7 | choice >> 6 << 3) % CONFIGURED.len(),
            of,
            seed,
            body,
        }
    }
}

/// Everything that a backend makes of an answer.
#[derive(Debug, PartialEq)]
pub(crate) enum Read {
    /// For a reply: its events with their frames, and its ending.
    Events(Vec<(usize, Meaning)>, Result<(), Error>),
    /// Of an answer with an error status.
    Refusal(Refusal),
    Models(Result<Vec<ServedModel>, Error>),
    Metrics(Result<Vec<Reading>, Error>),
}

/// An answer read by a backend: batches make no difference, state stays small, figures finite.
pub fn decode(data: &[u8]) {
    read(&Question::new(data));
}

/// Reads an answer natively.
pub(crate) fn read(question: &Question<'_>) -> Read {
    thread_local! {
        static BACKENDS: [Box<dyn Native>; CONFIGURED.len()] = CONFIGURED.map(native);
    }
    BACKENDS.with(|backends| backends[question.configured].read(question))
}

fn native((name, config): (&str, &str)) -> Box<dyn Native> {
    match name {
        "anthropic" => opened::<anthropic::Anthropic>(config),
        "cohere" => opened::<cohere::Cohere>(config),
        "gemini" => opened::<gemini::Gemini>(config),
        "llamacpp" => opened::<llamacpp::LlamaCpp>(config),
        "ollama" => opened::<ollama::Ollama>(config),
        "openai" => opened::<openai::OpenAi>(config),
        "tensorrt-llm" => opened::<tensorrt_llm::TensorRtLlm>(config),
        "tgi" => opened::<tgi::Tgi>(config),
        "triton-grpc" => opened::<triton_grpc::Triton>(config),
        "realtime" => opened::<realtime::Realtime>(config),
        "vllm" => opened::<vllm::Vllm>(config),
        "sglang" => opened::<sglang::Sglang>(config),
        _ => opened::<lmdeploy::Lmdeploy>(config),
    }
}

fn opened<B: Backend>(config: &str) -> Box<dyn Native> {
    let config = runner_plugin::parse(config).expect("the configuration is right");
    Box::new(Instance(B::open(config).expect("it opens")))
}

trait Native {
    fn read(&self, question: &Question<'_>) -> Read;
}

struct Instance<B>(B);

impl<B: Backend> Native for Instance<B> {
    fn read(&self, question: &Question<'_>) -> Read {
        let Question { of, body, .. } = question;
        match of {
            ReplyKind::Reply { streaming } => {
                let frames = frames(framed(self.0.framing(*streaming)), body);
                let fold = |seed| fold(&self.0, *streaming, &batches(&frames, seed));
                let (one_by_one, end) = fold(0);
                let (events, ended) = fold(question.seed);
                assert_eq!(end, ended, "batches");
                match end {
                    Ok(()) => assert_eq!(one_by_one, events, "batches"),
                    // Of a batch that fails, the events before the fault are lost.
                    Err(_) => assert!(one_by_one.starts_with(&events), "batches"),
                }
                Read::Events(events, ended)
            }
            ReplyKind::Error { status } => Read::Refusal(self.0.explain(*status, body)),
            ReplyKind::Models => Read::Models(self.0.read_models(body)),
            ReplyKind::Metrics => {
                let readings = self.0.read_metrics(body);
                for reading in readings.iter().flatten() {
                    assert!(reading.value.is_finite(), "{reading:?}");
                }
                Read::Metrics(readings)
            }
        }
    }
}

/// Folds batches of frames as the component does: the state is bytes between two of them.
fn fold<B: Backend>(
    backend: &B,
    streaming: bool,
    batches: &[Frames],
) -> (Vec<(usize, Meaning)>, Result<(), Error>) {
    let mut events = Vec::new();
    let head = Head { status: 200, headers: Vec::new(), streaming, context: Vec::new() };
    let state = match backend.begin(&head) {
        Ok(state) => state,
        Err(error) => return (events, Err(error)),
    };
    let mut kept = postcard::to_allocvec(&state).expect("the state can be written");
    let mut before = 0;
    for batch in batches {
        let mut state: B::State = postcard::from_bytes(&kept).expect("the state reads back");
        let mut of_batch = Vec::new();
        let mut meanings = Vec::new();
        for (index, frame) in batch.iter().enumerate() {
            let frame = Frame { name: frame.name, data: frame.data };
            if let Err(error) = backend.decode(&mut state, &frame, &mut meanings) {
                return (events, Err(error));
            }
            assert_eq!(backend.unread(&state), 0, "no framing but raw leaves bytes");
            of_batch.extend(meanings.drain(..).map(|meaning| (before + index, meaning)));
        }
        events.append(&mut of_batch);
        before += batch.len();
        kept = postcard::to_allocvec(&state).expect("the state can be written");
        assert!(kept.len() <= STATE_BYTES, "a state of {} bytes", kept.len());
    }
    (events, Ok(()))
}

fn framed(framing: Framing) -> model::frame::Framing {
    match framing {
        Framing::EventStream => model::frame::Framing::EventStream,
        Framing::Lines => model::frame::Framing::Lines,
        Framing::Whole => model::frame::Framing::Whole,
        other => unreachable!("no backend that ships has {other:?}"),
    }
}

pub(crate) fn frames(framing: model::frame::Framing, body: &[u8]) -> Frames {
    let mut frames = Frames::default();
    let mut framer = Framer::new(framing);
    if framer.push(Nanos::ZERO, body, &mut frames).is_ok() {
        framer.finish(Nanos::ZERO, &mut frames);
    }
    frames
}

/// The frames in batches whose lengths follow from a seed; of one frame each where it is 0.
pub(crate) fn batches(frames: &Frames, seed: u8) -> Vec<Frames> {
    let mut batches = Vec::new();
    let mut dice = Cuts::new(seed, &[]);
    let mut batch = Frames::default();
    for frame in frames.each() {
        batch.append(&frame);
        if dice.below(5) == 0 {
            batches.push(std::mem::take(&mut batch));
        }
    }
    batches.extend((!batch.is_empty()).then_some(batch));
    batches
}
