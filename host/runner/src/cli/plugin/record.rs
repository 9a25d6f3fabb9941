//! `runner plugin record`: makes a case of a server's reply.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use serde_json::json;

use super::test::{self, component, text};
use super::{Form, shipped_alone};
use crate::cli::artifacts::Artifacts;
use crate::cli::failure::{Exit, Failure, exits};
use crate::cli::flags::TargetKeys;
use crate::cli::print::{tell, write_styled};
use crate::cli::probe::source;
use model::frame::Framing;
use model::plugin::{Kind, Limits};
use plugins::backend::Call;
use plugins::case::{self, CaseReport, Suite, TimedReport};
use plugins::load::{Plugin, load};
use reader::Located;
use session::Source;
use session::probe::record::{RecordError, Recorder, Reply};

/// Make a case of a server's reply
///
/// Sends one request, written by the project's own backend. Keeps the reply's body, its status and
/// content type, the request and the events, as a folder below cases/ that `runner plugin test`
/// reads. If the folder has a sample.json, that sample is sent, with its settings.json and
/// config.toml; otherwise the prompt is.
///
/// The user's key and headers are not part of a case, and are taken out of the reply if the server
/// repeats them. A model that is named by a path is shortened to its last part, and the server's
/// host is replaced. Read the reply before you publish it: a server may put other names into it.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner plugin record http://127.0.0.1:8000                    cases/recorded of the project in this folder\n  \
        runner plugin record localhost:8000 --case long --output-tokens 200\n  \
        runner plugin record localhost:8000 --case whole --no-stream\n  \
        runner plugin record https://engine.example my-engine --api-key-env ENGINE_KEY\n\n\
        Exit codes: 0 the case passes, 2 command line, 3 the case's folder, 4 the plugin,\n\
        5 the server does not answer")]
pub struct Args {
    /// Base URL of the server; without a scheme it is http://
    #[arg(value_name = "URL")]
    url: String,
    /// The plugin project
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Name of the case: a folder below DIR/cases
    #[arg(long, value_name = "NAME", env = "RUNNER_RECORD_CASE", default_value = "recorded")]
    case: String,
    /// Component to write the request with [default: the output of `runner plugin build` in
    /// DIR/target/plugin]
    #[arg(long, value_name = "FILE", env = "RUNNER_RECORD_PLUGIN")]
    plugin: Option<String>,
    /// The prompt, if the case has no sample.json
    #[arg(long, value_name = "TEXT", env = "RUNNER_RECORD_PROMPT")]
    #[arg(default_value = "Count from one to ten.")]
    prompt: String,
    /// Tokens of answer to ask for, if the case has no sample.json
    #[arg(long, value_name = "NUMBER", env = "RUNNER_RECORD_OUTPUT_TOKENS", default_value_t = 16)]
    output_tokens: u32,
    /// Ask for a reply that is not streamed, if the case has no settings.json
    #[arg(long, env = "RUNNER_RECORD_NO_STREAM")]
    no_stream: bool,
    #[command(flatten)]
    keys: TargetKeys,
    #[command(flatten)]
    artifacts: Artifacts,
    #[command(flatten)]
    form: Form,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct NewCase {
    folder: PathBuf,
    status: u16,
    reply: String,
    reply_bytes: usize,
    #[serde(flatten)]
    report: CaseReport,
}

/// A case's folder that removes the files written into it, unless it is kept.
struct Draft {
    folder: PathBuf,
    is_new: bool,
    written: Vec<PathBuf>,
}

impl Draft {
    fn new(folder: PathBuf) -> Result<Self, Failure> {
        let is_new = !folder.exists();
        std::fs::create_dir_all(&folder).map_err(Failure::write(&folder, ""))?;
        Ok(Draft { folder, is_new, written: Vec::new() })
    }

