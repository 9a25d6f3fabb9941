//! Agents drawn from distributions. Each is a function of the seed and its number alone.
//!
//! An agent gets a task, calls tools one after the other, and answers. In place of a tool call it
//! may start sub-agents, and go on with their answers. When its history becomes too long, it asks
//! for a summary and continues with that.

use std::rc::Rc;

use dialogue::sessions::Source;
use dialogue::turns::{Systems, lengths, wait};
use dialogue::words::{TextRequest, Writer, generator};
use runner_plugin::lengths::{Distribution, Lengths};
use runner_plugin::random::NumpyGenerator;
use runner_plugin::report::Remarks;
use runner_plugin::{Error, Message, Part, Role, Sample, Tokenizer};
use serde_json::json;

use crate::config::{Compaction, Config, SubAgents, ToolRole, WIDEST, calls};
use crate::graph::{After, Graph, Request};
use crate::source::{Texts, with_texts};

/// Generators of the lengths and the waits of a conversation: two parts each.
const LENGTHS: u64 = 0;
const WAITS: u64 = 1;

/// Changes the seed for spare samples.
const SPARE: u64 = 0x5fa4_e000;

/// Question to the model when its history is too long.
const SUMMARISE: &str =
    "Summarise this conversation so far, with everything that is needed to go on.";

pub(crate) struct Synthetic {
    seed: u64,
    tokenizer: Rc<dyn Tokenizer>,
    writer: Writer,
    systems: Option<Systems>,
    shape: Shape,
    drawn: u64,
    spares: u64,
}

struct Shape {
    main: Loop,
    sub: Option<Sub>,
    output: Lengths,
    result: Lengths,
    latency: Distribution,
    role: ToolRole,
    compaction: Option<Compaction>,
}

struct Loop {
    calls: Lengths,
    prompt: Lengths,
    answer: Lengths,
    class: &'static str,
}

struct Sub {
    fan_outs: Lengths,
    count: Lengths,
    each: Loop,
    depth: u32,
}

impl Synthetic {
    pub(crate) fn new(
        config: &Config,
        seed: u64,
        tokenizer: Rc<dyn Tokenizer>,
        writer: Writer,
    ) -> Result<Self, Error> {
        let systems = Systems::new(seed, config.system_len.as_ref(), config.system_groups)?;
        let main = Loop {
            calls: calls("tool-calls", config.tool_calls.as_ref())?,
            prompt: lengths("prompt-len", config.prompt_len.as_ref(), 512)?,
            answer: lengths("final-output-len", config.final_output_len.as_ref(), 256)?,
            class: "main",
        };
        let latency = config.tool_latency.clone();
        Ok(Self {
            seed,
            tokenizer,
            writer,
            systems,
            shape: Shape {
                main,
                sub: config.sub_agents.as_ref().map(sub).transpose()?,
                output: lengths("output-len", config.output_len.as_ref(), 64)?,
                result: lengths("tool-result-len", config.tool_result_len.as_ref(), 256)?,
                latency: latency.unwrap_or_else(|| Distribution::constant(0.0)),
                role: config.tool_role,
                compaction: config.compaction,
            },
            drawn: 0,
            spares: 0,
        })
    }
}

fn sub(agents: &SubAgents) -> Result<Sub, Error> {
    let key = |name: &str| format!("sub-agents.{name}");
    Ok(Sub {
        fan_outs: agents.fan_outs.lengths(&key("fan-outs"), 0..=WIDEST)?,
        count: agents.count.lengths(&key("count"), 1..=WIDEST)?,
        each: Loop {
            calls: calls(&key("tool-calls"), Some(&agents.tool_calls))?,
            prompt: lengths(&key("prompt-len"), Some(&agents.prompt_len), 1)?,
            answer: lengths(&key("final-output-len"), Some(&agents.final_output_len), 1)?,
            class: "sub-agent",
        },
        depth: agents.depth,
    })
}

