//! The parameters of the engine's model, and their notation: `slots=32,step=10ms,jitter=0.05`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use model::{duration, nearest};

/// The parameters of an engine that answers many requests in one batch.
///
/// A step generates one token for every request of the batch whose prompt has been read, and reads
/// a chunk of the prompts of the others. It takes
/// `step + request * decoding + prompt-token * read + context * held`, where `held` is the tokens
/// that the batch has in the KV cache, times the run's pace and a jitter whose logarithm is a
/// first-order autoregressive process.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// Requests that can be in the batch at the same time.
    pub slots: u32,
    /// Seconds that every step takes.
    pub step: f64,
    /// Seconds that each request of the batch adds to a step.
    pub request: f64,
    /// Seconds that each prompt token read in a step adds to it.
    pub prompt_token: f64,
    /// Seconds that each token that the batch has in the KV cache adds to a step.
    pub context: f64,
    /// Prompt tokens that a step reads at most.
    pub chunk: u32,
    /// Tokens that the KV cache holds, prompts and answers together; 0 for no limit. A step that
    /// needs more puts the newest request of the batch back into the queue, and its tokens are read
    /// again later.
    pub kv: u64,
    /// Standard deviation of the logarithm of a step's jitter.
    pub jitter: f64,
    /// Correlation of a step's jitter with the previous step's.
    pub correlation: f64,
    /// Standard deviation of the logarithm of the run's pace, a factor that all steps of one run
    /// share. Its median is 1.
    pub run: f64,
}

impl Default for Parameters {
    /// An engine whose batch is full at a few thousand tokens per second.
    fn default() -> Self {
        Parameters {
            slots: 32,
            step: 0.010,
            request: 0.000_2,
            prompt_token: 0.000_02,
            context: 0.0,
            chunk: 2048,
            kv: 0,
            jitter: 0.05,
            correlation: 0.0,
            run: 0.0,
        }
    }
}

/// The names of the parameters, each with its meaning in a few words.
pub const NAMES: [(&str, &str); 10] = [
    ("slots", "requests in the batch at the same time"),
    ("step", "time of every step"),
    ("request", "time that each request of the batch adds to a step"),
    ("prompt-token", "time that each prompt token read adds to a step"),
    ("context", "time that each token in the KV cache adds to a step"),
    ("chunk", "prompt tokens that a step reads at most"),
    ("kv", "tokens that the KV cache holds, 0 for no limit"),
    ("jitter", "standard deviation of the logarithm of a step's time"),
    ("correlation", "correlation of a step's jitter with the previous step's jitter"),
    ("run", "standard deviation of the logarithm of a run's pace"),
];

impl FromStr for Parameters {
    type Err = String;

    /// Reads `NAME=VALUE` pairs with commas between them; parameters that are not named keep their
    /// defaults. Errors: every mistake, one a line, with the expected value.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut parameters = Parameters::default();
        let mut mistakes = Vec::new();
        let mut seen: Vec<&str> = Vec::new();
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let Some((name, value)) = pair.split_once('=') else {
                mistakes.push(format!("`{pair}`: expected NAME=VALUE, such as `slots=32`"));
                continue;
            };
            let (name, value) = (name.trim(), value.trim());
            if seen.contains(&name) {
                mistakes.push(format!("`{name}` is given twice"));
                continue;
            }
            seen.push(name);
            if let Err(mistake) = parameters.set(name, value) {
                mistakes.push(mistake);
            }
        }
        if mistakes.is_empty() { Ok(parameters) } else { Err(mistakes.join("\n")) }
    }
}

