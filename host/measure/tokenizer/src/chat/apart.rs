//! A tokenizer's chat template, rendered in this process or in a process of its own.
//!
//! A template is a program of a stranger, and a text that it doubles sixty times takes all memory
//! of a machine. So a program calls [`render_in`] when it begins, and is then started again for
//! each template, with the single argument [`ARGUMENT`]. That process bounds its own memory and
//! time and calls [`serve`]. If it exceeds a bound it ends, and the template has failed for good.
//! Programs that do not call [`render_in`], such as tests, render here.
//!
//! Both processes write lines of JSON: the templates' texts, then conversations. Each line has a
//! line as its answer.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use jiff::civil::DateTime;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ChatError, ChatTemplate, RENDERED_BYTES, Templates};

/// The argument with which the program is started again.
pub const ARGUMENT: &str = "render-chat-templates";
/// The memory limit of such a process, in bytes: it holds a text of the largest size several times.
pub const MEMORY: u64 = 1 << 30;
/// The time limit for one conversation, in seconds.
pub const SECONDS: u64 = 60;
/// The exit code of a process that exceeds [`SECONDS`].
pub const TOO_LONG: u8 = 3;

/// The longest answer, in bytes: JSON escapes one byte with six.
const ANSWER: u64 = 6 * RENDERED_BYTES as u64 + (1 << 10);
/// SIGABRT, which ends a process without memory.
const ABORTED: i32 = 6;

/// This program, where it can be started again.
static PROGRAM: OnceLock<OsString> = OnceLock::new();

/// Renders templates in processes of this program from now on.
pub fn render_in(program: impl Into<OsString>) {
    let _ = PROGRAM.set(program.into());
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Sources {
    pub(super) file: String,
    pub(super) texts: BTreeMap<String, String>,
    pub(super) special: BTreeMap<String, String>,
    /// The date for templates that write one, as ISO 8601; absent for the usual one.
    pub(super) now: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Conversation<'a> {
    messages: Cow<'a, [Value]>,
    tools: Option<Cow<'a, Value>>,
    extra: Cow<'a, Map<String, Value>>,
}

/// The chat template of a tokenizer, read on first use.
pub struct Chat {
    sources: Result<Sources, ChatError>,
    place: OnceLock<Result<Place, ChatError>>,
}

enum Place {
    Here(Box<ChatTemplate>),
    Apart(Mutex<Apart>),
}

impl Chat {
    pub(crate) fn found(found: &Templates, special: BTreeMap<String, String>) -> Self {
        let file = found.file.clone();
        Chat::new(match found.texts.clone() {
            Ok(texts) => Ok(Sources { file, texts, special, now: None }),
            Err(cause) => Err(ChatError::Broken { file, cause }),
        })
    }

    pub(crate) fn absent(tokenizer: &str) -> Self {
        Chat::new(Err(ChatError::Absent { tokenizer: tokenizer.to_owned() }))
    }

    fn new(sources: Result<Sources, ChatError>) -> Self {
        Chat { sources, place: OnceLock::new() }
    }

    pub(crate) fn dated(self, now: DateTime) -> Self {
        Chat::new(self.sources.map(|sources| Sources { now: Some(now.to_string()), ..sources }))
    }

    pub(crate) fn check(&self) -> Result<(), ChatError> {
        self.place().map(drop)
    }

    pub fn render(
        &self,
        messages: &[Value],
        tools: Option<&Value>,
        extra: &Map<String, Value>,
    ) -> Result<String, ChatError> {
        match self.place()? {
            Place::Here(template) => template.render(messages, tools, extra),
            Place::Apart(process) => {
                let mut process = process.lock().unwrap_or_else(PoisonError::into_inner);
                process.ask(&Conversation {
                    messages: messages.into(),
                    tools: tools.map(Cow::Borrowed),
                    extra: Cow::Borrowed(extra),
                })?
            }
        }
    }

    fn place(&self) -> Result<&Place, ChatError> {
        let place = self.place.get_or_init(|| {
            let sources = self.sources.as_ref().map_err(Clone::clone)?;
            Ok(match PROGRAM.get() {
                None => Place::Here(Box::new(ChatTemplate::from_sources(sources)?)),
                Some(program) => Place::Apart(Mutex::new(Apart::start(program, sources)?)),
            })
        });
        place.as_ref().map_err(Clone::clone)
    }
}

struct Apart {
    process: Option<Process>,
    ended: ChatError,
}

struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Apart {
    fn start(program: &OsString, sources: &Sources) -> Result<Self, ChatError> {
        let unable = |cause: &io::Error| ChatError::Failed {
            cause: format!("the process that renders it cannot be started: {cause}"),
        };
        let mut child = Command::new(program)
            .arg(ARGUMENT)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // An interrupt from the terminal must not reach it, because requests in flight are
            // still counted.
            .process_group(0)
            .spawn()
            .map_err(|cause| unable(&cause))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(unable(&io::ErrorKind::BrokenPipe.into()));
        };
        let mut apart = Apart {
            process: Some(Process { child, input, output: BufReader::new(output) }),
            ended: ChatError::Failed { cause: String::new() },
        };
        apart.ask::<Result<(), ChatError>>(sources)?.map(|()| apart)
    }

    fn ask<T: DeserializeOwned>(&mut self, what: &impl Serialize) -> Result<T, ChatError> {
        let Some(process) = &mut self.process else { return Err(self.ended.clone()) };
        match process.exchange(what) {
            Ok(answer) => Ok(answer),
            Err(cause) => {
                let status = process.end();
                self.process = None;
                self.ended =
                    ChatError::Failed { cause: status.map_or(cause.to_string(), cause_of) };
                Err(self.ended.clone())
            }
        }
    }
}