impl Source for Synthetic {
    fn next(&mut self, _pass: u64, _remarks: &mut Remarks) -> Result<Option<Vec<Sample>>, Error> {
        let number = self.drawn;
        self.drawn += 1;
        let systems = self.systems.as_mut();
        let system = systems.map(|all| all.prompt(number, &self.writer, &*self.tokenizer));
        let system = system.transpose()?;
        let system = system.as_ref().map(|text| {
            let count = self.tokenizer.count(std::slice::from_ref(text), false);
            (text.as_str(), count.first().copied().unwrap_or(0))
        });
        let (seed, shape) = (self.seed, &self.shape);
        let built = with_texts(seed, number, &self.writer, &self.tokenizer, |texts| {
            let mut agent = Agent {
                seed,
                number,
                shape,
                system,
                texts,
                graph: Graph::default(),
                conversations: 0,
            };
            let name = format!("agent-{:06}", number + 1);
            agent.run(&name, &shape.main, 0, &[])?;
            Ok(agent.graph)
        })?;
        let graph = built.map_err(|what| {
            Error::config(format!(
                "agent {}: {what}: lower `tool-calls` or the numbers of `sub-agents`",
                number + 1
            ))
        })?;
        Ok(Some(graph.finish(&*self.tokenizer)))
    }

    /// A task that begins like no text of [`next`](Self::next), without a system prompt.
    fn spare(&mut self) -> Result<Option<Sample>, Error> {
        let number = self.spares;
        self.spares += 1;
        let mut random = generator(self.seed ^ SPARE, number, LENGTHS);
        let tokens = self.shape.main.prompt.draw(&mut random);
        let output = self.shape.output.draw(&mut random);
        let random = generator(self.seed ^ SPARE, number, WAITS);
        let wanted = TextRequest { random, tokens };
        let (text, _) = self.writer.apart(&*self.tokenizer, &wanted)?;
        Graph::single(text, output, &*self.tokenizer)
    }

