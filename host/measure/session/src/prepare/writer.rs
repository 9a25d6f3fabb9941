//! From a sample to a request: the plan's additions, the record, and the backend's call.

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

use sha2::{Digest, Sha256};

use super::{Item, ReadyRequest, front};
use crate::authenticate::{Outgoing, http_request};
use crate::decode::failures::{FailureLimit, failed};
use crate::decode::outgoing;
use crate::lease::Prepared;
use crate::parts::{Parts, RunError};
use crate::pending::{ComposedSample, PendingRequest};
use crate::prompts;
use crate::reuse::SentPrompts;
use http::header::HeaderName;
use load::drive::demand::{Course, First};
use load::transport::websocket::Message;
use model::connection::Version;
use model::exchange::{self, Class, Outcome, Phase, SampleFacts, Turn};
use model::frame::Framing;
use model::identity::{Identities, Member};
use model::target::{Secrets, Target};
use model::units::Nanos;
use model::{hex, redact};
use plugins::PluginError;
use plugins::backend::{Call, Dialect, Earlier, Prompt, Sample, Sampling, Settings};
use scenario::plan::{Plan, RequestOptions};
use serde_json::Value;

/// Characters of a prompt's end that are recorded where its answer will be judged.
const PROMPT_CHARS: usize = 240;

/// Characters of a prompt's end in which secrets are looked for.
const REDACTED_CHARS: usize = 4096;

pub struct Writer {
    plan: Plan,
    dialect: Dialect,
    settings: Settings,
    masked: MaskedSecrets,
    targets: Vec<Target>,
    version: Version,
    secrets: Secrets,
    failures: FailureLimit,
    count: u64,
    prompts: Option<Arc<SentPrompts>>,
    /// The values that the backend prepared, and the value in the settings.
    prepared: (Prepared, Option<Arc<[u8]>>),
    identities: Identities,
    /// The note of the first request beyond the model's context.
    beyond_context: Arc<OnceLock<String>>,
    /// True if requests force the length of answers; unknown before the first is written.
    forces_length: Option<bool>,
}

impl Writer {
    /// A writer for a run, with an instance of the backend of its own.
    pub fn open(
        plan: &Plan,
        parts: &Parts,
        failures: &FailureLimit,
        beyond_context: &Arc<OnceLock<String>>,
    ) -> Result<Self, PluginError> {
        let mut settings = settings(plan);
        let masked = MaskedSecrets::mask(&mut settings.extra_body);
        let taken = parts.secrets.headers.iter().map(|(name, _)| name.as_str());
        Ok(Writer {
            plan: plan.clone(),
            dialect: parts.backend.open()?,
            settings,
            masked,
            targets: parts.targets.clone(),
            version: plan.connection.http,
            secrets: parts.secrets.clone(),
            // Requests that can be written say nothing about replies that cannot be read.
            failures: failures.with_own_count(),
            count: 0,
            prompts: parts.prompts.clone(),
            prepared: (parts.prepared.clone(), None),
            identities: Identities::new(parts.run_id, &plan.request.ids, taken),
            beyond_context: Arc::clone(beyond_context),
            forces_length: None,
        })
    }

    fn note_beyond_context(&self, sample: &Sample) {
        let (Some(context), Some(input)) = (self.plan.target.context_tokens, sample.input_tokens)
        else {
            return;
        };
        let output = sample.output_tokens.unwrap_or(0);
        if u64::from(input) + u64::from(output) > u64::from(context) {
            self.beyond_context.get_or_init(|| {
                format!(
                    "a request of {input} + {output} tokens does not fit into the model's context of {context}: use shorter prompts or answers, or start the engine with a longer context"
                )
            });
        }
    }

    pub(super) fn framing(&mut self) -> Result<Framing, PluginError> {
        Ok(self.dialect.framing(self.plan.request.stream)?.into())
    }

