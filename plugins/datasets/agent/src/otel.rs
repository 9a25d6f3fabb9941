//! Traces of OpenTelemetry: lines with a trace, `{"trace_id": "…", "spans": […]}`, with a span, or
//! with OTLP's `resourceSpans`. Exporters write spans as they end, so spans of several traces may
//! be mixed, but not farther apart than [`WINDOW`]. Traces come in the order of their first lines.

use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use dialogue::messages::{bad_tool_call, count};
use dialogue::rows::{Rows, parse, wrong};
use dialogue::sessions::{Arrivals, Source};
use dialogue::words::{TextRequest, Writer, generator};
use dialogue::{LONGEST, LONGEST_WAIT, MOST_TURNS};
use runner_plugin::report::Remarks;
use runner_plugin::requests::fingerprint;
use runner_plugin::{Error, Files, Message, Role, Sample, Tokenizer, Treatment};
use serde_json::{Map, Value};

use crate::attributes::{Span, span, trace_id};
use crate::config::{BadToolCalls, Config};
use crate::source::{named, rows};
use crate::trace;

type Fields = Map<String, Value>;

/// Bytes without a span of a trace after which the trace has ended.
const WINDOW: u64 = 16 << 20;

/// The most bytes of lines that are held while a trace continues.
const MOST_HELD: u64 = 64 << 20;

#[derive(Debug)]
struct Trace {
    id: String,
    line: u64,
    spans: Vec<Span>,
    /// Number of its spans that are no requests to a model.
    others: u64,
    /// The place in the file at which its first line ends, and behind which it has no more spans.
    begins: u64,
    ends: u64,
}

/// Traces in the order of the file; the first are spare ones.
pub(crate) struct Otel {
    files: Box<dyn Files>,
    config: Rc<Config>,
    seed: u64,
    tokenizer: Rc<dyn Tokenizer>,
    writer: Writer,
    rows: Rows,
    /// Traces in the order of their first lines; the first may be complete.
    open: VecDeque<Trace>,
    position: u64,
    /// Fingerprints of the traces so far.
    seen: BTreeSet<u64>,
    read: u64,
    left_out: u64,
    built: u64,
    arrivals: Arrivals,
}

impl Otel {
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
            open: VecDeque::new(),
            position: 0,
            seen: BTreeSet::new(),
            read: 0,
            left_out: 0,
            built: 0,
            arrivals: Arrivals::default(),
        })
    }

    fn trace(&mut self) -> Result<Option<Trace>, Error> {
        loop {
            let first = self.open.front();
            if first.is_some_and(|first| first.ends < self.position) {
                break;
            }
            let Some((number, line)) = self.rows.line()? else { break };
            self.position += line.len() as u64;
            let wrong = |cause: String| wrong(number, &cause);
            let fields: Fields = parse(&line).map_err(wrong)?;
            // A line with all spans of a trace mostly stands alone.
            let window = if fields.contains_key("spans") { 0 } else { WINDOW };
            for (id, fields) in spans(fields).map_err(wrong)? {
                self.add(id, number, fields, self.position + window).map_err(wrong)?;
            }
            if let Some(first) = self.open.front()
                && self.position - first.begins > MOST_HELD
            {
                return Err(wrong(format!(
                    "the trace `{}`, which began on line {}, is still open after {MOST_HELD} bytes: sort the file so \
                     that the spans of a trace are together",
                    first.id, first.line
                )));
            }
        }
        let trace = self.open.pop_front();
        self.read += u64::from(trace.is_some());
        Ok(trace)
    }

    /// Adds a span to its trace, which `ends` there unless more of its spans come.
    fn add(&mut self, id: String, line: u64, fields: Fields, ends: u64) -> Result<(), String> {
        let trace = match self.open.iter().rposition(|trace| trace.id == id) {
            Some(known) => &mut self.open[known],
            None if self.seen.insert(fingerprint(&id)) => self.open.push_back_mut(Trace {
                id,
                line,
                spans: Vec::new(),
                others: 0,
                begins: self.position,
                ends,
            }),
            None => {
                return Err(format!(
                    "spans of the trace `{id}` stand far before this line: sort the file so that the spans of a trace \
                     are together"
                ));
            }
        };
        trace.ends = ends;
        match span(fields)? {
            Some(span) if trace.spans.len() < MOST_TURNS => trace.spans.push(span),
            Some(_) => {
                return Err(format!(
                    "the trace `{}` has more than {MOST_TURNS} requests to a model: cut it into several",
                    trace.id
                ));
            }
            None => trace.others += 1,
        }
        Ok(())
    }

    /// The samples of a trace; `None` if it is left out, which is then counted in `remarks`.
    fn samples(
        &mut self,
        mut trace: Trace,
        pass: u64,
        remarks: &mut Remarks,
    ) -> Result<Option<Vec<Sample>>, Error> {
        let place = format!("`{}` (line {})", trace.id, trace.line);
        let others = "a span that is no request to a model";
        remarks.count(Treatment::Dropped, others, trace.others, || place.clone());
        if trace.spans.is_empty() {
            remarks.dropped("a trace without a request to a model", || place);
            return Ok(None);
        }
        let bad_call = |span: &Span| {
            let input = span.input.iter().flatten();
            input.chain(&span.output).find_map(bad_tool_call)
        };
        if self.config.bad_tool_calls == BadToolCalls::Drop
            && let Some(tool) = trace.spans.iter().find_map(bad_call)
        {
            let reason = "a tool call whose arguments are not a JSON object";
            remarks.dropped(reason, || format!("{place}, of `{tool}`"));
            return Ok(None);
        }
        trace.spans.sort_by_key(|span| span.start);
        let (first, last) = (trace.spans[0].start, trace.spans[trace.spans.len() - 1].start);
        if (last - first) as f64 > LONGEST_WAIT * 1e9 {
            return Err(wrong(
                trace.line,
                &format!(
                    "the trace `{}` lasts more than 30 days: check that its times share one unit",
                    trace.id
                ),
            ));
        }
        let session = self.built;
        self.built += 1;
        self.write(session, &mut trace.spans, &place, remarks)?;
        let endless = trace.spans.iter().filter(|span| span.end.is_none()).count();
        let reason = "a request without an end; the next request does not wait for it";
        remarks.count(Treatment::Repaired, reason, endless as u64, || place.clone());
        let (arrival, is_early) = self.arrivals.next(first);
        if is_early {
            let reason = "a trace that began before the previous trace in the file; it now arrives with that trace";
            remarks.repaired(reason, || place);
        }
        let name = named(&trace.id, pass);
        let graph = trace::graph(&name, trace.spans, Some(arrival), &self.config, remarks);
        let graph = graph.map_err(|what| wrong(trace.line, &what))?;
        Ok(Some(graph.finish(&*self.tokenizer)))
    }

    /// Writes missing prompts by their recorded length, and counts answers with only a text.
    fn write(
        &self,
        session: u64,
        spans: &mut [Span],
        place: &str,
        remarks: &mut Remarks,
    ) -> Result<(), Error> {
        let mut empty = Vec::new();
        let mut wanted = Vec::new();
        for (index, span) in spans.iter().enumerate() {
            if span.input.is_none() {
                empty.push(index);
                wanted.push(TextRequest {
                    random: generator(self.seed, session, index as u64),
                    tokens: span.input_tokens.unwrap_or(1).min(LONGEST),
                });
                let reason = "a request without messages; it now has words of the same length";
                remarks.repaired(reason, || place.to_owned());
            }
        }
        let written = self.writer.write(&*self.tokenizer, &wanted)?;
        for (index, (text, _)) in empty.into_iter().zip(written) {
            spans[index].input = Some(vec![Message::text(Role::User, text)]);
        }
        let answers: Vec<&[Message]> = spans.iter().map(|span| span.output.as_slice()).collect();
        let counts = count(&*self.tokenizer, &answers);
        for (span, tokens) in spans.iter_mut().zip(counts) {
            span.output_tokens = span.output_tokens.or(tokens.filter(|tokens| *tokens > 0));
        }
        Ok(())
    }
}

