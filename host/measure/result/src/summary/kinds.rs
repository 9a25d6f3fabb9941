//! Token counts of a kind that only some servers report: the drafts of speculative decoding, and
//! the tokens of prompts and answers that are not text. A kind has figures only if an answer
//! reports it, and zero is a report. `speculation` has the steps of speculative decoding.

use super::tokens::Tokens;
use model::exchange::Usage;

/// A kind of tokens, over the answers that report how many of theirs are of it.
#[model::apply(model::document!)]
#[derive(Copy, Default)]
pub struct Reported {
    /// Their sum.
    pub total: u64,
    /// The number of answers that report them, zero included.
    pub answers: u64,
    /// Their share of all input or output tokens of those answers, from 0 to 1; absent if the
    /// server does not count these.
    pub share: Option<f64>,
}

/// The drafts of speculative decoding.
#[model::apply(model::document!)]
#[derive(Copy, Default)]
pub struct Drafts {
    /// Tokens that it proposed; absent if no answer reports them.
    pub proposed: Option<u64>,
    /// Proposed tokens that the model accepted, with their share of the output tokens.
    pub accepted: Option<Reported>,
    /// Accepted over proposed tokens, from 0 to 1, over the answers that report both; absent if
    /// nothing was proposed.
    pub acceptance: Option<f64>,
}

#[derive(Default)]
pub(super) struct Kinds {
    proposed: Part,
    accepted: Part,
    /// Accepted and proposed tokens, of the answers that report both.
    compared: Part,
    image: Part,
    video: Part,
    audio: Part,
    output_audio: Part,
}

#[derive(Default)]
struct Part {
    total: u64,
    answers: u64,
    /// The sum, and the sum of its whole, over the answers that report both.
    of_known: u64,
    known: u64,
}

impl Part {
    fn add(&mut self, part: Option<u32>, whole: Option<u32>) {
        let Some(part) = part.map(u64::from) else { return };
        self.total += part;
        self.answers += 1;
        if let Some(whole) = whole {
            self.of_known += part;
            self.known += u64::from(whole);
        }
    }

    fn share(&self) -> Option<f64> {
        (self.known > 0).then(|| self.of_known as f64 / self.known as f64)
    }

    fn reported(&self) -> Option<Reported> {
        (self.answers > 0).then(|| Reported {
            total: self.total,
            answers: self.answers,
            share: self.share(),
        })
    }
}

impl Kinds {
    pub(super) fn add_input(&mut self, usage: &Usage) {
        let whole = usage.input_tokens;
        self.image.add(usage.input_image_tokens, whole);
        self.video.add(usage.input_video_tokens, whole);
        self.audio.add(usage.input_audio_tokens, whole);
    }

    pub(super) fn add_output(&mut self, usage: &Usage) {
        let whole = usage.output_tokens;
        let (proposed, accepted) = (usage.draft_tokens, usage.accepted_draft_tokens);
        self.proposed.add(proposed, None);
        self.accepted.add(accepted, whole);
        self.compared.add(accepted, proposed);
        self.output_audio.add(usage.output_audio_tokens, whole);
    }

    pub(super) fn finish(self, tokens: &mut Tokens) {
        let proposed = self.proposed.reported().map(|proposed| proposed.total);
        let accepted = self.accepted.reported();
        tokens.drafts = (proposed.is_some() || accepted.is_some()).then(|| Drafts {
            proposed,
            accepted,
            acceptance: self.compared.share(),
        });
        tokens.input_image = self.image.reported();
        tokens.input_video = self.video.reported();
        tokens.input_audio = self.audio.reported();
        tokens.output_audio = self.output_audio.reported();
    }
}

impl Reported {
    /// The sum and the share, such as `576 (64.0 %)`; `count` writes a number.
    pub fn label(&self, count: impl Fn(u64) -> String) -> String {
        let total = count(self.total);
        match self.share {
            Some(share) => format!("{total} ({:.1} %)", share * 100.0),
            None => total,
        }
    }
}