    /// Returns the facts about a sample that are recorded before its request is written.
    fn prepared(&self, pending: &PendingRequest) -> Box<exchange::Prepared> {
        let sample = &pending.composed.sample;
        let session = sample.turn.as_ref().map(|turn| turn.session.as_str());
        let lineage = pending.composed.lineage.as_ref();
        Box::new(exchange::Prepared {
            index: pending.index,
            phase: pending.phase,
            released: pending.composed.released,
            forces_length: false,
            ids: self.identities.ids(&Member {
                // A lane sends each request once, and its sessions keep their ids from its warm-up.
                phase: if pending.lane.is_some() { Phase::Measure } else { pending.phase },
                index: pending.index,
                root: lineage.map_or(pending.index, |lineage| lineage.root),
                session,
                parent: lineage.and_then(|lineage| lineage.parent.as_deref()),
                beginning: pending.beginning,
            }),
            sample: SampleFacts {
                id: sample.id.clone(),
                input_tokens: sample.input_tokens,
                audio_duration: sample.audio_duration.map(Nanos),
                recorded_duration: sample.recorded_duration.map(Nanos),
                output_tokens: sample.output_tokens,
                prompt_end: self.prompt_end(&sample.prompt),
                reference: sample
                    .reference
                    .as_ref()
                    .and_then(|reference| serde_json::from_str(reference).ok()),
                turn: sample
                    .turn
                    .as_ref()
                    .map(|turn| Turn { session: turn.session.clone(), index: turn.index }),
                class: sample.class.clone(),
                parents: pending.composed.parents.clone(),
                descendants: pending.descendants,
                history: pending.composed.history,
                adapter: sample.adapter.clone(),
                request_bytes: 0,
                request_digest: String::new(),
            },
            target: self.target_of(pending.index, session),
        })
    }

    /// The end of a prompt whose answer will be judged.
    fn prompt_end(&self, prompt: &Prompt) -> Option<String> {
        let is_judged = !self.plan.scorers.is_empty();
        // More than is kept, so that the cut leaves no part of a secret that could not be told.
        let end = is_judged.then(|| prompts::end(prompt, REDACTED_CHARS)).flatten()?;
        let clean = self.secrets.redact(end);
        Some(prompts::tail(&clean, PROMPT_CHARS).to_owned())
    }

    pub fn write(&mut self, mut pending: PendingRequest) -> Item {
        self.complete(&mut pending);
        self.write_complete(&pending)
    }

    /// Gives a sample the plan's additions.
    pub(crate) fn complete(&self, pending: &mut PendingRequest) {
        if self.identities.routes_by_prefix() {
            pending.beginning = prompts::beginning(&pending.composed.sample.prompt);
        }
        // The user's explicit value takes precedence over the dataset's.
        if let Some(tokens) = self.settings.output_tokens {
            pending.composed.sample.output_tokens = Some(tokens);
        }
        let lane = pending.lane.as_ref();
        if lane.is_some_and(|lane| lane.is_primer) {
            pending.composed.sample.output_tokens = Some(1);
        }
        if pending.composed.sample.adapter.is_none() {
            pending.composed.sample.adapter = self.plan.adapter(pending.index).map(str::to_owned);
        }
        let own = lane.and_then(|lane| lane.salt.as_deref());
        let behind = own.and_then(|own| own.behind.as_deref());
        let salt = own.map(|own| &own.before).or(self.plan.load.salt.as_ref());
        let system = self.plan.request.system_prompt.as_deref();
        let before = message_count(&pending.composed.sample.prompt);
        front::put(&mut pending.composed.sample.prompt, (system, behind), salt);
        if let Some(earlier) = &mut pending.composed.earlier {
            // The request before began with the same message of instructions.
            earlier.messages +=
                message_count(&pending.composed.sample.prompt).saturating_sub(before);
        }
    }

    /// Writes the request for a sample with the plan's additions.
    pub(crate) fn write_complete(&mut self, pending: &PendingRequest) -> Item {
        self.note_beyond_context(&pending.composed.sample);
        let mut prepared = self.prepared(pending);
        self.count += 1;
        let ComposedSample { sample, earlier, .. } = &pending.composed;
        let request = match self.request(sample, earlier.as_ref(), &mut prepared) {
            Ok((outgoing, framing, course)) => {
                if let Some(prompts) = &self.prompts {
                    let path = prompts::path(&outgoing.request);
                    prompts.keep(pending.phase, pending.index, sample, path);
                }
                let session = sample.turn.as_ref().map(|turn| Arc::from(&*turn.session));
                Ok(ReadyRequest { outgoing, framing, course, session })
            }
            Err(error) => {
                self.failures.count(self.count, &error);
                Err(failed(Class::Plugin, &error.to_string()))
            }
        };
        Item { prepared, request, entry: None }
    }

    pub fn abort(&self, why: RunError) {
        self.failures.abort(why);
    }

    /// A request that cannot be written, because its dataset broke the contract.
    pub fn faulty(&mut self, pending: PendingRequest, what: &str) -> Item {
        let outcome = failed(Class::Plugin, &format!("dataset: {what}"));
        self.unsent(pending, outcome)
    }