    /// Writes a file that is not the user's.
    fn write(&mut self, name: &str, content: &[u8]) -> Result<(), Failure> {
        let path = self.folder.join(name);
        std::fs::write(&path, content).map_err(Failure::write(&path, ""))?;
        self.written.push(path);
        Ok(())
    }

    fn has(&self, name: &str) -> bool {
        self.folder.join(name).is_file()
    }

    fn keep(mut self) {
        self.written.clear();
        self.is_new = false;
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // A file that cannot be removed is no more than a file too many.
        for path in &self.written {
            let _ = std::fs::remove_file(path);
        }
        if self.is_new {
            let _ = std::fs::remove_dir(&self.folder);
        }
    }
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    args.artifacts.apply();
    let plugin = load(&component(args.plugin.as_deref(), &args.dir)?, &shipped_alone())?;
    if plugin.kind != Kind::Backend {
        let kind = plugin.kind.name();
        return Err(Failure::command_line(format!(
            "`{}` is a {kind}; only a backend sends requests",
            plugin.name
        )));
    }
    let mut draft = Draft::new(args.folder()?)?;
    let is_own = draft.has("sample.json");
    let has_settings = draft.has("settings.json");
    if !is_own {
        let sample = json!({
            "id": "1",
            "prompt": { "text": args.prompt },
            "output-tokens": args.output_tokens,
        });
        draft.write("sample.json", format!("{sample}\n").as_bytes())?;
    }
    let config = read(&plugin, &draft.folder)?.cases[0].config.clone();
    let recorder = Recorder::new(&args.source(&plugin, &config)?)?;
    recorder.remarks().iter().for_each(tell);
    let dial = recorder.dial()?;
    if !has_settings {
        let model = match args.keys.scenario()?.target.model {
            Some(named) => named.value,
            None => recorder.model_now(&dial)?,
        };
        let settings = json!({ "model": model, "streaming": !args.no_stream });
        draft.write("settings.json", format!("{settings}\n").as_bytes())?;
    }
    let suite = read(&plugin, &draft.folder)?;
    let Some(exchange) = suite.cases[0].ask() else {
        let folder = draft.folder.display();
        return Err(Failure::input(format!("`{folder}` holds no sample to send")));
    };
    let mut dialect = recorder.open()?;
    let call = dialect.encode(&exchange.sample, &exchange.settings, exchange.earlier.as_ref())?;
    let by_hand = match call {
        Call::Request(_) => None,
        Call::Steps(_) => Some(
            "has exchanges of several requests, which `record` cannot keep; make the case by hand, with the replies in files such as reply.1.json and reply.2.sse",
        ),
        Call::Socket(_) => Some(
            "opens a WebSocket, which `record` cannot keep; make the case by hand, with the server's messages in reply.ws",
        ),
    };
    if let Some(by_hand) = by_hand {
        return Err(Failure::input(format!("`{}` {by_hand}", plugin.name)));
    }
    let request = call.into_request();
    let framing = Framing::from(dialect.framing(exchange.settings.streaming)?);
    let recorded = recorder.ask_now(&dial, request)?;

