//! The time of an engine's steps, and the part that the requests do not explain.
//!
//! An engine that answers many requests in one batch works in steps. The length of a step follows
//! from its work: from the requests that it answers, the prompt tokens that it reads, the tokens of
//! context that it looks at, and the answers that begin. Some engines read prompts in steps of
//! their own, and prompts of a new length more slowly. All of these are known from a run's requests
//! and answers, by slice of its time. A line through the slices gives the time that each step
//! should have taken. The difference from it is the engine's own noise, and the work that the line
//! does not describe.
//!
//! **Noise is the variation that a repeat of the same requests would not repeat.** It adds up over
//! a run as a random walk does. Over a time t it shifts everything by a time of variance v t. The
//! variance is taken of the sums over blocks of slices, with the dependence between blocks
//! corrected for (`dependence`), so noise that lasts for seconds counts as such. Work that the line
//! does not describe makes v too large and never too small.
//!
//! A prompt counts in the slice of its first token, but an engine reads a long prompt in several
//! steps. Slices that hold few steps blur the time of a prompt token. A line through sums of slices
//! knows it better, and is used where it leaves less noise.

use super::dependence::inflation;

/// Blocks of slices whose sums give the variance.
const BLOCKS: usize = 20;
/// Slices in which an engine must have worked for a line through them.
const FEWEST: usize = 40;
/// Slices in a sum of slices, one after the other.
const SUMMED: usize = 4;
/// Terms of the line: for steps that read no prompt, and with the terms for answers that begin.
pub(crate) const QUIET: usize = 4;
const TERMS: usize = 6;

/// A slice of a run's time. It begins and ends with a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Slice {
    /// Its length in seconds; 0 where the engine answered nothing.
    pub seconds: f64,
    /// Tokens generated in it, without the first one of each answer.
    pub tokens: f64,
    /// Requests that generated tokens, on average over its length.
    pub batch: f64,
    /// Prompt tokens that were read.
    pub prompts: f64,
    /// Tokens of context that a step looked at, on average over its length.
    pub context: f64,
    /// Answers that began.
    pub begun: f64,
    /// Answers that began after a prompt whose length no earlier prompt had. Some engines choose,
    /// compile or load a kernel for each length.
    pub new_lengths: f64,
    /// Requests that waited for their first token, on average over its length.
    pub waiting: f64,
    /// The lower quartile of the seconds between its tokens and the tokens before them. It belongs
    /// to a step that reads no prompt, as long as no more than three of four steps read one.
    pub quick: f64,
}

impl Slice {
    /// Steps in it: each generates one token for every request of the batch.
    pub(crate) fn steps(&self) -> f64 {
        self.tokens / self.batch
    }

    /// The terms of the line, for one step.
    pub(crate) fn terms(&self) -> [f64; TERMS] {
        let each = |held: f64| held / self.steps();
        // Of terms that say the same, the last is left out: all steps may begin as many answers.
        let begun = [each(self.new_lengths), each(self.begun)];
        [1.0, self.batch, each(self.prompts), self.context, begun[0], begun[1]]
    }

