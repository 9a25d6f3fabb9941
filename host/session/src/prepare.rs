//! Preparation: samples become requests ahead of time, so that the bytes of a request are ready before
//! it is due. One thread asks the dataset for samples, a second has the backend write their requests.

use std::sync::Arc;

use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender};
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use sha2::{Digest, Sha256};

use crate::decode::{FailureLimit, failed};
use crate::run::{Parts, RunError};
use load::crew::{Crew, trip};
use load::transport::Request;
use model::connection::Version;
use model::exchange::{FailureClass, Outcome, Phase, Prepared, SampleFacts, Turn};
use model::frame::Framing;
use model::hex;
use model::target::{Secrets, Target};
use plugins::PluginError;
use plugins::backend::{self, Dialect, Part, Prompt, Sample};
use plugins::backend::{Sampling, Settings};
use plugins::dataset::Samples;
use scenario::plan::Plan;

mod arrivals;
mod feed;
mod veil;

pub use arrivals::arrivals;
pub use feed::Feed;
use feed::{Completing, Stock};
use veil::Veil;

/// The most samples to ask the dataset for in one call, and the number in the first call.
const BATCH: u32 = 64;
const FIRST_BATCH: u32 = 8;
/// Bytes of prompts that one call should return: what crosses the boundary at once is limited, and held twice.
const BATCH_BYTES: usize = 4 << 20;
/// Batches of samples that may wait for the backend.
const SAMPLED_AHEAD: usize = 4;
/// Requests held ready in addition to those that must be.
const AHEAD: u64 = 4096;
/// The approximate size of a request apart from its body.
const REQUEST_BYTES: usize = 1 << 10;
/// A request in waiting.
pub enum Item {
    /// Ready to be sent.
    Ready {
        /// What it asks.
        prepared: Box<Prepared>,
        /// The request.
        request: Request,
        /// The conversation it belongs to.
        session: Option<Arc<str>>,
    },
    /// The backend could not write it.
    Faulty {
        /// What it was to ask.
        prepared: Box<Prepared>,
        /// What will be recorded of it.
        outcome: Outcome,
    },
}

/// Turns samples into requests.
pub struct Preparation {
    samples: Samples,
    writer: Writer,
    plan: Plan,
    failures: FailureLimit,
    framing: Framing,
    crew: Crew,
}

struct Writer {
    plan: Plan,
    dialect: Dialect,
    settings: Settings,
    veil: Veil,
    targets: Vec<Target>,
    version: Version,
    secrets: Secrets,
    failures: FailureLimit,
}

impl Preparation {
    /// Opens the dataset and the backend.
    ///
    /// # Errors
    /// If a plugin refuses its configuration or input, or traps.
    pub fn open(
        plan: &Plan,
        parts: &Parts,
        failures: &FailureLimit,
        crew: &Crew,
    ) -> Result<Self, PluginError> {
        trip("open");
        let mut dialect = parts.backend.open()?;
        let framing = dialect.framing(plan.request.stream)?.into();
        let mut settings = settings(plan);
        let veil = Veil::over(&mut settings.extra_body);
        Ok(Preparation {
            samples: parts.dataset.open(plan.load.seed, plan.requests())?,
            writer: Writer {
                plan: plan.clone(),
                dialect,
                settings,
                veil,
                targets: parts.targets.clone(),
                version: plan.connection.http,
                secrets: parts.secrets.clone(),
                // Requests that can be written say nothing about replies that cannot be read.
                failures: failures.with_own_count(),
            },
            plan: plan.clone(),
            failures: failures.clone(),
            framing,
            crew: crew.clone(),
        })
    }

    /// How replies are cut.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// The requests that are sent before the measurement; may be fewer than planned.
    ///
    /// # Errors
    /// If the dataset fails.
    pub fn warmup(&mut self) -> Result<Vec<Item>, PluginError> {
        let mut items = Vec::new();
        let wanted = self.plan.load.warmup;
        while items.len() < wanted as usize && !self.crew.signal().is_stopped() {
            let left = wanted - items.len() as u32;
            let samples = self.samples.spare(left.min(BATCH))?;
            if samples.is_empty() {
                break;
            }
            for sample in samples {
                let index = items.len() as u64;
                items.push(self.writer.write(index, Phase::Warmup, sample));
            }
        }
        Ok(items)
    }