impl Drafts {
    /// Writes the accepted of the proposed tokens, as in `30 of 40 (75.0 %)`, by `count`.
    pub fn label(&self, count: impl Fn(u64) -> String) -> String {
        let accepted = self.accepted.map(|accepted| count(accepted.total));
        let proposed = self.proposed.map(&count);
        let mut words = match (accepted, proposed) {
            (Some(accepted), Some(proposed)) => format!("{accepted} of {proposed}"),
            (Some(accepted), None) => accepted,
            (None, Some(proposed)) => format!("unknown, of {proposed}"),
            (None, None) => "unknown".to_owned(),
        };
        if let Some(acceptance) = self.acceptance {
            words += &format!(" ({:.1} %)", acceptance * 100.0);
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Summary;
    use crate::summary::fixture::{facts, reply};
    use model::exchange::Kind;

    fn tokens(usages: &[Usage]) -> Tokens {
        let answers = usages.iter().zip(0..).map(|(usage, index)| {
            let at = 1000 + index * 100;
            let mut exchange = reply(index, at, &[(at + 50, Kind::Text, None, 4)]);
            exchange.usage = Some(*usage);
            exchange
        });
        Summary::new(&facts(), &answers.collect::<Vec<_>>()).tokens
    }

    #[test]
    fn unreported_kinds_are_absent() {
        let tokens =
            tokens(&[Usage { input_tokens: Some(10), output_tokens: Some(4), ..Usage::default() }]);
        assert_eq!(tokens.drafts, None);
        let kinds =
            [tokens.input_image, tokens.input_video, tokens.input_audio, tokens.output_audio];
        assert_eq!(kinds, [None; 4]);
    }

    /// The sums cover all answers that report a kind, the shares only answers that report the whole
    /// too.
    #[test]
    fn shares_are_of_the_answers_that_report_both() {
        let tokens = tokens(&[
            Usage {
                input_tokens: Some(100),
                output_tokens: Some(10),
                draft_tokens: Some(8),
                accepted_draft_tokens: Some(6),
                input_image_tokens: Some(60),
                input_audio_tokens: Some(0),
                ..Usage::default()
            },
            Usage {
                output_tokens: Some(30),
                draft_tokens: Some(4),
                accepted_draft_tokens: Some(3),
                input_image_tokens: Some(7),
                output_audio_tokens: Some(12),
                ..Usage::default()
            },
            // It does not report its proposed tokens.
            Usage { output_tokens: Some(5), accepted_draft_tokens: Some(5), ..Usage::default() },
            Usage { input_tokens: Some(1000), output_tokens: Some(1000), ..Usage::default() },
        ]);
        let reported = |total, answers, share| Some(Reported { total, answers, share });
        let drafts = tokens.drafts.unwrap();
        assert_eq!(drafts.proposed, Some(12));
        assert_eq!(drafts.accepted, reported(14, 3, Some(14.0 / 45.0)));
        assert_eq!(drafts.acceptance, Some(0.75));
        assert_eq!(tokens.input_image, reported(67, 2, Some(0.6)));
        assert_eq!(tokens.input_video, None);
        assert_eq!(tokens.input_audio, reported(0, 1, Some(0.0)));
        assert_eq!(tokens.output_audio, reported(12, 1, Some(0.4)));
    }

    #[test]
    fn labels_have_numbers_and_shares() {
        let count = |n: u64| n.to_string();
        let accepted = |total| Some(Reported { total, answers: 1, share: None });
        for (proposed, accepted, acceptance, words) in [
            (Some(40), accepted(30), Some(0.75), "30 of 40 (75.0 %)"),
            (Some(0), accepted(0), None, "0 of 0"),
            (None, accepted(30), None, "30"),
            (Some(40), None, None, "unknown, of 40"),
        ] {
            let drafts = Drafts { proposed, accepted, acceptance };
            assert_eq!(drafts.label(count), words);
        }
        let mut image = accepted(576).unwrap();
        assert_eq!(image.label(count), "576");
        image.share = Some(0.64);
        assert_eq!(image.label(count), "576 (64.0 %)");
    }
}
