//! Triton's generate extension, with the inputs and outputs of the models `ensemble` and
//! `tensorrt_llm_bls` that TensorRT-LLM makes for it
//! (`triton_backend/all_models/inflight_batcher_llm/ensemble/config.pbtxt`).

use std::borrow::Cow;

use runner_plugin::dialect::{explain, frames};
use runner_plugin::{Body, Error, Frame, Head, Meaning, Output, Prompt, Request, Sample};
use runner_plugin::{ServedModel, Setting, Settings, Timings, Usage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Config;

/// The models that `ensemble` and `tensorrt_llm_bls` are made of, which take no text.
const PARTS: [&str; 5] = [
    "preprocessing",
    "postprocessing",
    "tensorrt_llm",
    "tensorrt_llm_draft",
    "multimodal_encoders",
];

/// The most sequences of a reply with their own counts: state must stay small.
const SEQUENCES: u32 = 1024;

pub fn list_models() -> Request {
    let mut body = Body::new();
    body.set("ready", true);
    Request::json("/v2/repository/index", &body)
}

/// The models in the answer to [`list_models`]: an entry for each version.
pub fn read_models(body: &[u8]) -> Result<Vec<ServedModel>, Error> {
    #[derive(Deserialize)]
    struct Model {
        name: String,
        #[serde(default)]
        state: String,
    }
    let list: Vec<Model> = frames::json(body, "a list of models")?;
    let mut served: Vec<ServedModel> = Vec::new();
    for model in list {
        let is_known = served.iter().any(|known| known.name == model.name);
        if !is_known && model.state != "UNAVAILABLE" && !PARTS.contains(&model.name.as_str()) {
            served.push(ServedModel::named(model.name));
        }
    }
    Ok(served)
}

pub fn encode(config: &Config, sample: &Sample, settings: &Settings) -> Result<Request, Error> {
    let text = match &sample.prompt {
        Prompt::Text(text) => text,
        Prompt::Messages(_) | Prompt::Continuation(_) => {
            return Err(not_taken(
                sample,
                "set route = \"chat\" for trtllm-serve, or have the dataset give text",
            ));
        }
        Prompt::Tokens(_) => {
            return Err(not_taken(
                sample,
                "set route = \"completions\" for trtllm-serve, or have the dataset give text",
            ));
        }
        Prompt::Embedding(_) | Prompt::Ranking(_) => {
            return Err(not_taken(sample, "name another dataset, or another backend"));
        }
    };
    let Some(limit) = settings.output_tokens_for(sample) else {
        return Err(Error::config(
            "key `output-tokens` (--output-tokens): a model behind Triton needs the length of every answer; set \
             it, or have the dataset give lengths",
        ));
    };
    settings.refuse(sample, "Triton's generate extension", &[Setting::MinP])?;
    let sampling = &settings.sampling;
    let minimum = if settings.ignore_eos { Some(limit) } else { settings.min_output_tokens };
    // A temperature of 0 means the likeliest token, which every release understands in this way.
    let greedy = sampling.temperature == Some(0.0);
    let mut body = Body::new();
    body.set("text_input", text)
        .set("max_tokens", limit)
        .set_some(&config.min_tokens_field, minimum)
        .set_some("end_id", settings.ignore_eos.then_some(config.end_id))
        .set_some("temperature", sampling.temperature.filter(|_| !greedy))
        .set_some("top_p", sampling.top_p.filter(|_| !greedy))
        .set_some("top_k", sampling.top_k.filter(|_| !greedy).or(greedy.then_some(1)))
        .set_some("repetition_penalty", sampling.repetition_penalty)
        .set_some("presence_penalty", sampling.presence_penalty)
        .set_some("frequency_penalty", sampling.frequency_penalty)
        .set_some(&config.seed_field, sampling.seed);
    body.set_list("stop_words", &sampling.stop);
    body.set_some("lora_task_id", adapter(sample)?)
        .set("stream", settings.streaming)
        // Otherwise the output may begin with the prompt.
        .set("exclude_input_in_output", true)
        .set("return_num_input_tokens", true)
        .set("return_num_output_tokens", true)
        // It tells the last event, which nothing else does.
        .set("return_perf_metrics", true);
    settings.lay_over(&mut body, sample)?;
    Ok(Request::json(path(config, settings), &body))
}

fn not_taken(sample: &Sample, remedy: &str) -> Error {
    Error::InvalidConfig(format!(
        "key `route`: the dataset gives {}, which Triton's generate extension does not accept; {remedy}",
        sample.prompt.kind()
    ))
}

/// The adapter by its number, its only name in the engine.
fn adapter(sample: &Sample) -> Result<Option<u64>, Error> {
    let Some(name) = &sample.adapter else { return Ok(None) };
    name.parse().map(Some).map_err(|_| {
        Error::InvalidConfig(format!(
            "key `adapters` (--lora-modules): TensorRT-LLM knows adapters by number; expected one such as `7`, found \
             `{name}`"
        ))
    })
}

fn path(config: &Config, settings: &Settings) -> String {
    let mut path = format!("/v2/models/{}", Request::segment(&settings.model));
    if let Some(version) = &config.version {
        path.push_str("/versions/");
        path.push_str(&Request::segment(version));
    }
    path.push_str(if settings.streaming { "/generate_stream" } else { "/generate" });
    path
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    begun: bool,
    /// True if the end marker has been given, or is not needed.
    ended: bool,
    /// Tokens so far, if every event had a count.
    tokens: u32,
    uncounted: bool,
    /// Bytes of the text so far of each sequence, where events repeat it.
    seen: Vec<u32>,
    /// Number of sequences, and number of complete ones.
    sequences: u32,
    complete: u32,
}

/// The state before the first frame. The host itself finds the end of a reply that is not streamed.
pub fn begin(head: &Head) -> Reply {
    Reply { ended: !head.streaming, ..Reply::default() }
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    text_output: Option<Text<'a>>,
    num_input_tokens: Option<u32>,
    num_output_tokens: Option<u32>,
    sequence_index: Option<u32>,
    // Instants in nanoseconds of a clock of its own; 0 until then.
    arrival_time_ns: Option<i64>,
    first_scheduled_time_ns: Option<i64>,
    first_token_time_ns: Option<i64>,
    /// Time when the last token was made.
    last_token_time_ns: Option<i64>,
    total_draft_tokens: Option<u32>,
    total_accepted_draft_tokens: Option<u32>,
}

/// The engine's own measurements of one sequence.
struct Measurement {
    timings: Timings,
    drafted: Option<u32>,
    accepted: Option<u32>,
}

impl Measurement {
    fn from_event(event: &Event<'_>) -> Self {
        let between = |from: Option<i64>, to: Option<i64>| {
            let [from, to] = [from, to].map(|at| at.filter(|at| *at > 0));
            Some(to?.saturating_sub(from?) as f64 / 1e6)
        };
        let (arrival, scheduled) = (event.arrival_time_ns, event.first_scheduled_time_ns);
        let (first, last) = (event.first_token_time_ns, event.last_token_time_ns);
        // An engine that does not speculate states zeros.
        let drafted = event.total_draft_tokens.filter(|drafted| *drafted > 0);
        Measurement {
            timings: Timings {
                queue: between(arrival, scheduled),
                prefill: between(scheduled, first),
                first_token: between(arrival, first),
                decode: between(first, last),
            },
            drafted,
            accepted: drafted.and(event.total_accepted_draft_tokens),
        }
    }
}

/// A text, or several where there are several beams.
#[derive(Deserialize)]
#[serde(untagged)]
enum Text<'a> {
    One(#[serde(borrow)] Cow<'a, str>),
    Several(Vec<String>),
}

/// Appends the events of one frame. `accumulated` says that the texts repeat the earlier text.
pub fn decode(
    reply: &mut Reply,
    accumulated: bool,
    frame: &Frame<'_>,
    events: &mut Vec<Meaning>,
) -> Result<(), Error> {
    let data = frame.data.trim_ascii();
    let event: Event = serde_json::from_slice(data).map_err(|error| wrong(data, &error))?;
    if let Some(error) = event.error {
        events.push(Meaning::Failure(explain::in_band(error.get().as_bytes())));
        return Ok(());
    }
    let measured = Measurement::from_event(&event);
    let Some(text) = event.text_output else {
        return Err(wrong(data, &"it has no text_output or error"));
    };
    let is_last = event.last_token_time_ns.is_some_and(|time| time != 0);
    let tokens = event.num_output_tokens;
    match tokens {
        Some(tokens) => reply.tokens = reply.tokens.saturating_add(tokens),
        None => reply.uncounted = true,
    }
    let index = event.sequence_index.unwrap_or(0);
    match text {
        Text::One(text) => {
            reply.sequences = reply.sequences.max(index.min(SEQUENCES).saturating_add(1));
            let new = if accumulated { reply.new_text(index, &text, is_last) } else { &text };
            reply.say(new.to_owned(), tokens, index, is_last, events);
        }
        Text::Several(texts) => {
            reply.sequences = reply.sequences.max(1);
            let one = texts.len() == 1;
            for (text, choice) in texts.into_iter().zip(0..) {
                let new = if accumulated {
                    reply.new_text(choice, &text, is_last).to_owned()
                } else {
                    text
                };
                reply.say(new, tokens.filter(|_| one), choice, is_last, events);
            }
        }
    }
    if reply.ended {
        reply.count(event.num_input_tokens, measured, events);
        return Ok(());
    }
    if is_last {
        reply.complete = reply.complete.saturating_add(1);
        reply.count(event.num_input_tokens, measured, events);
        if reply.complete >= reply.sequences {
            reply.ended = true;
            events.push(Meaning::End);
        }
    }
    Ok(())
}

impl Reply {
    fn say(
        &mut self,
        text: String,
        tokens: Option<u32>,
        choice: u32,
        is_last: bool,
        events: &mut Vec<Meaning>,
    ) {
        let first = !std::mem::replace(&mut self.begun, true);
        let counted = tokens.is_some_and(|tokens| tokens > 0);
        // No text and no count is perhaps a token: half a character, say.
        if !text.is_empty() || counted || (tokens.is_none() && !first && !is_last) {
            events.push(Meaning::Text(Output { text, tokens, choice }));
        } else if first && !is_last {
            events.push(Meaning::Opened);
        }
    }

    /// The new part of an accumulated text. Characters that stand for half a character at its end
    /// are left to the next event, which has the whole character in their place.
    fn new_text<'t>(&mut self, sequence: u32, text: &'t str, is_last: bool) -> &'t str {
        let place = sequence.min(SEQUENCES) as usize;
        if place >= self.seen.len() {
            self.seen.resize(place + 1, 0);
        }
        let text = if is_last { text } else { text.trim_end_matches(char::REPLACEMENT_CHARACTER) };
        let seen = &mut self.seen[place];
        let mut from = (*seen as usize).min(text.len());
        // The server may have rewritten more than that, which is not sent again.
        while !text.is_char_boundary(from) {
            from += 1;
        }
        *seen = (*seen).max(u32::try_from(text.len()).unwrap_or(u32::MAX));
        &text[from..]
    }

    /// Gives the counts, and the measurements if the reply has one sequence.
    fn count(&self, input: Option<u32>, measured: Measurement, events: &mut Vec<Meaning>) {
        let single = self.sequences <= 1;
        let usage = Usage {
            input_tokens: input,
            output_tokens: (!self.uncounted).then_some(self.tokens),
            draft_tokens: measured.drafted.filter(|_| single),
            accepted_draft_tokens: measured.accepted.filter(|_| single),
            ..Usage::default()
        };
        if usage != Usage::default() {
            events.push(Meaning::Usage(usage));
        }
        events.extend(measured.timings.meaning().filter(|_| single));
    }
}

fn wrong(data: &[u8], why: &dyn std::fmt::Display) -> Error {
    frames::unexpected(data, "an event of Triton", why)
}
