//! The outlook: the requests that a run would send, drawn and written with the calls of a run. Only
//! figures are kept, so memory does not grow with the plan. A saved run's answers, the recorded
//! answer or a text of about the requested length stand in for live answers.

pub mod export;
mod tally;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use load::pace::Signal;
use model::arrival::Due;
use model::exchange::{Outcome, Phase};
use model::session::History;
use model::units::Nanos;
use plugins::backend::{Message, Part, Prompt, Role, Sample};
use plugins::{PluginError, chat};
use runs::outlook::{End, Outlook, Said, Shown};
use scenario::plan::{Amount, Plan};
use tokenizer::Tokenizer;

use crate::check::CheckedRun;
use crate::decode::failures::FailureLimit;
use crate::parts::{Parts, RunError};
use crate::pending::{ComposedSample, PendingRequest};
use crate::prepare::gather::{Gathering, Whole, policy};
use crate::prepare::{Drawing, Writer, amount, plan_broken, salt, spares};
use crate::prompts::{self, Tokenized};
use crate::resolve::ResolvedRun;
use crate::sessions::graph::Graph;
use crate::sessions::history::{ReplyContent, text_message};
use runs::folder::{FolderError, RunFolder};
use tally::Tally;

/// The model's name in requests where the scenario names none.
pub const PLACEHOLDER: &str = "MODEL";
/// The most requests to draw if the plan has no number.
pub const ENDLESS: u64 = 10_000;

/// The question of an outlook: its details, and its limit.
#[derive(Clone, Debug)]
pub struct Question {
    /// Draw no further session after this many requests.
    pub at_most: Option<u64>,
    pub show: u64,
    /// The most characters to show of a message; absent for all.
    pub cut: Option<usize>,
    /// The answers that stand in histories, instead of the recorded ones.
    pub answers: Answers,
}

pub struct DrawnSession {
    /// Due time of its root, if that is known.
    pub due: Option<Nanos>,
    /// Its requests, the root first, in the dataset's order.
    pub requests: Vec<Request>,
}

pub struct Request {
    pub index: u64,
    /// The sample as the dataset gave it.
    pub given: Sample,
    /// The sample as the backend got it: with its history and the plan's system prompt and salt.
    pub sent: Sample,
    /// True if answers stand in its history that a run would replace.
    pub is_estimate: bool,
    /// Tokens of its prompt, if they are known.
    pub input_tokens: Option<u64>,
    /// Tokens that it asks for, if it asks for any number.
    pub output_tokens: Option<u32>,
    digest: String,
    bytes: u64,
    fault: Option<String>,
    tokens: Option<Tokenized>,
}