    /// Begins to prepare the measured requests, of which this many must be ready before the first is due.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(self, wanted: u64) -> std::io::Result<Feed> {
        let (sender, items) = crossbeam_channel::unbounded();
        let most = usize::try_from(wanted.saturating_add(AHEAD)).unwrap_or(usize::MAX);
        let stock = Arc::new(Stock::of(most));
        let completing = Completing(Arc::clone(&stock));
        let crew = self.crew.clone();
        let thread = crew.start("prepare", None, move || {
            let Completing(stock) = &completing;
            self.run(&sender, stock);
        })?;
        Ok(Feed {
            items,
            stock,
            thread: Some(thread),
            signal: crew.signal().clone(),
        })
    }

    fn run(self, items: &Sender<Item>, stock: &Stock) {
        let Preparation {
            samples,
            mut writer,
            plan,
            failures,
            crew,
            ..
        } = self;
        let planned = plan.requests().unwrap_or(u64::MAX);
        let (sampled, batches) = crossbeam_channel::bounded(SAMPLED_AHEAD);
        let sampler = crew.start("sample", None, move || sample(samples, planned, &sampled));
        let sampler = match sampler {
            Ok(sampler) => sampler,
            Err(cause) => return failures.abort(RunError::Thread(cause)),
        };
        let write_all =
            |writer: &mut Writer, batches: Receiver<Result<Vec<Sample>, PluginError>>| {
                let mut index = 0;
                for batch in &batches {
                    let batch = match batch {
                        Ok(batch) => batch,
                        Err(error) => return failures.abort(error.into()),
                    };
                    for sample in batch {
                        trip("prepare");
                        if plan.holds(index) {
                            let item = writer.write(index, Phase::Measure, sample);
                            if !stock.add(item.bytes()) || items.send(item).is_err() {
                                return;
                            }
                        }
                        index += 1;
                    }
                }
            };
        // Takes the receiver with it: a sampler that waits for room then finds none.
        write_all(&mut writer, batches);
        sampler.join();
    }
}

/// Asks a dataset for this many samples, or all it has.
fn sample(mut samples: Samples, planned: u64, batches: &Sender<Result<Vec<Sample>, PluginError>>) {
    let mut given = 0;
    let mut limit = FIRST_BATCH;
    while given < planned {
        trip("sample");
        let batch = samples.next(limit.min(u32::try_from(planned - given).unwrap_or(BATCH)));
        let size = batch.as_ref().map_or(0, Vec::len);
        if batch.is_ok() && size == 0 {
            return;
        }
        given += size as u64;
        if let Ok(batch) = &batch {
            let bytes: usize = batch
                .iter()
                .map(|sample| prompt_bytes(&sample.prompt))
                .sum();
            let fit = BATCH_BYTES / (bytes / batch.len()).max(1);
            limit = u32::try_from(fit).unwrap_or(BATCH).clamp(1, BATCH);
        }
        if batches.send(batch).is_err() || size == 0 {
            return;
        }
    }
}

fn prompt_bytes(prompt: &Prompt) -> usize {
    match prompt {
        Prompt::Text(text) => text.len(),
        Prompt::Tokens(tokens) => size_of_val(&**tokens),
        Prompt::Messages(messages) => (messages.iter().flat_map(|message| &message.parts))
            .map(|part| match part {
                Part::Text(text) => text.len(),
                Part::Image(media) | Part::Audio(media) => media.bytes.len(),
            })
            .sum(),
    }
}

impl Writer {
    /// Writes the request for a sample, or the record of why there is none.
    fn write(&mut self, index: u64, phase: Phase, mut sample: Sample) -> Item {
        if sample.adapter.is_none() {
            sample.adapter = self.plan.adapter(index).map(str::to_owned);
        }
        let sample = &sample;
        let session = sample.turn.as_ref().map(|turn| turn.session.as_str());
        let mut prepared = Box::new(Prepared {
            index,
            phase,
            sample: SampleFacts {
                id: sample.id.clone(),
                input_tokens: sample.input_tokens,
                output_tokens: sample.output_tokens.or(self.settings.output_tokens),
                reference: sample
                    .reference
                    .as_ref()
                    .and_then(|reference| serde_json::from_str(reference).ok()),
                turn: sample.turn.as_ref().map(|turn| Turn {
                    session: turn.session.clone(),
                    index: turn.index,
                }),
                class: sample.class.clone(),
                adapter: sample.adapter.clone(),
                request_bytes: 0,
                request_digest: String::new(),
            },
            target: self.target_of(index, session),
        });
        match self.request(sample, &mut prepared) {
            Ok(request) => {
                self.failures.reset();
                Item::Ready {
                    prepared,
                    request,
                    session: session.map(Arc::from),
                }
            }
            Err(error) => {
                self.failures.count(&error);
                let outcome = failed(FailureClass::Plugin, &error.to_string());
                Item::Faulty { prepared, outcome }
            }
        }
    }