    pub fn unsent(&self, pending: PendingRequest, outcome: Outcome) -> Item {
        Item { prepared: self.prepared(&pending), request: Err(outcome), entry: None }
    }

    /// In turn, by the request's own number, which is the same in each slice of the plan. A
    /// conversation stays with one target, which has the earlier turns in its cache.
    fn target_of(&self, index: u64, session: Option<&str>) -> u32 {
        let number = session.map_or(index, |session| {
            let digest = Sha256::digest(session);
            digest.first_chunk().map_or(index, |bytes| u64::from_le_bytes(*bytes))
        });
        (number % self.targets.len() as u64) as u32
    }

    /// True if a request forces its answer's length: else the body is the same either way.
    fn is_forced(&mut self, sample: &Sample, earlier: Option<&Earlier>, body: &[u8]) -> bool {
        if !self.plan.request.forces_length() {
            return false;
        }
        let free = Settings { ignore_eos: false, ..self.settings.clone() };
        let free = self.dialect.encode(sample, &free, earlier);
        free.is_ok_and(|free| free.as_request().body != body)
    }

    /// True if a request is of use only for a time after it was written.
    pub(super) fn is_for_a_time(&self) -> bool {
        self.prepared.0.ends()
    }

    /// Puts the value that was prepared for a target into the settings.
    fn prepare(&mut self, target: u32) {
        let (values, held) = &mut self.prepared;
        let value = values.value(target);
        let is_held = match (&value, &*held) {
            (Some(value), Some(held)) => Arc::ptr_eq(value, held),
            (value, held) => value.is_none() && held.is_none(),
        };
        if !is_held {
            self.settings.prepared = value.as_deref().unwrap_or_default().to_vec();
            *held = value;
        }
    }

    /// Writes the first request, the framing of its reply if it is not the run's, and the course.
    fn request(
        &mut self,
        sample: &Sample,
        earlier: Option<&Earlier>,
        prepared: &mut exchange::Prepared,
    ) -> Result<(Outgoing, Option<Framing>, Course), PluginError> {
        self.prepare(prepared.target);
        let call = self.dialect.encode(sample, &self.settings, earlier)?;
        let broken = |writer: &Self, what: String| PluginError::Contract {
            plugin: writer.dialect.name().to_owned(),
            call: "encode",
            what,
        };
        // In the record, the messages of a WebSocket are the body.
        let of_socket = match &call {
            Call::Socket(_) => Some(call.as_request().into_owned()),
            Call::Request(_) | Call::Steps(_) => None,
        };
        let (mut encoded, framing, mut course) = match (call, of_socket) {
            (Call::Request(request), _) => (request, None, Course::One),
            (Call::Steps(step), _) => {
                let first =
                    First { accepted: step.accepted, context: step.context, fields: Vec::new() };
                let course = Course::Steps(Box::new(first));
                (step.request, Some(step.framing.into()), course)
            }
            (Call::Socket(socket), handshake) => {
                if self.version != Version::Http1 {
                    let what = "it opens a WebSocket, which needs HTTP/1.1: leave out --http 2";
                    return Err(broken(self, what.to_owned()));
                }
                let messages = socket.messages.into_iter().map(outgoing).collect();
                let request = handshake.unwrap_or_else(|| unreachable!("it was made above"));
                (request, None, Course::Socket(messages))
            }
        };
        prepared.forces_length = match self.forces_length {
            Some(forces) => forces,
            None => {
                let forces = self.is_forced(sample, earlier, &encoded.body);
                *self.forces_length.insert(forces)
            }
        };
        encoded.body = self.masked.restore(encoded.body);
        let target = &self.targets[prepared.target as usize];
        let facts = &mut prepared.sample;
        let path = target.path(&encoded.path);
        let mut hash = Sha256::new();
        for part in [encoded.method.as_bytes(), &[0], path.as_bytes(), &[0], &encoded.body] {
            hash.update(part);
        }
        facts.request_bytes = encoded.body.len() as u64;
        facts.request_digest = hex(&hash.finalize()[..8]);
        if let Course::Socket(messages) = &mut course {
            encoded.body = Vec::new();
            for outgoing in messages {
                restore(&self.masked, &mut outgoing.message);
            }
        }
        let has = |name: &HeaderName| {
            let mut names = encoded.headers.iter().map(|(name, _)| name);
            names.any(|other| other.eq_ignore_ascii_case(name.as_str()))
        };
        let ids = self.identities.fields(&mut prepared.ids, has);
        let request = http_request(target, self.version, (&self.secrets, &ids), &path, encoded);
        if let Course::Steps(first) = &mut course {
            first.fields = ids;
        }
        let request = request.map_err(|what| broken(self, what))?;
        Ok((request, framing, course))
    }
}