#[derive(Debug, thiserror::Error)]
pub enum OutlookError {
    #[error(transparent)]
    Plugin(#[from] PluginError),
    #[error(transparent)]
    Ended(#[from] RunError),
}

impl ResolvedRun {
    /// Takes the targets as they are, unasked. Second, true if the model's name is a placeholder.
    pub fn unasked(self) -> (CheckedRun, bool) {
        let model = self.draft.target.model().map(str::to_owned);
        let is_placeholder = model.is_none();
        (self.with_model(model.unwrap_or_else(|| PLACEHOLDER.to_owned())), is_placeholder)
    }
}

impl CheckedRun {
    /// Computes the requests of the run, up to a stop of `signal`. `each` gets every session in
    /// order; an error from it ends the drawing.
    pub fn outlook<E: From<OutlookError>>(
        &self,
        question: &Question,
        signal: &Signal,
        mut each: impl FnMut(&DrawnSession) -> Result<(), E>,
    ) -> Result<Outlook, E> {
        let failures = FailureLimit::new(signal.clone());
        let mut looking = Looking::open(self, question, &failures).map_err(E::from)?;
        let end = looking.run(signal, &mut each)?;
        match failures.abort_reason() {
            Some(why) => Err(OutlookError::Ended(why).into()),
            None => Ok(looking.finish(end).map_err(E::from)?),
        }
    }
}

struct Looking<'r> {
    plan: Plan,
    parts: &'r Parts,
    tokenizer: &'r Tokenizer,
    question: &'r Question,
    writer: Writer,
    drawing: Drawing,
    made_up: MadeUp,
    tally: Tally,
    sessions: Option<u64>,
}

impl<'r> Looking<'r> {
    fn open(
        run: &'r CheckedRun,
        question: &'r Question,
        failures: &FailureLimit,
    ) -> Result<Self, OutlookError> {
        let mut plan = run.plan.clone();
        if plan.load.salted {
            // That of a run follows from when it begins; this one is the same on every machine.
            plan.load.salt = Some(salt(plan.load.seed, "", &run.tokenizer));
        }
        let writer = Writer::open(&plan, &run.parts, failures, &Arc::default())?;
        let samples = run.parts.dataset.open(plan.load.seed, amount(&plan.load))?;
        let planned = plan.requests().unwrap_or(u64::MAX);
        let mut looking = Looking {
            sessions: sessions(&plan, &run.parts),
            tally: Tally::new(question, &plan.control),
            made_up: MadeUp::new(&run.tokenizer),
            drawing: Drawing::new(samples, planned),
            parts: &run.parts,
            tokenizer: &run.tokenizer,
            plan,
            question,
            writer,
        };
        looking.warm_up()?;
        Ok(looking)
    }

    fn warm_up(&mut self) -> Result<(), OutlookError> {
        let count = self.plan.load.warmup_requests();
        for (index, sample) in (0..).zip(spares(&mut self.drawing.samples, count, || false)?) {
            let pending = PendingRequest::alone(index, Phase::Warmup, sample);
            let request = self.write(pending, None);
            self.tally.warm_up(&request);
        }
        Ok(())
    }

    /// Draws until the end, and returns which end was reached.
    fn run<E: From<OutlookError>>(
        &mut self,
        signal: &Signal,
        each: &mut impl FnMut(&DrawnSession) -> Result<(), E>,
    ) -> Result<End, E> {
        let failed = |error: PluginError| E::from(OutlookError::from(error));
        let limit = match (self.question.at_most, self.plan.load.amount) {
            (Some(most), _) => most,
            (None, Amount::Duration(_)) if self.sessions.is_none() => ENDLESS,
            (None, _) => u64::MAX,
        };
        let mut due_times = self.plan.due_times(&self.parts.trace);
        let mut gathering = Gathering::new(&self.plan);
        let mut ended = false;
        while !ended {
            let batch = self.drawing.next().transpose().map_err(failed)?;
            ended = batch.is_none();
            let batch = batch.map_or(vec![None], |batch| batch.into_iter().map(Some).collect());
            for sample in batch {
                if signal.is_stopped() {
                    return Ok(End::Interrupted);
                }
                let broken = |what: String| failed(plan_broken(&self.plan, &what));
                let whole = match sample {
                    Some(sample) => gathering.add(sample).map_err(broken)?,
                    None => gathering.finish(),
                };
                if let Some(whole) = whole {
                    if self.sessions.is_some_and(|most| self.tally.counts.count >= most) {
                        return Ok(End::Whole);
                    }
                    if self.tally.requests >= limit {
                        return Ok(End::Limit);
                    }
                    let due = match due_times.next() {
                        Some(Due::At(due)) => Some(due),
                        Some(Due::WhenFree) | None => None,
                    };
                    let session = self.session(whole, due).map_err(E::from)?;
                    self.tally.add(&session);
                    each(&session)?;
                }
                if gathering.is_over() {
                    return Ok(End::Whole);
                }
            }
        }
        let (drawn, planned) = match self.plan.load.amount {
            Amount::Requests(_) => (self.tally.requests, self.plan.requests()),
            Amount::Sessions(_) => (self.tally.counts.count, self.plan.load.roots()),
            Amount::Duration(_) => (self.tally.counts.count, self.sessions.or(Some(u64::MAX))),
        };
        let is_short = planned.is_some_and(|planned| drawn < planned);
        Ok(if is_short { End::Dataset } else { End::Whole })
    }