impl Process {
    fn exchange<T: DeserializeOwned>(&mut self, what: &impl Serialize) -> io::Result<T> {
        write_line(&mut self.input, what)?;
        let mut answer = Vec::new();
        (&mut self.output).take(ANSWER).read_until(b'\n', &mut answer)?;
        Ok(serde_json::from_slice(&answer)?)
    }

    /// Ends it; returns the status of a process that had ended by itself.
    fn end(&mut self) -> Option<ExitStatus> {
        // A process that closed its output has ended, or ends in a moment.
        let ended = self.output.fill_buf().is_ok_and(<[u8]>::is_empty);
        if !ended {
            let _ = self.child.kill();
        }
        let status = self.child.wait().ok();
        status.filter(|_| ended)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn cause_of(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(ABORTED), _) => format!("it takes more than {} MiB of memory", MEMORY >> 20),
        (_, Some(code)) if code == i32::from(TOO_LONG) => {
            format!("it takes longer than {SECONDS} s")
        }
        _ => format!("the process that renders it ended with {status}"),
    }
}

/// Renders chats until no more questions come. `busy` is called with true for a question, and with
/// false for its answer. Fails if the input is no question, or nobody reads the answers.
pub fn serve(
    input: &mut impl BufRead,
    output: &mut impl Write,
    busy: &mut dyn FnMut(bool),
) -> io::Result<()> {
    let Some(sources) = question::<Sources>(input)? else { return Ok(()) };
    busy(true);
    let template = ChatTemplate::from_sources(&sources);
    busy(false);
    write_line(output, &template.as_ref().map(|_| ()))?;
    let Ok(template) = template else { return Ok(()) };
    while let Some(conversation) = question::<Conversation<'_>>(input)? {
        busy(true);
        let tools = conversation.tools.as_deref();
        let rendered = template.render(&conversation.messages, tools, &conversation.extra);
        busy(false);
        write_line(output, &rendered)?;
    }
    Ok(())
}

fn question<T: DeserializeOwned>(input: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    match input.read_until(b'\n', &mut line)? {
        0 => Ok(None),
        _ => Ok(Some(serde_json::from_slice(&line)?)),
    }
}

fn write_line(output: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    output.write_all(&line)?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sources(template: &str) -> Sources {
        Sources {
            file: "chat_template.jinja".to_owned(),
            texts: BTreeMap::from([("default".to_owned(), template.to_owned())]),
            special: BTreeMap::from([("bos_token".to_owned(), "<s>".to_owned())]),
            now: Some("2025-12-01T09:00:00".to_owned()),
        }
    }

    /// Returns a process's answers to these lines.
    fn answers(lines: &[Value]) -> Vec<Value> {
        let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let (mut output, mut times) = (Vec::new(), Vec::new());
        serve(&mut input.as_bytes(), &mut output, &mut |busy| {
            times.push(busy);
        })
        .unwrap();
        let answers: Vec<Value> = (output.split(|byte| *byte == b'\n'))
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect();
        assert_eq!(times, [true, false].repeat(answers.len()));
        answers
    }

    #[test]
    fn each_conversation_has_its_answer() {
        let text = "{{ bos_token }}{{ messages[0].content }} {{ 'no' if tools is none else 'some' }} {{ x }} {{ strftime_now('%Y') }}";
        let conversation = |tools: Value| json!({"messages": [{"role": "user", "content": "a\nb"}], "tools": tools, "extra": {"x": 0.1}});
        assert_eq!(
            answers(&[json!(sources(text)), conversation(json!(null)), conversation(json!([]))]),
            [
                json!({"Ok": null}),
                json!({"Ok": "<s>a\nb no 0.1 2025"}),
                json!({"Ok": "<s>a\nb some 0.1 2025"}),
            ]
        );
        let refused = "{{ raise_exception('not these') }}";
        let expected = [json!({"Ok": null}), json!({"Err": {"refused": {"message": "not these"}}})];
        assert_eq!(answers(&[json!(sources(refused)), conversation(json!(null))]), expected);
        let broken = answers(&[json!(sources("{% if %}")), conversation(json!(null))]);
        assert_eq!(broken.len(), 1, "{broken:?}");
        assert_eq!(broken[0]["Err"]["broken"]["file"], "chat_template.jinja", "{broken:?}");
    }

    #[test]
    fn the_cause_names_how_a_process_ended() {
        let end = |script: &str| {
            let status = Command::new("sh").args(["-c", script]).status().unwrap();
            cause_of(status)
        };
        assert_eq!(end("kill -ABRT $$"), "it takes more than 1024 MiB of memory");
        assert_eq!(end("exit 3"), "it takes longer than 60 s");
        assert!(end("exit 4").contains("ended with exit status: 4"));
    }

    #[test]
    fn a_process_without_an_answer_fails_the_template() {
        let start = |program: &str| Apart::start(&program.into(), &sources("x")).err().unwrap();
        // It ends at once, and its output is no answer.
        let error = start("true").to_string();
        assert!(error.contains("the process that renders it ended with exit status: 0"), "{error}");
        let error = start("echo").to_string();
        assert!(error.contains("the chat template fails: "), "{error}");
        let error = start("/no/such/program").to_string();
        assert!(error.contains("cannot be started"), "{error}");
    }
}