    /// In turn, by the request's own number, so that a slice of the plan sends it to the same target; a
    /// conversation stays with one target, which has the earlier turns in its cache.
    fn target_of(&self, index: u64, session: Option<&str>) -> u32 {
        let number = session.map_or(index, |session| {
            let digest = Sha256::digest(session);
            digest
                .first_chunk()
                .map_or(index, |bytes| u64::from_le_bytes(*bytes))
        });
        (number % self.targets.len() as u64) as u32
    }

    fn request(
        &mut self,
        sample: &Sample,
        prepared: &mut Prepared,
    ) -> Result<Request, PluginError> {
        let mut encoded = self.dialect.encode(sample, &self.settings)?;
        encoded.body = self.veil.lift(encoded.body);
        let target = &self.targets[prepared.target as usize];
        let facts = &mut prepared.sample;
        let path = target.path(&encoded.path);
        let mut hash = Sha256::new();
        hash.update(&encoded.method);
        hash.update([0]);
        hash.update(&path);
        hash.update([0]);
        hash.update(&encoded.body);
        facts.request_bytes = encoded.body.len() as u64;
        facts.request_digest = hex(&hash.finalize()[..8]);
        http_request(target, self.version, &self.secrets, &path, encoded).map_err(|what| {
            PluginError::Contract {
                plugin: self.dialect.name().to_owned(),
                call: "encode",
                what,
            }
        })
    }
}

/// Adds the host's own headers, and the user's, to what the backend wrote.
///
/// # Errors
/// If something in it is not allowed in HTTP.
pub(crate) fn http_request(
    target: &Target,
    version: Version,
    secrets: &Secrets,
    path: &str,
    encoded: backend::Request,
) -> Result<Request, String> {
    let mut headers = HeaderMap::new();
    let given = encoded.headers.iter().chain(&secrets.headers);
    for (name, value) in given {
        let name = HeaderName::try_from(name.as_str())
            .map_err(|_| format!("`{}` is not a header name", name.escape_debug()))?;
        let value = HeaderValue::try_from(value.as_str())
            .map_err(|_| format!("the value of the header `{name}` has invalid characters"))?;
        headers.insert(name, value);
    }
    if let Some(key) = &secrets.api_key {
        let mut value = HeaderValue::try_from(format!("Bearer {key}"))
            .map_err(|_| "the API key has characters that a header cannot contain".to_owned())?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    let at = (target.scheme(), &*target.authority());
    let body = Bytes::from(encoded.body);
    Request::new(version, at, &encoded.method, path, headers, body)
        .map_err(|unsendable| unsendable.to_string())
}

impl Item {
    /// The approximate memory that it takes.
    fn bytes(&self) -> usize {
        REQUEST_BYTES + self.prepared().sample.request_bytes as usize
    }

    /// What it asks.
    pub fn prepared(&self) -> &Prepared {
        match self {
            Item::Ready { prepared, .. } | Item::Faulty { prepared, .. } => prepared,
        }
    }
}

/// What a backend is told of every request.
fn settings(plan: &Plan) -> Settings {
    let request = &plan.request;
    Settings {
        model: plan.target.model.clone(),
        streaming: request.stream,
        output_tokens: request.output_tokens,
        min_output_tokens: request.min_output_tokens,
        ignore_eos: request.ignore_eos,
        sampling: Sampling {
            temperature: request.temperature,
            top_p: request.top_p,
            top_k: request.top_k,
            min_p: request.min_p,
            frequency_penalty: request.frequency_penalty,
            presence_penalty: request.presence_penalty,
            repetition_penalty: request.repetition_penalty,
            seed: request.sampling_seed,
            stop: request.stop.clone(),
        },
        extra_body: request.extra_body.as_ref().map(ToString::to_string),
    }
}