    fn session(&mut self, whole: Whole, due: Option<Nanos>) -> Result<DrawnSession, OutlookError> {
        let samples = whole.samples;
        let mut requests = Vec::with_capacity(samples.len());
        if let [(index, sample)] = samples.as_slice() {
            let pending = PendingRequest::alone(*index, Phase::Measure, sample.clone());
            requests.push(self.write(pending, None));
            return Ok(DrawnSession { due, requests });
        }
        let policy = policy(&self.plan);
        let given: Vec<Sample> = samples.iter().map(|(_, sample)| sample.clone()).collect();
        let mut graph =
            Graph::new(samples, policy).map_err(|what| plan_broken(&self.plan, &what))?;
        let mut ready = vec![0];
        while let Some(node) = ready.pop() {
            let composed = graph.compose(node).map_err(|what| plan_broken(&self.plan, &what))?;
            let request = self.request(graph.index(node), composed, &given[node]);
            requests.push(request);
            let answer = self.answer(&given[node]);
            // The time of its end is unknown, and does not change the requests.
            let steps = graph.over(node, Nanos::ZERO, Some(answer));
            ready.extend(steps.ready);
        }
        requests.sort_by_key(|request| request.index);
        Ok(DrawnSession { due, requests })
    }

    fn request(&mut self, index: u64, composed: ComposedSample, given: &Sample) -> Request {
        let history = composed.history;
        let is_known = self.plan.request.history == History::Recorded
            && history.is_none_or(|history| history.recorded == history.answers);
        let pending = PendingRequest::of_session(index, composed);
        let mut request = self.write(pending, Some(given));
        let needs_answers = history.is_some() || !given.prompt.quotes().is_empty();
        request.is_estimate = needs_answers && !is_known && self.question.answers.is_empty();
        request
    }

    fn answer(&mut self, sample: &Sample) -> ReplyContent {
        if let Some(given) = self.question.answers.reply(&sample.id) {
            return given;
        }
        let tokens = self.plan.request.output_tokens.or(sample.output_tokens);
        let made_up = || self.made_up.answer(self.tokenizer, tokens);
        let answer = sample.recorded_answer.clone().unwrap_or_else(made_up);
        ReplyContent { answer, carry: None }
    }

    fn write(&mut self, mut pending: PendingRequest, given: Option<&Sample>) -> Request {
        let given = given.cloned().unwrap_or_else(|| pending.composed.sample.clone());
        self.writer.complete(&mut pending);
        let item = self.writer.write_complete(&pending);
        let (path, fault) = match &item.request {
            Ok(ready) => (prompts::path(&ready.outgoing.request).to_owned(), None),
            Err(Outcome::Incomplete { message, .. }) => (String::new(), Some(message.clone())),
            Err(Outcome::Ok) => (String::new(), None),
        };
        let facts = &item.prepared.sample;
        let tokenized = prompts::tokenize(self.tokenizer, &pending.composed.sample, &path);
        let ours = tokenized.as_ref().map(|made| made.tokens.len() as u64);
        // A dataset counts its own prompt, without the text that is put before it.
        let by_dataset = pending.composed.sample.input_tokens.map(u64::from);
        Request {
            index: pending.index,
            is_estimate: false,
            input_tokens: by_dataset.or(ours),
            output_tokens: facts.output_tokens,
            digest: facts.request_digest.clone(),
            bytes: facts.request_bytes,
            fault,
            tokens: tokenized,
            given,
            sent: pending.composed.sample,
        }
    }

