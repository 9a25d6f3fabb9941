//! The known facts about the lengths of the answers, from the requested lengths, from the source's
//! statements, and from totals.
//!
//! Every rule on the time per token has a sharp form where all answers have one length, and a blunt
//! one where they may differ. This module states the form that holds, and its certainty; it leaves
//! the rules to others.

use super::figures::{Figures, shown};
use super::order;
use super::spread::{MUCH, NOTHING, Range};

/// The evidence that all answers have one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evidence {
    /// The length was requested and reached, or the shortest and the longest answer are stated.
    Stated,
    /// The totals fit one length, and means with enough digits confirm it.
    Confirmed,
    /// The totals fit one length.
    Inferred,
}

/// The fewest requests whose totals show anything about each of them.
const MANY: f64 = 100.0;

/// Widest sum of rounded means that says anything about a length, as a share of itself.
const NARROW: f64 = 0.002;

/// Widest sum of means that confirms a length, as a share of itself: of means in full.
const PRECISE: f64 = 1e-8;

/// The share by which another tokenizer's count of a text may exceed the requested tokens.
const AGAIN: f64 = 0.01;

impl Figures<'_> {
    /// True if every answer certainly has the same number of tokens. Either the mean is the most
    /// that was requested, so that none can have fewer, or the shortest is as long as the longest.
    pub(super) fn same_length(&self) -> bool {
        let Some(each) = self.tokens_each() else { return false };
        let requested = self.claim.asked.output_tokens.map(|tokens| tokens as f64);
        let stated = self.shortest().is_some() && self.shortest() == self.longest();
        requested == Some(each) || (stated && self.shortest() == Some(each))
    }

    /// The evidence that all answers have one length, if there is any.
    ///
    /// Totals suggest it if the N requests divide the output total and N is at least [`MANY`]. In
    /// addition, the length is round, or the N requests divide the input total too. The total of N
    /// independent lengths leaves any remainder about as often as any other, so that 1 of N such
    /// runs divides. A chosen length is nearly always round, and of the others up to a thousand 1
    /// in 25 is. Prompts and answers of different lengths divide both in 1 of N * N runs. Three
    /// kinds of run divide more often. Answers that end by themselves after prompts of one length
    /// do in 1 of N runs. k prompts that are repeated and always answered alike do in 1 of k. A mix
    /// of lengths in whole shares does by design. So an inference makes a result suspect at most,
    /// and never by itself. A rule on means asks for a figure far off; a rule on percentiles asks
    /// for means that confirm it, or it only notes.
    pub(super) fn one_length(&self) -> Option<Evidence> {
        if self.same_length() {
            return Some(Evidence::Stated);
        }
        let different = self.shortest().is_some() && self.shortest() != self.longest();
        let (answered, each) = (self.answered()?, self.tokens_each()?);
        if different || answered < MANY || each.fract() != 0.0 {
            return None;
        }
        let input = self.claim.value("tokens.input").filter(|input| *input > 0.0);
        let divides = input.is_some_and(|input| (input / answered).fract() == 0.0);
        (round(each) || divides).then_some(Evidence::Inferred)
    }

    /// The common length of all answers, with its evidence, where rules on percentiles may rely on
    /// it. The means do not contradict it, and confirm an inferred one where they have enough
    /// digits.
    ///
    /// E2E = TTFT + TPOT * (n - 1) of the means is off by the covariance of TPOT and n over the
    /// requests, which is zero for one length. For N different ones that are independent of TPOT,
    /// it is around zero with a deviation of std(TPOT) * std(n) / sqrt(N). Two decimals do not show
    /// that. 100 tokens in three of four answers and 500 in the fourth, at 20 ms with a deviation
    /// of 3 %, leave 3.3 ms for N = 1,000 and 1 ms for 10,000. The rounding of TPOT alone leaves
    /// the sum open by 1 ms in either direction. So the means of 24 % of such runs agree with one
    /// length, and of 62 %. Means within [`PRECISE`], here 0.02 µs in either direction, agree in 1
    /// of 40,000 such runs of 10,000 requests. Where TPOT hardly varies, no means confirm anything.
    pub(super) fn relied_on(&self) -> Option<(Evidence, f64)> {
        let one = self.one_length()?;
        let each = self.tokens_each().filter(|each| *each > 1.0)?;
        let means = (|| {
            let further = Range::exact(each - 1.0);
            let sum = self.get("ttft.mean")? + self.positive("tpot.mean")? * further;
            Some((sum, self.positive("e2e.mean")?))
        })();
        let how = match means {
            None if one == Evidence::Stated => one,
            None => return None,
            Some((sum, e2e)) => {
                let open = (sum.high - sum.low + e2e.high - e2e.low) / sum.mid();
                let agree = self.tpot_varies() && sum.meets(e2e);
                match one {
                    Evidence::Stated if sum.apart(e2e) <= NOTHING => one,
                    Evidence::Inferred if agree && open <= PRECISE => Evidence::Confirmed,
                    Evidence::Inferred if agree && open <= NARROW => one,
                    _ => return None,
                }
            }
        };
        Some((how, each))
    }

    /// True if the percentiles of TPOT are further apart than a twentieth of its mean.
    fn tpot_varies(&self) -> bool {
        let points = order::points(self, "tpot");
        let ends = points.first().zip(points.last()).zip(self.get("tpot.mean"));
        ends.is_some_and(|((low, high), mean)| (high.1 - low.1).low > MUCH * mean.high)
    }

    /// Tokens of the shortest answer, if the source states it.
    pub(super) fn shortest(&self) -> Option<f64> {
        let stated = self.claim.output_lengths.map(|lengths| lengths.least);
        stated.or_else(|| self.of_samples()?.min()).map(|least| least as f64)
    }

    /// Tokens of the longest answer, if the source states it.
    fn longest(&self) -> Option<f64> {
        let stated = self.claim.output_lengths.map(|lengths| lengths.most);
        stated.or_else(|| self.of_samples()?.max()).map(|most| most as f64)
    }

    /// The most tokens of an answer, with words for findings: the longest one's, or the requested.
    pub(super) fn most_tokens(&self) -> Option<(f64, String)> {
        if let Some(longest) = self.longest() {
            let words = format!("at most {} tokens an answer", shown(longest));
            return Some((longest, words));
        }
        let settings = &self.claim.asked;
        let most = settings.output_tokens.or(settings.most_output_tokens)? as f64;
        let words = format!(
            "at most {} tokens requested for an answer, and {} % more if counted again",
            shown(most),
            shown(AGAIN * 100.0)
        );
        Some((most * (1.0 + AGAIN), words))
    }

    /// The length of each answered request, if the source lists all of them.
    fn of_samples(&self) -> Option<impl Iterator<Item = u64>> {
        let answered = || {
            let samples = self.claim.samples.iter();
            samples.filter(|sample| sample.error.is_none())
        };
        let lengths = answered().filter_map(|sample| sample.output_tokens);
        let count = Some(lengths.clone().count() as f64);
        let whole = !self.claim.samples.is_empty() && count == self.answered();
        whole.then_some(lengths)
    }
}

/// True if people choose such a length: a power of two, one more than one, or a multiple of 50.
fn round(length: f64) -> bool {
    let whole = length as u64;
    whole > 1
        && (whole.is_power_of_two() || (whole - 1).is_power_of_two() || whole.is_multiple_of(50))
}
