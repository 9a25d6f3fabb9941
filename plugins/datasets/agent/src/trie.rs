//! Agents by their lengths, in the format of the tool `trie`. A line has the length of the task, of
//! each answer that calls a tool, of the tool's result and of the last answer, and the tool's
//! duration. The texts are drawn.

use std::rc::Rc;

use dialogue::rows::{Rows, nanoseconds, parse, wrong};
use dialogue::sessions::Source;
use dialogue::words::{TextRequest, Writer, generator};
use dialogue::{LONGEST, MOST_TURNS};
use runner_plugin::report::Remarks;
use runner_plugin::{Error, Files, Message, Role, Sample, Tokenizer};
use serde::Deserialize;

use crate::config::Config;
use crate::graph::{After, Graph, Request};
use crate::source::{Texts, named, rows, with_texts};

const SPARE: u64 = 0x5fa4_e000;

#[derive(Debug, Deserialize)]
struct Row {
    input_prompt_length: u32,
    num_turns: usize,
    assistant_response_length: Vec<u32>,
    tool_call_output_length: Vec<u32>,
    #[serde(default)]
    tool_call_latency: Vec<f64>,
    final_assistant_response_length: u32,
}

impl Row {
    fn read(line: &[u8]) -> Result<Self, String> {
        let row: Row = parse(line)?;
        if row.num_turns >= MOST_TURNS {
            return Err(format!(
                "`num_turns` is {}; expected fewer than {MOST_TURNS}",
                row.num_turns
            ));
        }
        let latencies = row.tool_call_latency.len();
        for (field, length) in [
            ("assistant_response_length", row.assistant_response_length.len()),
            ("tool_call_output_length", row.tool_call_output_length.len()),
            // Without latencies, the tools take no time.
            ("tool_call_latency", if latencies == 0 { row.num_turns } else { latencies }),
        ] {
            if length != row.num_turns {
                return Err(format!(
                    "`{field}` has {length} numbers and `num_turns` is {}; expected equal numbers",
                    row.num_turns
                ));
            }
        }
        let lengths = [row.input_prompt_length, row.final_assistant_response_length];
        let all = lengths.iter().chain(&row.assistant_response_length);
        if let Some(wrong) = all.clone().find(|length| !(1..=LONGEST).contains(*length)) {
            return Err(format!("a length is {wrong}; expected from 1 to {LONGEST} tokens"));
        }
        if let Some(wrong) = row.tool_call_output_length.iter().find(|length| **length > LONGEST) {
            return Err(format!(
                "`tool_call_output_length`: {wrong}; expected at most {LONGEST} tokens"
            ));
        }
        for seconds in &row.tool_call_latency {
            nanoseconds("tool_call_latency", *seconds)?;
        }
        Ok(row)
    }

    fn graph(&self, name: &str, config: &Config, texts: &mut Texts) -> Result<Graph, String> {
        let mut graph = Graph::default();
        let mut parent = None;
        for turn in 0..=self.num_turns {
            let tool = turn.checked_sub(1);
            let tokens = match tool {
                None => self.input_prompt_length,
                Some(tool) => self.tool_call_output_length[tool],
            };
            let message = Message::text(Role::User, texts.text(tokens));
            let seconds = tool.and_then(|tool| self.tool_call_latency.get(tool));
            let delay = nanoseconds("tool_call_latency", seconds.copied().unwrap_or(0.0))?;
            let answers = self.assistant_response_length.get(turn);
            let output = answers.copied().unwrap_or(self.final_assistant_response_length);
            let after = parent.map(|parent| After::end(parent, config.delay(delay)));
            parent = Some(graph.push(Request {
                conversation: name.to_owned(),
                parent,
                messages: vec![message],
                after: after.into_iter().collect(),
                answer: Some(Message::text(Role::Assistant, texts.text(output))),
                output_tokens: Some(output),
                class: "main",
                ..Request::default()
            })?);
        }
        Ok(graph)
    }
}

pub(crate) struct Trie {
    files: Box<dyn Files>,
    config: Rc<Config>,
    seed: u64,
    tokenizer: Rc<dyn Tokenizer>,
    writer: Writer,
    rows: Rows,
    read: u64,
    spares: u64,
}

impl Trie {
    pub(crate) fn open(
        files: Box<dyn Files>,
        config: Rc<Config>,
        seed: u64,
        tokenizer: Rc<dyn Tokenizer>,
    ) -> Result<Self, Error> {
        Ok(Self {
            rows: rows(&*files)?,
            writer: Writer::open(&*files)?,
            files,
            config,
            seed,
            tokenizer,
            read: 0,
            spares: 0,
        })
    }
}

impl Source for Trie {
    fn next(&mut self, pass: u64, _remarks: &mut Remarks) -> Result<Option<Vec<Sample>>, Error> {
        let Some((number, line)) = self.rows.line()? else { return Ok(None) };
        let row = Row::read(&line).map_err(|what| wrong(number, &what))?;
        let session = self.read;
        self.read += 1;
        let name = named(&format!("agent-{number:06}"), pass);
        let build = |texts: &mut Texts| row.graph(&name, &self.config, texts);
        // Texts are drawn anew when the file begins again, so that its prompts do not repeat.
        let graph = with_texts(self.seed, session, &self.writer, &self.tokenizer, build)?;
        let graph = graph.map_err(|what| wrong(number, &what))?;
        Ok(Some(graph.finish(&*self.tokenizer)))
    }

    /// As long as the task of the first line.
    fn spare(&mut self) -> Result<Option<Sample>, Error> {
        let Some((number, line)) = rows(&*self.files)?.line()? else { return Ok(None) };
        let row = Row::read(&line).map_err(|cause| wrong(number, &cause))?;
        let wanted = TextRequest {
            random: generator(self.seed ^ SPARE, self.spares, 0),
            tokens: row.input_prompt_length,
        };
        self.spares += 1;
        let (text, _) = self.writer.apart(&*self.tokenizer, &wanted)?;
        Graph::single(text, row.final_assistant_response_length, &*self.tokenizer)
    }

    fn rewind(&mut self) -> Result<(), Error> {
        self.rows = rows(&*self.files)?;
        Ok(())
    }
}