    /// True if the engine worked for enough of it to show the time of its steps.
    pub(crate) fn is_busy(&self) -> bool {
        // The mean of a batch that is empty for half of the slice says little about its steps.
        self.batch > 0.5 && self.steps() > 0.5 && self.seconds > 0.0
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Steps {
    /// Seconds of a step that does nothing.
    pub empty: f64,
    /// Seconds that each request of the batch adds.
    pub request: f64,
    /// Seconds that each prompt token adds.
    pub prompt_token: f64,
    /// Seconds that each token of context adds.
    pub context_token: f64,
    /// Seconds that each answer adds beside its tokens, on average.
    pub answer: f64,
    /// The part of it that each answer adds whose prompt has a new length.
    pub new_length: f64,
    /// Mean seconds of a step.
    pub mean: f64,
    /// Mean requests in the batch.
    pub batch: f64,
    /// Variance that noise adds per second, in seconds: over t seconds, it shifts later events by a
    /// time of variance `noise * t`.
    pub noise: f64,
    /// Degrees of freedom of the noise.
    pub freedom: f64,
    /// The length of the steps of each slice, as a share of the mean. Where the engine answered
    /// nothing yet, it read prompts, in steps as long as the longest.
    pub lengths: Vec<f64>,
    /// The mean length of the step that is under way at an instant, as a share of the mean.
    pub under_way: f64,
}

impl Steps {
    /// The line through the slices and the noise about it; `None` if the engine worked in too few
    /// of them. It is the least-squares line, with a weight for each step, over the terms whose
    /// factors are not negative. The terms of answers that begin are used where they leave less
    /// noise. The noise assumes that its sums over blocks of slices follow a first-order
    /// autoregressive process ([`inflation`]).
    pub fn from_slices(slices: &[Slice]) -> Option<Self> {
        let busy: Vec<&Slice> = slices.iter().filter(|slice| slice.is_busy()).collect();
        let each = points(&busy);
        let summed: Vec<Point> = each.chunks(SUMMED).map(Point::sum).collect();
        let lines = [(&each, QUIET), (&each, TERMS), (&summed, QUIET), (&summed, TERMS)];
        let rests = lines
            .into_iter()
            .filter(|(points, _)| points.len() >= FEWEST)
            .map(|(points, terms)| Rest::new(slices, line(points, terms), terms));
        let Rest { line, noise, freedom } =
            rests.min_by(|one, other| one.noise.total_cmp(&other.noise))?;
        let sum = |of: &dyn Fn(&Slice) -> f64| busy.iter().map(|slice| of(slice)).sum::<f64>();
        let seconds = sum(&|slice| slice.seconds);
        let mean = seconds / sum(&Slice::steps);
        let length = |slice: &Slice| slice.seconds / slice.steps() / mean;
        let longest = busy.iter().map(|slice| length(slice)).fold(1.0, f64::max);
        let lengths =
            slices.iter().map(|slice| if slice.is_busy() { length(slice) } else { longest });
        let begun = sum(&|slice| line[4] * slice.new_lengths + line[5] * slice.begun);
        Some(Steps {
            new_length: line[4],
            answer: begun / sum(&|slice| slice.begun).max(1.0),
            lengths: lengths.collect(),
            empty: line[0],
            request: line[1],
            prompt_token: line[2],
            context_token: line[3],
            mean,
            under_way: sum(&|slice| slice.seconds * length(slice)) / seconds,
            batch: sum(&|slice| slice.batch * slice.seconds) / seconds,
            noise,
            freedom,
        })
    }
}

struct Rest {
    line: [f64; TERMS],
    noise: f64,
    freedom: f64,
}

impl Rest {
    /// The noise about a line of `terms` terms through the slices.
    fn new(slices: &[Slice], line: [f64; TERMS], terms: usize) -> Self {
        let busy = |slice: &&Slice| slice.is_busy();
        let off = |slice: &Slice| {
            let step: f64 =
                (line.iter().zip(slice.terms())).map(|(factor, term)| factor * term).sum();
            slice.seconds - slice.steps() * step
        };
        let sums: Vec<f64> = (0..BLOCKS)
            .map(|block| {
                let of = block * slices.len() / BLOCKS..(block + 1) * slices.len() / BLOCKS;
                slices[of].iter().filter(busy).map(off).sum()
            })
            .collect();
        let (factor, freedom) = inflation(&sums);
        let seconds: f64 = slices.iter().filter(busy).map(|slice| slice.seconds).sum();
        let count = slices.iter().filter(busy).count() as f64;
        let squares: f64 = sums.iter().map(|sum| sum * sum).sum();
        let noise = squares / seconds * factor * count / (count - terms as f64);
        Rest { line, noise, freedom }
    }
}

/// The line for steps that read no prompt, through slices that were always busy; `None` if they are
/// too few.
pub(crate) fn line_through(busy: &[&Slice]) -> Option<[f64; TERMS]> {
    (busy.len() >= FEWEST).then(|| line(&points(busy), QUIET))
}

/// A point of the line: a slice in which the engine always worked, or a sum of such slices.
#[derive(Clone, Copy, Debug, Default)]
struct Point {
    seconds: f64,
    steps: f64,
    /// The terms of all steps, summed.
    terms: [f64; TERMS],
}

impl From<&Slice> for Point {
    fn from(slice: &Slice) -> Self {
        let steps = slice.steps();
        let terms = slice.terms().map(|term| steps * term);
        Point { seconds: slice.seconds, steps, terms }
    }
}

fn points(slices: &[&Slice]) -> Vec<Point> {
    slices.iter().map(|slice| Point::from(*slice)).collect()
}

impl Point {
    fn sum(points: &[Point]) -> Point {
        points.iter().fold(Point::default(), |sum, own| Point {
            seconds: sum.seconds + own.seconds,
            steps: sum.steps + own.steps,
            terms: std::array::from_fn(|term| sum.terms[term] + own.terms[term]),
        })
    }
}

/// The factors of the line through the steps of the points, by least squares with a weight for each
/// step. None is negative, because work takes time: a term whose factor is negative is left out.
fn line(points: &[Point], terms: usize) -> [f64; TERMS] {
    let says = |term: &usize| points.iter().any(|point| point.terms[*term] != 0.0);
    let mut used: Vec<usize> = (0..terms).filter(says).collect();
    while !used.is_empty() {
        let count = used.len();
        let (mut products, mut values) = (vec![vec![0.0; count]; count], vec![0.0; count]);
        let mut sums = [0.0; TERMS];
        for Point { seconds, steps, terms } in points {
            for (row, &i) in used.iter().enumerate() {
                sums[i] += terms[i] / steps;
                values[row] += terms[i] / steps * seconds;
                for (column, &j) in used.iter().enumerate() {
                    products[row][column] += terms[i] * terms[j] / steps;
                }
            }
        }
        let Some(factors) = solved(products, values) else {
            used.pop();
            continue;
        };
        let least = (0..count).min_by(|a, b| {
            let adds = |place: &usize| factors[*place] * sums[used[*place]];
            adds(a).total_cmp(&adds(b))
        });
        if let Some(least) = least.filter(|least| factors[*least] < 0.0) {
            used.remove(least);
            continue;
        }
        let mut line = [0.0; TERMS];
        for (factor, term) in factors.into_iter().zip(used) {
            line[term] = factor;
        }
        return line;
    }
    [0.0; TERMS]
}

/// The solution of linear equations by elimination; `None` if they have none or many.
fn solved(mut rows: Vec<Vec<f64>>, mut values: Vec<f64>) -> Option<Vec<f64>> {
    let count = values.len();
    let scale: Vec<f64> = (0..count).map(|place| rows[place][place]).collect();
    for place in 0..count {
        let size = |row: &usize| rows[*row][place].abs();
        let pivot = (place..count).max_by(|a, b| size(a).total_cmp(&size(b)))?;
        rows.swap(place, pivot);
        values.swap(place, pivot);
        // The rest of a term that the others make up is rounding.
        if rows[place][place].abs() <= 1e-9 * scale[place] {
            return None;
        }
        let (above, below) = rows.split_at_mut(place + 1);
        let own = &above[place];
        for (offset, row) in below.iter_mut().enumerate() {
            let factor = row[place] / own[place];
            for (cell, of_own) in row.iter_mut().zip(own).skip(place) {
                *cell -= factor * of_own;
            }
            values[place + 1 + offset] -= factor * values[place];
        }
    }
    let mut found = vec![0.0; count];
    for place in (0..count).rev() {
        let known: f64 = (place + 1..count).map(|column| rows[place][column] * found[column]).sum();
        found[place] = (values[place] - known) / rows[place][place];
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use simulator::Random;

    /// Slices of steps of 10 ms, 0.2 ms a request and 0.02 ms a prompt token; varied by a share.
    fn slices(seed: u64, share: f64) -> Vec<Slice> {
        let mut random = Random::new(seed);
        let mut at = 0.0;
        (0..200)
            .map(|_| {
                at = 0.9 * at + random.normal();
                let batch = (20.0_f64 + 2.0 * at).max(2.0);
                let prompts = (random.uniform() * 10_000.0).round();
                let step = |random: &mut Random| {
                    (0.010 + 0.000_2 * batch) * (1.0 + share * random.normal())
                };
                let seconds = (0..50).map(|_| step(&mut random)).sum::<f64>() + 0.000_02 * prompts;
                Slice { seconds, tokens: 50.0 * batch, batch, prompts, ..Slice::default() }
            })
            .collect()
    }

    #[test]
    fn the_line_is_what_the_steps_take() {
        let steps = Steps::from_slices(&slices(1, 0.05)).unwrap();
        assert!((steps.empty / 0.010 - 1.0).abs() < 0.05, "{steps:?}");
        assert!((steps.request / 0.000_2 - 1.0).abs() < 0.1, "{steps:?}");
        assert!((steps.prompt_token / 0.000_02 - 1.0).abs() < 0.05, "{steps:?}");
        assert_eq!(steps.context_token, 0.0);
        assert_eq!(Steps::from_slices(&slices(1, 0.05)[..39]), None);
    }

    /// 10,000 steps of 14 ms in 160 s; each varies by 5 % of 14 ms: a variance of 0.49 ms² a step.
    #[test]
    fn noise_is_that_of_the_steps() {
        let found: Vec<f64> =
            (0..60).map(|seed| Steps::from_slices(&slices(seed, 0.05)).unwrap().noise).collect();
        let mean = found.iter().sum::<f64>() / 60.0;
        let wanted = 10_000.0 * 0.000_7 * 0.000_7 / 160.0;
        // The correction for dependence adds an eighth where there is none.
        assert!((1.0..1.4).contains(&(mean / wanted)), "{mean} {wanted}");
        let exact = Steps::from_slices(&slices(1, 0.0)).unwrap();
        assert!(exact.noise < 1e-9 * wanted, "{exact:?}");
    }

    /// Every slice reads ten prompts. In the beginning, all of them have lengths that are new, in
    /// the end none has. Each of these takes 50 ms longer. A repeat of the requests repeats that.
    #[test]
    fn prompts_of_new_lengths_are_no_noise() {
        let mut warming = slices(4, 0.05);
        let noise = Steps::from_slices(&warming).unwrap().noise;
        for (place, slice) in (0_i32..).zip(&mut warming) {
            slice.begun = 10.0;
            slice.new_lengths = f64::from(10 - place / 10).max(0.0);
            slice.seconds += 0.05 * slice.new_lengths;
        }
        let steps = Steps::from_slices(&warming).unwrap();
        assert!((steps.new_length / 0.05 - 1.0).abs() < 0.05, "{steps:?}");
        assert!(steps.noise < 1.2 * noise, "{steps:?} {noise}");
    }

    #[test]
    fn terms_that_say_nothing_are_left_out() {
        let mut even = slices(3, 0.05);
        for slice in &mut even {
            (slice.batch, slice.tokens, slice.prompts) = (10.0, 500.0, 0.0);
        }
        let steps = Steps::from_slices(&even).unwrap();
        assert_eq!((steps.request, steps.prompt_token), (0.0, 0.0));
        assert!((steps.empty - steps.mean).abs() < 1e-9, "{steps:?}");
    }
}