impl Parameters {
    /// Sets one parameter by its name. Errors: a message that names the expected value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let whole = |least: u64, most: u64| {
            let number = value.parse::<u64>().ok();
            let number = number.filter(|number| (least..=most).contains(number));
            number.ok_or_else(|| {
                format!("`{name}={value}`: expected a whole number from {least} to {most}")
            })
        };
        let time = || {
            let span =
                duration::parse(value).map_err(|error| format!("`{name}={value}`: {error}"))?;
            let seconds = span.as_secs_f64();
            (seconds <= 60.0)
                .then_some(seconds)
                .ok_or_else(|| format!("`{name}={value}`: expected at most 60s"))
        };
        let share = |most: f64| {
            let number = value.parse::<f64>().ok();
            let number = number.filter(|number| (0.0..=most).contains(number));
            number.ok_or_else(|| format!("`{name}={value}`: expected a number from 0 to {most}"))
        };
        match name {
            "slots" => self.slots = whole(1, 100_000)? as u32,
            "step" => self.step = time()?,
            "request" => self.request = time()?,
            "prompt-token" => self.prompt_token = time()?,
            "context" => self.context = time()?,
            "chunk" => self.chunk = whole(1, 10_000_000)? as u32,
            "kv" => self.kv = whole(0, 1_000_000_000_000)?,
            "jitter" => self.jitter = share(2.0)?,
            "correlation" => self.correlation = share(0.999)?,
            "run" => self.run = share(1.0)?,
            other => {
                let names = NAMES.iter().map(|(name, _)| *name);
                let all: Vec<&str> = names.clone().collect();
                let near = nearest(other, names).map(|near| format!("; did you mean `{near}`?"));
                return Err(format!(
                    "there is no parameter `{other}`{}; there are {}",
                    near.unwrap_or_default(),
                    all.join(", ")
                ));
            }
        }
        Ok(())
    }
}

/// As they are read, with times in whole nanoseconds.
impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |seconds: f64| {
            let nanos = (seconds * 1e9).round() as u64;
            duration::format(Duration::from_nanos(nanos))
        };
        write!(
            f,
            "slots={},step={},request={},prompt-token={},context={},chunk={},kv={},jitter={},correlation={},run={}",
            self.slots,
            time(self.step),
            time(self.request),
            time(self.prompt_token),
            time(self.context),
            self.chunk,
            self.kv,
            self.jitter,
            self.correlation,
            self.run
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_and_written() {
        let read: Parameters = "slots=8, step=5ms,kv=4096,run=0.01".parse().unwrap();
        let wanted =
            Parameters { slots: 8, step: 0.005, kv: 4096, run: 0.01, ..Parameters::default() };
        assert_eq!(read, wanted);
        assert_eq!(read.to_string().parse::<Parameters>().unwrap(), read);
        assert_eq!("".parse::<Parameters>().unwrap(), Parameters::default());
        for step in ["10ms", "123.4us", "7ns", "0.333333333s", "59.999999999s", "1m"] {
            let read: Parameters = format!("step={step},request={step}").parse().unwrap();
            assert_eq!(read.to_string().parse(), Ok(read), "{step}");
        }
        let usual = Parameters::default().to_string();
        assert!(usual.contains(",step=10ms,request=200us,prompt-token=20us,"), "{usual}");
        for (name, _) in NAMES {
            assert!(read.to_string().contains(&format!("{name}=")), "{name}");
        }
    }

    #[test]
    fn all_mistakes_are_listed_at_once() {
        let text = "slot=8,slots=0,step=5,jitter=3,run,kv=1,kv=2";
        let mistakes = text.parse::<Parameters>().unwrap_err();
        let wanted = [
            "there is no parameter `slot`; did you mean `slots`?",
            "`slots=0`: expected a whole number from 1 to 100000",
            "`step=5`: `5`: a unit is missing",
            "`jitter=3`: expected a number from 0 to 2",
            "`run`: expected NAME=VALUE",
            "`kv` is given twice",
        ];
        assert_eq!(mistakes.lines().count(), wanted.len(), "{mistakes}");
        for (mistake, wanted) in mistakes.lines().zip(wanted) {
            assert!(mistake.starts_with(wanted), "{mistake}");
        }
    }
}