    fn finish(mut self, end: End) -> Result<Outlook, OutlookError> {
        let remarks = self.drawing.samples.remarks()?;
        Ok(self.tally.finish(&self.plan, end, remarks))
    }
}

/// Returns the number of due sessions, if the plan knows it.
fn sessions(plan: &Plan, parts: &Parts) -> Option<u64> {
    let Amount::Duration(duration) = plan.load.amount else { return None };
    let mut due = 0;
    for next in plan.due_times(&parts.trace) {
        match next {
            Due::WhenFree => return None,
            Due::At(at) if at >= duration => break,
            Due::At(_) => due += 1,
        }
    }
    Some(due)
}

/// The words that made-up answers are made of: most tokenizers have a token for each.
const WORDS: &str =
    "the time of the day was long and the people said that it would be a good year for all of us ";

/// The longest that is made up, in tokens.
const LONGEST: usize = 1 << 20;

struct MadeUp {
    words: Vec<u32>,
    /// The last one, by its tokens: mostly they are all as long.
    last: Option<(usize, String)>,
}

impl MadeUp {
    fn new(tokenizer: &Tokenizer) -> Self {
        let words = tokenizer.encode(&[WORDS.to_owned()], false);
        MadeUp { words: words.unwrap_or_default().pop().unwrap_or_default(), last: None }
    }

