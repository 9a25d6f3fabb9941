//! The user's configuration, and its requests that cannot be met.

use runner_plugin::Error;
use schemars::JsonSchema;
use serde::Deserialize;

/// The user's configuration.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The file's format. Without it, the file's content decides, and the log names the format.
    /// Files compressed by gzip or zstd are decompressed under any name.
    pub format: Option<Format>,
    /// Your file's column names (of a JSON object, its fields), e.g. `columns.prompt = "question"`.
    /// Keys: prompt, messages, system, reference, output-tokens, class, id, adapter, images, audio,
    /// videos, tools, parameters, arrival, session. Columns with usual names are found without
    /// this. `a.b` names the field `b` of the column `a`.
    pub columns: Columns,
    /// The prompt as a text with columns in it, such as `"{context}\n\n{question}"`. `{{` is a
    /// brace.
    pub template: Option<String>,
    /// A system message before every prompt that has none.
    pub system: Option<String>,
    /// The form in which prompts are sent.
    pub form: Form,
    /// Turns of a conversation to send. By default `last` for rows with `messages`, and `first` for
    /// others.
    pub turns: Option<Turns>,
    /// Output tokens to request, instead of the file's own: the column `output-tokens`, a recorded
    /// request's limit, or the length of a recorded answer.
    pub output_len: Option<u32>,
    /// Request as many output tokens as a row's reference has, if nothing else sets the number.
    /// Otherwise only scorers use a reference: its length would cut a right but longer answer.
    pub reference_sets_length: bool,
    /// Use only rows of these classes.
    pub classes: Vec<String>,
    /// Leave out rows with fewer tokens in the first prompt.
    pub min_input_tokens: Option<u32>,
    /// Leave out rows with more tokens in the first prompt.
    pub max_input_tokens: Option<u32>,
    /// Leave out rows with more tokens in the first prompt and its answer together.
    pub max_total_tokens: Option<u32>,
    /// Leave out rows that cannot be read, instead of ending the run.
    pub skip_invalid: bool,
    /// Shuffle the rows by the seed, as Python's `random.shuffle` does. Otherwise they come in the
    /// order of the file.
    pub shuffle: bool,
    /// Start over at the end of the file. Otherwise the run ends there.
    pub repeat: bool,
    /// The unit of arrival times that are numbers. Without it, seconds for recorded requests (rows
    /// with a `body`), and milliseconds for others.
    pub arrival_unit: Option<Unit>,
}

/// Names of columns.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Columns {
    /// The prompt.
    pub prompt: Option<String>,
    /// A conversation in the format of the OpenAI API, a list of texts that a user says, or
    /// ShareGPT's `conversations`.
    pub messages: Option<String>,
    /// The system message.
    pub system: Option<String>,
    /// Reference for a scorer, to compare the answer with; a text also counts as the recorded
    /// answer, except for its length: see `reference-sets-length`.
    pub reference: Option<String>,
    /// Output tokens to request.
    pub output_tokens: Option<String>,
    /// The kind of sample, by which results can be grouped.
    pub class: Option<String>,
    /// A name for the sample.
    pub id: Option<String>,
    /// The adapter (LoRA) to use.
    pub adapter: Option<String>,
    /// One or more images: data URLs, base64, or names of files under `[dataset.files]`.
    pub images: Option<String>,
    /// One or more pieces of audio, like images.
    pub audio: Option<String>,
    /// One or more videos, like images.
    pub videos: Option<String>,
    /// Tools that the model may call, in the format of the OpenAI API.
    pub tools: Option<String>,
    /// An object of further fields for the request.
    pub parameters: Option<String>,
    /// The arrival time: a number, or a date and time such as `2026-03-01T12:00:00Z`. Only
    /// differences matter, and rows must be in this order.
    pub arrival: Option<String>,
    /// The session. Rows of one session follow one another, each after the answer to the previous
    /// row.
    pub session: Option<String>,
}

/// A file's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// A JSON value a line: an object, a text, or a list of messages.
    Jsonl,
    /// One JSON array of such values.
    Json,
    /// Values separated by commas or semicolons, with the columns' names in the first line.
    Csv,
    /// Values separated by tabs, with the columns' names in the first line.
    Tsv,
    /// A prompt a line.
    Text,
    /// A prompt a paragraph: empty lines separate them.
    Paragraphs,
    /// Parquet.
    Parquet,
}

/// The form in which prompts are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// A conversation where the row has one, a system message, media or tools; otherwise text.
    #[default]
    Auto,
    /// A conversation; a text becomes a user's message.
    Chat,
    /// Text.
    Text,
    /// A text to embed.
    Embedding,
}

/// The turns of a conversation to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Turns {
    /// The first turn.
    First,
    /// The last turn, with everything before it.
    Last,
    /// All turns, each after the previous answer.
    All,
}

/// The unit of arrival times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// Nanoseconds.
    Nanoseconds,
}

impl Unit {
    pub fn nanoseconds(self) -> f64 {
        match self {
            Unit::Seconds => 1e9,
            Unit::Milliseconds => 1e6,
            Unit::Microseconds => 1e3,
            Unit::Nanoseconds => 1.0,
        }
    }
}

impl Columns {
    /// The columns that a row can do without, as configured, with the keys that name them.
    pub fn optional(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [
            ("system", &self.system),
            ("reference", &self.reference),
            ("output-tokens", &self.output_tokens),
            ("class", &self.class),
            ("id", &self.id),
            ("adapter", &self.adapter),
            ("images", &self.images),
            ("audio", &self.audio),
            ("videos", &self.videos),
            ("tools", &self.tools),
            ("parameters", &self.parameters),
            ("arrival", &self.arrival),
            ("session", &self.session),
        ]
        .into_iter()
        .filter_map(|(key, name)| Some((key, name.as_deref()?)))
    }
}

impl Config {
    /// Checks settings that contradict each other.
    pub fn check(&self) -> Result<(), Error> {
        let mut wrong = Vec::new();
        if self.template.is_some() && self.columns.prompt.is_some() {
            wrong.push("`template` makes the prompt, so `prompt` under `columns` has no use: leave one out");
        }
        if self.template.is_some() && self.columns.messages.is_some() {
            wrong.push("`template` makes the prompt, so `messages` under `columns` has no use: leave one out");
        }
        if self.shuffle && self.columns.arrival.is_some() {
            wrong.push(
                "`shuffle` changes the order of rows, which `arrival` under `columns` needs: leave one out",
            );
        }
        if self.shuffle && self.columns.session.is_some() {
            wrong.push("`shuffle` separates the rows of a session, so it cannot go with `session` under `columns`: leave one out");
        }
        if self.repeat && self.columns.arrival.is_some() {
            wrong.push("`repeat` cannot go with `arrival` under `columns`, because a time does not come again: leave one out");
        }
        if self.form == Form::Embedding && self.turns == Some(Turns::All) {
            wrong.push("`form = \"embedding\"` has no turns: leave out `turns`");
        }
        if self
            .min_input_tokens
            .zip(self.max_input_tokens)
            .is_some_and(|(least, most)| least > most)
        {
            wrong.push("`min-input-tokens` is above `max-input-tokens`: no row is left");
        }
        if wrong.is_empty() { Ok(()) } else { Err(Error::InvalidConfig(wrong.join("; "))) }
    }
}