    fn rewind(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

struct Agent<'a> {
    seed: u64,
    number: u64,
    shape: &'a Shape,
    system: Option<(&'a str, u32)>,
    texts: &'a mut Texts,
    graph: Graph,
    conversations: u64,
}

impl Agent<'_> {
    /// Adds the requests of a loop; returns the last, and the tokens of its answer.
    fn run(
        &mut self,
        name: &str,
        of: &Loop,
        depth: u32,
        after: &[After],
    ) -> Result<(usize, u32), String> {
        let part = 2 * self.conversations;
        self.conversations += 1;
        let mut random = generator(self.seed, self.number, part + LENGTHS);
        let mut waits = generator(self.seed, self.number, part + WAITS);
        let calls = of.calls.draw(&mut random);
        let fanning = self.fanning(calls, depth, &mut random);
        let mut conversation = name.to_owned();
        let (mut compactions, mut agents) = (0, 0);
        let (mut last, mut history, mut answered) = (None, 0, 0_u32);
        for call in 0..=calls {
            let ends = call == calls;
            let answer = if ends { &of.answer } else { &self.shape.output };
            let output = answer.draw(&mut random);
            let Some(before) = last else {
                let tokens = of.prompt.draw(&mut random);
                let task = vec![Part::Text(self.texts.text(tokens))];
                history = self.system_tokens() + u64::from(tokens) + u64::from(output);
                let begun = self.begun(&conversation, task, after.to_vec());
                last = Some(self.push(of, ends, output, begun)?);
                answered = output;
                continue;
            };
            let mut after = vec![After::end(before, 0)];
            let (parts, tokens) = if fanning.contains(&call) {
                let mut parts = Vec::new();
                let mut tokens = 0_u64;
                for each in 1..=self.count(&mut random) {
                    let Some(sub) = &self.shape.sub else { break };
                    agents += 1;
                    let child = format!("{name}.s{agents}");
                    let started = [After::end(before, 0)];
                    let (end, answer) = self.run(&child, &sub.each, depth + 1, &started)?;
                    after.push(After::end(end, 0));
                    tokens += u64::from(answer);
                    parts.push(Part::Text(format!("Result of sub-agent {each}:\n")));
                    parts.push(Part::Answer(self.graph.id(end)));
                    parts.push(Part::Text("\n".to_owned()));
                }
                (parts, tokens)
            } else {
                let tokens = self.shape.result.draw(&mut random);
                after[0].delay = wait(&self.shape.latency, &mut waits);
                (vec![Part::Text(self.texts.text(tokens))], tokens.into())
            };
            history += tokens;
            let mut request = Request {
                conversation: conversation.clone(),
                parent: Some(before),
                messages: vec![self.result(before, parts)],
                after,
                ..Request::default()
            };
            let compaction = self.shape.compaction;
            if let Some(compaction) =
                compaction.filter(|limit| history > limit.trigger_tokens.into())
            {
                let summary = self.summarise(request, compaction.target_tokens)?;
                compactions += 1;
                conversation = format!("{name}.c{compactions}");
                let parts = vec![
                    Part::Text("Summary of the work so far:\n".to_owned()),
                    Part::Answer(self.graph.id(summary)),
                    Part::Text("\n\nGo on with it.".to_owned()),
                ];
                history = self.system_tokens() + u64::from(compaction.target_tokens);
                request = self.begun(&conversation, parts, vec![After::end(summary, 0)]);
            }
            history += u64::from(output);
            answered = output;
            last = Some(self.push(of, ends, output, request)?);
        }
        last.map(|last| (last, answered)).ok_or_else(|| "an agent without a request".to_owned())
    }

    /// Adds a request of a loop. Unless the loop `ends` with it, its answer calls a tool.
    fn push(
        &mut self,
        of: &Loop,
        ends: bool,
        output: u32,
        request: Request,
    ) -> Result<usize, String> {
        let text = self.texts.text(output);
        let answer = if ends || self.shape.role == ToolRole::User {
            Message::text(Role::Assistant, text)
        } else {
            let arguments = json!({ "input": text }).to_string();
            let called = json!({"tool_calls": [{"id": call_id(self.graph.len()), "type": "function",
                "function": {"name": "tool", "arguments": arguments}}]});
            Message { extra: Some(called.to_string()), ..Message::text(Role::Assistant, "") }
        };
        self.graph.push(Request {
            answer: Some(answer),
            output_tokens: Some(output),
            class: of.class,
            ..request
        })
    }

    /// The message with the result of a called tool, or with the answers of sub-agents.
    fn result(&self, of: usize, parts: Vec<Part>) -> Message {
        let (role, extra) = match self.shape.role {
            ToolRole::User => (Role::User, None),
            ToolRole::Tool => {
                let extra = json!({ "tool_call_id": call_id(of) });
                (Role::Tool, Some(extra.to_string()))
            }
        };
        Message { role, parts, extra }
    }

    /// Asks for a summary of the conversation with the new messages of `request`, instead of it.
    fn summarise(&mut self, mut request: Request, tokens: u32) -> Result<usize, String> {
        match request.messages.last_mut() {
            Some(last) if last.role == Role::User => {
                last.parts.push(Part::Text(format!("\n\n{SUMMARISE}")));
            }
            _ => request.messages.push(Message::text(Role::User, SUMMARISE)),
        }
        let answer = Message::text(Role::Assistant, self.texts.text(tokens));
        self.graph.push(Request {
            answer: Some(answer),
            output_tokens: Some(tokens),
            class: "compaction",
            ..request
        })
    }

    /// A request that begins a conversation.
    fn begun(&self, conversation: &str, parts: Vec<Part>, after: Vec<After>) -> Request {
        let system = self.system.iter();
        let system = system.map(|(text, _)| Message::text(Role::System, *text));
        let question = Message { role: Role::User, parts, extra: None };
        Request {
            conversation: conversation.to_owned(),
            messages: system.chain([question]).collect(),
            after,
            ..Request::default()
        }
    }

    fn system_tokens(&self) -> u64 {
        self.system.map_or(0, |(_, tokens)| tokens.into())
    }

    /// Returns the calls of a loop that start sub-agents instead, counted from 1.
    fn fanning(&self, calls: u32, depth: u32, random: &mut NumpyGenerator) -> Vec<u32> {
        let Some(sub) = self.shape.sub.as_ref().filter(|sub| depth < sub.depth) else {
            return Vec::new();
        };
        let wanted = sub.fan_outs.draw(random).min(calls);
        let mut all: Vec<u32> = (1..=calls).collect();
        for at in 0..wanted as usize {
            let other = at + random.integers(0, (all.len() - at) as u64) as usize;
            all.swap(at, other);
        }
        all.truncate(wanted as usize);
        all
    }

    fn count(&self, random: &mut NumpyGenerator) -> u32 {
        let sub = self.shape.sub.as_ref();
        sub.map_or(0, |sub| sub.count.draw(random))
    }
}

/// The id of the tool call in the answer to a request.
fn call_id(request: usize) -> String {
    format!("call_{request}")
}