    /// An answer of about this many tokens; empty if no number is requested.
    fn answer(&mut self, tokenizer: &Tokenizer, tokens: Option<u32>) -> Message {
        let wanted = tokens.map_or(0, |tokens| (tokens as usize).min(LONGEST));
        let text = match &self.last {
            Some((tokens, text)) if *tokens == wanted => text.clone(),
            _ => {
                let ids: Vec<u32> = self.words.iter().copied().cycle().take(wanted).collect();
                let decoded = tokenizer.decode(&[ids]).ok();
                let text = decoded.and_then(|mut texts| texts.pop());
                let text = text.unwrap_or_default();
                self.last = Some((wanted, text.clone()));
                text
            }
        };
        text_message(Role::Assistant, &text)
    }
}

fn shown(request: &Request, cut: Option<usize>) -> Shown {
    Shown {
        index: request.index,
        id: request.given.id.clone(),
        input_tokens: request.input_tokens,
        output_tokens: request.output_tokens,
        prompt: messages(&request.sent, cut),
    }
}

fn messages(sample: &Sample, cut: Option<usize>) -> Vec<Said> {
    let one = |role: Option<&str>, text: String| {
        let cut = cut.and_then(|most| text.char_indices().nth(most));
        let (text, left_out) = match cut {
            None => (text, 0),
            Some((at, _)) => (text[..at].to_owned(), text[at..].chars().count() as u64),
        };
        Said { role: role.map(str::to_owned), text, left_out }
    };
    match &sample.prompt {
        Prompt::Text(text) => vec![one(None, text.clone())],
        Prompt::Tokens(tokens) => {
            let ids: Vec<String> = tokens.iter().map(u32::to_string).collect();
            vec![one(Some("tokens"), ids.join(" "))]
        }
        Prompt::Embedding(texts) => texts.iter().map(|text| one(None, text.clone())).collect(),
        Prompt::Ranking(texts) => {
            let documents = texts.documents.iter();
            let documents = documents.map(|text| one(Some("document"), text.clone()));
            let query = one(Some("query"), texts.query.clone());
            std::iter::once(query).chain(documents).collect()
        }
        Prompt::Messages(messages) => messages.iter().map(|of| message(of, &one)).collect(),
        Prompt::Continuation(next) => next.messages.iter().map(|of| message(of, &one)).collect(),
    }
}

fn message(message: &Message, one: &impl Fn(Option<&str>, String) -> Said) -> Said {
    let parts = message.parts.iter().map(|part| match part {
        Part::Text(text) => text.clone(),
        Part::Image(media) | Part::Audio(media) | Part::Video(media) => {
            format!("[{}, {} bytes]", media.media_type, media.bytes.len())
        }
        Part::Answer(of) => format!("[the answer to {of}]"),
    });
    let mut text: String = parts.collect();
    if let Some(extra) = &message.extra {
        text.push_str(extra);
    }
    one(Some(chat::role(message.role)), text)
}

/// The answers of one run or of two, each by its sample's name.
#[derive(Clone, Debug, Default)]
pub struct Answers(Vec<HashMap<String, [String; 2]>>);

/// Digits of the text in the marks around an answer: 48 bits.
const NONCE: usize = 12;

impl Answers {
    /// Reads the answers of a further run: text and tool calls.
    pub fn add(&mut self, run: &RunFolder) -> Result<(), FolderError> {
        let mut answers = HashMap::new();
        for exchange in run.read()? {
            let exchange = exchange?;
            let texts = [&exchange.output, &exchange.tool_calls, &exchange.reasoning];
            let has_text = texts.iter().any(|text| !text.is_empty());
            if exchange.phase == Phase::Measure && exchange.has_answer() && has_text {
                answers.insert(exchange.sample.id, [exchange.output, exchange.tool_calls]);
            }
        }
        self.0.push(answers);
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first run's answer to a sample, as a part of a history.
    fn reply(&self, sample: &str) -> Option<ReplyContent> {
        let [output, tool_calls] = self.0.first()?.get(sample)?;
        Some(ReplyContent::saying(output, tool_calls))
    }

    /// Makes the rows of a session: a row for each request that every run answered.
    pub fn rows(&self, drawn: &DrawnSession) -> impl Iterator<Item = Value> {
        drawn.requests.iter().filter_map(|request| self.row(request))
    }

    fn row(&self, request: &Request) -> Option<Value> {
        let sample = &request.given;
        let reference = sample.reference.as_deref();
        let mut row = json!({
            "id": sample.id,
            "class": sample.class,
            "question": question(request),
            "reference": reference.and_then(|json| serde_json::from_str::<Value>(json).ok()),
        });
        let names: &[&str] = match self.0.len() {
            1 => &["answer"],
            _ => &["answer-a", "answer-b"],
        };
        for (name, run) in names.iter().zip(&self.0) {
            let texts = run.get(&sample.id)?.iter().filter(|text| !text.is_empty());
            row[*name] = json!(texts.map(String::as_str).collect::<Vec<_>>().join("\n"));
        }
        // A digest of all texts, so that whoever wrote one of them does not know it.
        let digest = model::hex(&Sha256::digest(row.to_string()));
        row["nonce"] = json!(digest[..NONCE]);
        Some(row)
    }
}

/// The question as text: a single text as it is, of a conversation every message under its author.
fn question(request: &Request) -> String {
    let messages = messages(&request.sent, None);
    if let [only] = messages.as_slice()
        && only.role.as_deref().is_none_or(|role| role == "user")
    {
        return only.text.clone();
    }
    let under = messages.iter().map(|one| match &one.role {
        Some(role) => format!("[{role}]\n{}", one.text),
        None => one.text.clone(),
    });
    under.collect::<Vec<_>>().join("\n\n")
}

/// True if two plans draw the same samples: as many, from the same dataset, with the same seed.
pub fn draw_alike(one: &Plan, other: &Plan) -> bool {
    let drawn = |plan: &Plan| {
        let plugin = &plan.dataset.plugin;
        let files = plan.dataset.files.iter();
        let files: BTreeMap<_, _> = files.map(|(name, file)| (name, &file.digest)).collect();
        let (load, tokenizer) = (&plan.load, plan.tokenizer.digest.clone());
        let dataset = (plugin.digest.clone(), plugin.config.to_string(), format!("{files:?}"));
        (dataset, tokenizer, load.amount, load.warmup, load.seed)
    };
    drawn(one) == drawn(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_the_requested_length() {
        let tokenizer = Tokenizer::bytes();
        let mut made_up = MadeUp::new(&tokenizer);
        for tokens in [Some(300), Some(300), Some(1), Some(0), None] {
            let answer = made_up.answer(&tokenizer, tokens);
            let [Part::Text(text)] = answer.parts.as_slice() else { panic!("one text") };
            assert_eq!(text.len(), tokens.unwrap_or(0) as usize);
        }
    }
}