/// The spans of a line, with the ids of their traces.
fn spans(mut fields: Fields) -> Result<Vec<(String, Fields)>, String> {
    let missing = || "`trace_id` is missing; expected a text".to_owned();
    let mut all = Vec::new();
    if let Some(resources) = fields.remove("resourceSpans") {
        for resource in objects("resourceSpans", resources)? {
            for scope in within(resource, &["scopeSpans", "instrumentationLibrarySpans"])? {
                for span in within(scope, &["spans"])? {
                    all.push((trace_id(&span).ok_or_else(missing)?, span));
                }
            }
        }
    } else if let Some(spans) = fields.remove("spans") {
        let id = trace_id(&fields).or_else(|| {
            let id = ["session_id", "id"].iter().find_map(|key| fields.get(*key))?;
            id.as_str().map(str::to_owned)
        });
        for span in objects("spans", spans)? {
            let id = id.clone().or_else(|| trace_id(&span));
            all.push((id.ok_or_else(missing)?, span));
        }
    } else {
        all.push((trace_id(&fields).ok_or_else(missing)?, fields));
    }
    Ok(all)
}

fn objects(key: &str, value: Value) -> Result<Vec<Fields>, String> {
    let wrong = || format!("`{key}`: expected a list of objects");
    let Value::Array(values) = value else { return Err(wrong()) };
    let values = values.into_iter().map(|value| match value {
        Value::Object(fields) => Ok(fields),
        _ => Err(wrong()),
    });
    values.collect()
}

fn within(mut fields: Fields, keys: &[&str]) -> Result<Vec<Fields>, String> {
    let found = keys.iter().find_map(|key| Some((key, fields.remove(*key)?)));
    found.map_or(Ok(Vec::new()), |(key, value)| objects(key, value))
}

impl Source for Otel {
    fn next(&mut self, pass: u64, remarks: &mut Remarks) -> Result<Option<Vec<Sample>>, Error> {
        while let Some(trace) = self.trace()? {
            if let Some(samples) = self.samples(trace, pass, remarks)? {
                return Ok(Some(samples));
            }
        }
        Ok(None)
    }

    fn spare(&mut self) -> Result<Option<Sample>, Error> {
        let samples = self.next(1, &mut Remarks::default())?;
        self.left_out = self.read;
        // Measured sessions have arrivals from their own beginning on.
        self.arrivals = Arrivals::default();
        Ok(samples.and_then(|samples| samples.into_iter().next()))
    }

    fn rewind(&mut self) -> Result<(), Error> {
        self.rows = rows(&*self.files)?;
        self.open.clear();
        self.seen.clear();
        self.position = 0;
        self.read = 0;
        self.arrivals.rewind();
        while self.read < self.left_out && self.trace()?.is_some() {}
        Ok(())
    }
}
