//! Sessions with all requests in one line: the requests that stay, and their samples, one after the
//! other. Holds the line while its samples are made.

use runner_plugin::{Dependency, Error, Sample, Turn};

use super::{Frame, Player};
use crate::config::TooLong;
use crate::formats::weka::{self, Session};
use crate::index::{AFTER, Entry, REASONS};
use crate::source::Place;

pub(super) struct Open {
    line: Vec<u8>,
    number: u32,
    session: Session,
    stays: Vec<bool>,
    at: usize,
}

impl Player {
    pub(super) fn open(&mut self, entry: Entry) -> Result<(), Error> {
        let number = self.index.line(&entry);
        let place = Place { offset: entry.offset(), line: number };
        let line = self.source.line(place)?.map(|(line, _)| line).unwrap_or_default();
        let wrong = |cause: String| Error::InvalidInput(format!("line {}: {cause}", number));
        let mut session = Session::parse(&line, &self.config).map_err(wrong)?;
        let mut out = vec![false; session.nodes.len()];
        let limited = self.config.max_input.or(self.config.max_output).is_some();
        if limited && self.config.on_too_long == TooLong::Drop {
            for (at, node) in session.nodes.iter().enumerate() {
                let row = weka::row(&line[node.range.clone()], &session.layout, at as u32);
                let row = row.map_err(wrong)?;
                let over = |most: Option<u32>, tokens: Option<u32>| {
                    most.zip(tokens).is_some_and(|(most, tokens)| tokens > most)
                };
                let reason = if over(self.config.max_input, row.content.tokens()) {
                    REASONS[1]
                } else if over(self.config.max_output, row.output) {
                    REASONS[2]
                } else {
                    continue;
                };
                out[at] = true;
                self.notes.dropped(reason, || format!("line {number}"));
            }
        }
        let stays = weka::without(&mut session.nodes, &out);
        for (stays, out) in stays.iter().zip(&out) {
            if !stays && !out {
                self.notes.dropped(AFTER, || format!("line {number}"));
            }
        }
        self.state.open = Some(Open { line, number, session, stays, at: 0 });
        Ok(())
    }

    pub(super) fn of_open(&mut self, open: &mut Open) -> Result<Option<Sample>, Error> {
        while open.stays.get(open.at) == Some(&false) {
            open.at += 1;
        }
        let Some(node) = open.session.nodes.get(open.at) else { return Ok(None) };
        let at = open.at;
        open.at += 1;
        let row = weka::row(&open.line[node.range.clone()], &open.session.layout, at as u32)
            .map_err(|cause| Error::InvalidInput(format!("line {}: {cause}", open.number)))?;
        let id = |at: usize| format!("line-{}-{}", open.number, at + 1);
        let mut after = Vec::with_capacity(node.after.len());
        for (on, delay) in &node.after {
            after.push(Dependency::end(id(*on), self.pause(*delay, open.number)));
        }
        let frame = Frame {
            id: id(at),
            line: open.number,
            own: at as u64,
            group: 0,
            after,
            turn: Some(Turn {
                session: open.session.threads[node.thread].clone(),
                index: node.index,
            }),
            arrival: None,
        };
        Ok(Some(self.sample(row, frame)))
    }
}
