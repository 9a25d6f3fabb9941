//! Rows for requests that are not measured. Their prompts must not be measured, so rows with the
//! same prompt, and the rest of their sessions, are lost. Unique prompts and rows without a session
//! come first.

use std::collections::{HashMap, HashSet};

use runner_plugin::Error;

use crate::count::{CountedRow, count};
use crate::row::Draft;
use crate::source::{FileRow, Place};
use crate::{Custom, columns, fingerprint};

/// The number of rows beyond the requested ones that are compared.
const AHEAD: usize = 256;

/// The most bytes of prompts that are held to be compared.
const MOST_HELD: usize = 16 << 20;

struct Candidate {
    /// Its number among the held or shuffled rows.
    number: usize,
    place: Place,
    draft: Draft,
    prompt: u64,
    session: Option<u64>,
}

struct Candidates {
    candidates: Vec<Candidate>,
    /// True if there are more rows than these.
    more: bool,
    /// The number from which on rows may be taken; earlier rows are only compared.
    first_spare: usize,
}

struct Occurrence {
    count: u32,
    session: Option<u64>,
    /// Also in a row of no session, or of another one.
    elsewhere: bool,
}

impl Custom {
    /// At most `limit` rows, taken away.
    pub fn take_spares(&mut self, limit: usize) -> Result<Vec<CountedRow>, Error> {
        let Candidates { candidates, more, first_spare } = self.candidates(limit)?;
        let mut seen = HashMap::<u64, Occurrence>::new();
        for candidate in &candidates {
            let at = seen.entry(candidate.prompt).or_insert(Occurrence {
                count: 0,
                session: candidate.session,
                elsewhere: candidate.session.is_none(),
            });
            at.count += 1;
            at.elsewhere |= at.session != candidate.session;
        }
        let once = |candidate: &Candidate| match candidate.session {
            None => seen[&candidate.prompt].count == 1,
            Some(_) => !seen[&candidate.prompt].elsewhere,
        };
        // One row at least is left to measure.
        let mut left = candidates.len() + usize::from(more);
        let mut of_session = HashMap::<u64, usize>::new();
        for session in candidates.iter().filter_map(|candidate| candidate.session) {
            *of_session.entry(session).or_default() += 1;
        }
        let measured: HashSet<u64> = (candidates.iter())
            .filter(|candidate| candidate.number < first_spare)
            .filter_map(|candidate| candidate.session)
            .collect();
        let (alone, first): (Vec<_>, Vec<_>) =
            candidates.iter().partition(|candidate| candidate.session.is_none());
        let mut taken = Vec::new();
        let mut spares = Vec::new();
        for candidate in alone.into_iter().chain(first) {
            if spares.len() == limit {
                break;
            }
            if candidate.number < first_spare {
                continue;
            }
            // A session is taken whole, by its first row; never a session with a measured row.
            if candidate.session.is_some_and(|session| measured.contains(&session)) {
                continue;
            }
            let rows = match candidate.session {
                None => 1,
                Some(session) => of_session.remove(&session).unwrap_or(0),
            };
            if rows == 0 || rows >= left || !once(candidate) {
                continue;
            }
            let row = vec![(candidate.place, candidate.draft.clone())];
            let counted = count(&self.reader.config, &*self.tokenizer, row);
            let counted = counted.into_iter().next();
            let Some(counted) = counted.filter(|row| row.refused(&self.reader.config).is_none())
            else {
                continue;
            };
            left -= rows;
            self.spares.insert(candidate.prompt);
            self.spare_sessions.extend(candidate.session);
            taken.push(candidate.number);
            spares.push(counted);
        }
        taken.sort_unstable_by(|one, other| other.cmp(one));
        if self.source.rows().is_some() {
            self.source.take(&taken);
        } else {
            for number in taken {
                self.ahead.remove(number);
            }
        }
        Ok(spares)
    }

    /// Rows to choose from, by preference: behind the measured rows, or the last shuffled rows if
    /// enough are left to measure. If the measured number is unknown, or rows are too large to
    /// hold, they come from the file's beginning, and are held from then on.
    fn candidates(&mut self, limit: usize) -> Result<Candidates, Error> {
        let most = limit.saturating_add(AHEAD);
        let mut candidates = Vec::new();
        let mut bytes = 0;
        if let Some(rows) = self.source.rows() {
            let measured = self.amount.samples().or(self.amount.sessions());
            let half = rows.div_ceil(2);
            let least = measured.map_or(half, |count| usize::try_from(count).unwrap_or(usize::MAX));
            for number in (least..rows).rev().take(most) {
                if let Some(found) = self.source.look(number)? {
                    bytes += self.candidate(&mut candidates, number, &found);
                }
                if bytes > MOST_HELD {
                    break;
                }
            }
            // The rows before them are enough.
            return Ok(Candidates { candidates, more: least > 0, first_spare: 0 });
        }
        let measured = self.amount.samples().or(self.amount.sessions());
        // A file that is read again has enough to measure without them.
        let measured = measured.filter(|_| !self.reader.config.repeat);
        let least = measured.map_or(0, |count| usize::try_from(count).unwrap_or(usize::MAX));
        let mut number = 0;
        let mut more = true;
        while number < most.saturating_add(least) && bytes <= MOST_HELD {
            if number == self.ahead.len() {
                let Some(found) = self.source.next()? else {
                    more = false;
                    break;
                };
                self.ahead.push_back(found);
            }
            bytes += self.candidate(&mut candidates, number, &self.ahead[number]);
            number += 1;
        }
        // Rows that are not sent, such as rows of other classes, are not measured either.
        let by_session = self.amount.samples().is_none();
        let mut counted = 0;
        let mut before = None;
        let behind = candidates.iter().find(|candidate| {
            let follows = by_session && candidate.session.is_some() && before == candidate.session;
            before = candidate.session;
            counted += usize::from(!follows);
            counted > least
        });
        let first_spare = match behind {
            _ if least == 0 => 0,
            Some(candidate) => candidate.number,
            None if more => 0,
            None => number,
        };
        Ok(Candidates { candidates, more, first_spare })
    }

    /// Adds a row that can be taken, and returns the length of its prompt. Mistakes in other rows
    /// are reported where the row is to be measured.
    fn candidate(&self, candidates: &mut Vec<Candidate>, number: usize, found: &FileRow) -> usize {
        let config = &self.reader.config;
        let Ok(row) = &found.row else { return 0 };
        if !columns::is_of(config, row) || columns::is_short_pair(&config.columns, row) {
            return 0;
        }
        let Ok(draft) = self.reader.draft(row) else { return 0 };
        // Rows that an earlier call took are not measured either way.
        if self.is_spare(&draft).is_some() {
            return 0;
        }
        let prompt = format!("{:?}", draft.prompt);
        let session = draft.of_session.as_ref().filter(|_| !config.shuffle);
        candidates.push(Candidate {
            number,
            place: found.place,
            prompt: fingerprint(&draft.prompt),
            session: session.map(fingerprint),
            draft,
        });
        prompt.len()
    }
}