    let model = exchange.settings.model.clone();
    let (body, is_changed) = anonymous(&recorded, &recorder, &model);
    if is_changed && matches!(framing, Framing::LengthPrefixed(_) | Framing::Raw) {
        let message = "the reply names the key, the server or the model's path, and its frames state their lengths, so that \
                     nothing can be taken out of it; serve the model under another name, or make the case by hand";
        return Err(Failure::new(Exit::Target, message));
    }
    if !has_settings && short(&model) != model {
        let settings = json!({ "model": short(&model), "streaming": !args.no_stream });
        draft.write("settings.json", format!("{settings}\n").as_bytes())?;
    }
    let reply = case::reply_file(framing, recorded.status, &body);
    draft.write(&reply, &body)?;
    if let (200..300, Some(kind)) = (recorded.status, &recorded.content_type) {
        let head = json!({ "status": recorded.status, "headers": { "content-type": kind } });
        draft.write("head.json", format!("{head}\n").as_bytes())?;
    }
    let suite = read(&plugin, &draft.folder)?;
    let began = std::time::Instant::now();
    let report = suite.check(&suite.cases[0], true);
    let timed = TimedReport { seconds: began.elapsed().as_secs_f64(), report: report.clone() };
    let made = NewCase {
        folder: draft.folder.clone(),
        status: recorded.status,
        reply,
        reply_bytes: body.len(),
        report,
    };
    // Kept also if the plugin cannot read it: the case is then for mending the plugin.
    draft.keep();
    if args.form.json {
        args.form.print(&made, |_| String::new())?;
    } else {
        write_styled(&text::case(&timed, 0))?;
        args.form.print(&made, text)?;
    }
    Ok(if made.report.holds() { ExitCode::SUCCESS } else { Exit::Plugin.into() })
}

fn text(made: &NewCase) -> String {
    format!(
        "{}: status {}, {} bytes in {}; review the files before you keep them\n",
        made.folder.display(),
        made.status,
        made.reply_bytes,
        made.reply
    )
}

fn read(plugin: &Plugin, folder: &Path) -> Result<Suite, Failure> {
    test::read(plugin, Limits::default(), &[folder.to_owned()])
}

fn short(model: &str) -> &str {
    let is_path = model.starts_with(['/', '~', '.']);
    let last = model.trim_end_matches('/').rsplit('/').next();
    last.filter(|last| is_path && !last.is_empty()).unwrap_or(model)
}

/// A reply's body without names, and true if names were removed.
fn anonymous(recorded: &Reply, recorder: &Recorder, model: &str) -> (Vec<u8>, bool) {
    let target = recorder.target();
    let mut names = vec![(model, short(model))];
    if !target.is_loopback() {
        names.push((target.host(), "server.example"));
    }
    names.retain(|(name, other)| name != other && !name.is_empty());
    // Bytes that are no text are kept as they are.
    let Ok(mut body) = String::from_utf8(recorded.body.clone()) else {
        return (recorded.body.clone(), recorded.redacted);
    };
    let mut is_changed = recorded.redacted;
    for (name, other) in names {
        if body.contains(name) {
            body = body.replace(name, other);
            is_changed = true;
        }
    }
    (body.into_bytes(), is_changed)
}

impl Args {
    /// The case's folder, which must hold no reply yet.
    fn folder(&self) -> Result<PathBuf, Failure> {
        let is_name = !self.case.is_empty()
            && !self.case.starts_with('.')
            && !self.case.contains(['/', '\\']);
        if !is_name {
            let case = &self.case;
            return Err(Failure::command_line(format!(
                "--case: `{case}` is not the name of a folder"
            )));
        }
        let folder = self.dir.join("cases").join(&self.case);
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("reply.") || name == "control.txt" {
                return Err(Failure::input(format!(
                    "`{}` has a {name} already; name another case with --case",
                    folder.display()
                )));
            }
        }
        Ok(folder)
    }

    fn source(&self, plugin: &Plugin, config: &serde_json::Value) -> Result<Source, Failure> {
        let mut source = source(&self.keys, &self.url, "record")?;
        let backend = &mut source.scenario.backend;
        backend.plugin = Some(Located::flag("--plugin", plugin.name.clone()));
        for (key, value) in config.as_object().into_iter().flatten() {
            backend.config.set(key, Located::flag("config.toml", value.clone()));
        }
        Ok(source)
    }
}

exits! {
    RecordError(Check, Plugin) { RecordError::NoModel { .. } => Input, RecordError::TooLong => Target, }
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn shortens_a_model_path_to_its_last_part() {
        for (model, name) in [
            ("/home/someone/models/llama-8b", "llama-8b"),
            ("~/models/llama/", "llama"),
            ("./llama", "llama"),
            ("meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-8B"),
            ("gpt", "gpt"),
            ("/", "/"),
        ] {
            assert_eq!(short(model), name);
        }
    }
}