/// Puts secret values into a message where the plugin wrote their names.
fn restore(masked: &MaskedSecrets, message: &mut Message) {
    let bytes = match message {
        Message::Text(text) => std::mem::take(text).into_bytes(),
        Message::Binary(bytes) => std::mem::take(bytes),
    };
    let bytes = masked.restore(bytes);
    *message = match message {
        // Names and values are text, so the whole stays text.
        Message::Text(_) => match String::from_utf8(bytes) {
            Ok(text) => Message::Text(text),
            Err(error) => Message::Binary(error.into_bytes()),
        },
        Message::Binary(_) => Message::Binary(bytes),
    };
}

fn settings(plan: &Plan) -> Settings {
    let request = &plan.request;
    Settings {
        output_tokens: request.output_tokens,
        min_output_tokens: request.min_output_tokens,
        ignore_eos: request.ignore_eos,
        sampling: sampling(request),
        extra_body: request.extra_body.as_ref().map(ToString::to_string),
        ..Settings::bare(&plan.target.model, request.stream)
    }
}

pub(crate) fn sampling(request: &RequestOptions) -> Sampling {
    Sampling {
        temperature: request.temperature,
        top_p: request.top_p,
        top_k: request.top_k,
        min_p: request.min_p,
        frequency_penalty: request.frequency_penalty,
        presence_penalty: request.presence_penalty,
        repetition_penalty: request.repetition_penalty,
        seed: request.sampling_seed,
        stop: request.stop.clone(),
    }
}

fn message_count(prompt: &Prompt) -> u32 {
    match prompt {
        Prompt::Messages(messages) => u32::try_from(messages.len()).unwrap_or(u32::MAX),
        _ => 0,
    }
}

/// Secret values in the fields that the user adds to the body of requests. The backend plugin gets
/// names for them, and the host puts the values in after `encode`, as it does with the key.
#[derive(Default)]
pub(crate) struct MaskedSecrets {
    values: Vec<(String, Value)>,
}

impl MaskedSecrets {
    /// Takes the secret values out of the fields that the plugin gets.
    pub fn mask(extra_body: &mut Option<String>) -> Self {
        let mut masked = MaskedSecrets::default();
        let body = extra_body.as_ref();
        let Some(mut body) = body.and_then(|body| serde_json::from_str::<Value>(body).ok()) else {
            return masked;
        };
        let values = RefCell::new(Vec::new());
        redact::fields(&mut body, &|value| {
            let name = format!("runner-secret-{}-value", values.borrow().len());
            values.borrow_mut().push((name.clone(), value.clone()));
            name
        });
        masked.values = values.into_inner();
        if !masked.values.is_empty() {
            *extra_body = Some(body.to_string());
        }
        masked
    }

    /// Puts the values where the plugin wrote their names.
    pub fn restore(&self, mut body: Vec<u8>) -> Vec<u8> {
        for (name, value) in &self.values {
            let quoted = format!("\"{name}\"");
            body = replaced(body, quoted.as_bytes(), value.to_string().as_bytes());
        }
        body
    }
}

fn replaced(text: Vec<u8>, from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut new = Vec::new();
    let mut rest = &text[..];
    while let Some(at) = rest.windows(from.len()).position(|part| part == from) {
        new.extend_from_slice(&rest[..at]);
        new.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    if new.is_empty() {
        return text;
    }
    new.extend_from_slice(rest);
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_see_names_of_secrets_servers_see_values() {
        let body = r#"{"api_key":"a\"b","n":1,"user":{"hf_token":7,"name":"x"}}"#;
        let mut text = Some(body.to_owned());
        let masked = MaskedSecrets::mask(&mut text);
        let text = text.unwrap();
        assert!(!text.contains("a\\\"b") && !text.contains('7'), "{text}");
        assert!(text.contains(r#""n":1"#) && text.contains(r#""name":"x""#), "{text}");
        let lifted = masked.restore(text.into_bytes());
        assert_eq!(String::from_utf8(lifted).unwrap(), body);
        let mut plain = Some(r#"{ "n": 1 }"#.to_owned());
        assert!(MaskedSecrets::mask(&mut plain).values.is_empty());
        assert_eq!(plain.as_deref(), Some(r#"{ "n": 1 }"#));
    }
}
