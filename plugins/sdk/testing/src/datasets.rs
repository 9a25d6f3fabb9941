//! Runs a dataset under test.

use runner_plugin::random::Python;
use runner_plugin::{
    Amount, Dataset, Error, Files, Inputs, Message, Part, Point, Prompt, Sample, Tokenizer, parse,
};

use crate::files::Named;

/// The lines `INPUT => EXPECTED` of a table of cases.
pub fn cases(table: &str) -> impl Iterator<Item = (&str, &str)> {
    table.trim().lines().map(|case| case.trim().split_once(" => ").expect("a case"))
}

/// Opens a dataset with a configuration in JSON.
///
/// # Errors
/// The dataset's.
pub fn open<D: Dataset>(
    config: &str,
    seed: u64,
    amount: impl Into<Amount>,
    files: impl Files + 'static,
    tokenizer: impl Tokenizer + 'static,
) -> Result<D, Error> {
    let inputs = Inputs { files: Box::new(files), tokenizer: Box::new(tokenizer) };
    D::open(parse(config)?, seed, amount.into(), inputs)
}

/// The next `most` samples, or fewer if the dataset ends before; each call asks for `limit`.
pub fn first(dataset: &mut impl Dataset, most: usize, limit: u32) -> Vec<Sample> {
    let mut samples = Vec::new();
    while samples.len() < most {
        let more = dataset.next(limit).expect("samples");
        if more.is_empty() {
            break;
        }
        assert!(more.len() <= limit as usize, "{} samples for a limit of {limit}", more.len());
        samples.extend(more);
    }
    samples.truncate(most);
    samples
}

/// The other samples of a dataset that ends; each call asks for `limit`.
pub fn rest(dataset: &mut impl Dataset, limit: u32) -> Vec<Sample> {
    first(dataset, usize::MAX, limit)
}

/// A spare sample, and then all samples of a dataset that ends; each call asks for `limit`.
///
/// # Errors
/// The dataset's.
pub fn read(dataset: &mut impl Dataset, limit: u32) -> Result<Vec<Sample>, Error> {
    dataset.spare(1)?;
    let mut samples = Vec::new();
    loop {
        let more = dataset.next(limit)?;
        if more.is_empty() {
            return Ok(samples);
        }
        samples.extend(more);
    }
}

/// A message in a line: its role, its parts and its further fields.
pub fn message_line(message: &Message) -> String {
    let parts = message.parts.iter().map(|part| match part {
        Part::Text(text) => text.clone(),
        Part::Answer(of) => format!("<{of}>"),
        other => format!("{other:?}"),
    });
    let role = format!("{:?}", message.role);
    let extra = message.extra.as_deref().unwrap_or_default();
    format!(
        "{}: {}{extra}",
        role.trim_start_matches("Role::"),
        parts.collect::<Vec<_>>().join(" + ")
    )
}

/// A sample in a line: its conversation's parent, its dependencies, its messages, the recorded
/// answer, tokens in and out, and its class.
pub fn shown(sample: &Sample) -> String {
    let parent = match &sample.prompt {
        Prompt::Continuation(next) => format!(" < {}", next.parent),
        _ => String::new(),
    };
    let after = sample.after.iter().map(|after| {
        let point = if after.point == Point::End { "" } else { "!" };
        format!(" [{}{point}+{}ms]", after.sample, after.delay / 1_000_000)
    });
    let after: String = after.collect();
    let messages: Vec<String> = sample.prompt.messages().iter().map(message_line).collect();
    let answer = sample.recorded_answer.as_ref().map(message_line).unwrap_or_default();
    let count = |tokens: Option<u32>| tokens.map_or("?".to_owned(), |tokens| tokens.to_string());
    format!(
        "{}{parent}{after} | {} | {answer} | {}>{}{}",
        sample.id,
        messages.join(" | "),
        count(sample.input_tokens),
        count(sample.output_tokens),
        sample.class.as_ref().map(|class| format!(" {class}")).unwrap_or_default()
    )
}

/// The text of a sample whose prompt is a text.
pub fn text(sample: &Sample) -> &str {
    match &sample.prompt {
        Prompt::Text(text) => text,
        other => panic!("expected text, got {other:?}"),
    }
}

/// The text of a sample that is a text, or of its last message.
pub fn prompt_text(sample: &Sample) -> &str {
    match sample.prompt.messages().last().map(|message| &message.parts[..]) {
        Some([Part::Text(text)]) => text,
        _ => text(sample),
    }
}

/// The names of samples.
pub fn ids(samples: &[Sample]) -> Vec<&str> {
    samples.iter().map(|sample| sample.id.as_str()).collect()
}

/// The message of a refused configuration.
pub fn invalid_config<T>(outcome: Result<T, Error>) -> String {
    match outcome {
        Err(Error::InvalidConfig(message)) => message,
        Err(other) => panic!("expected an invalid configuration, got {other:?}"),
        Ok(_) => panic!("expected an invalid configuration, which was accepted"),
    }
}

/// The message of a refused input.
pub fn invalid_input<T>(outcome: Result<T, Error>) -> String {
    match outcome {
        Err(Error::InvalidInput(message)) => message,
        Err(other) => panic!("expected an invalid input, got {other:?}"),
        Ok(_) => panic!("expected an invalid input, which was accepted"),
    }
}

/// The message of a refused configuration or input.
pub fn mistake<T>(outcome: Result<T, Error>) -> String {
    match outcome {
        Err(Error::InvalidConfig(message) | Error::InvalidInput(message)) => message,
        Err(other) => panic!("expected a mistake of the user, got {other:?}"),
        Ok(_) => panic!("expected a mistake of the user, which was accepted"),
    }
}

/// Asserts that samples depend on the seed and not on the size of a call, and that no spare sample
/// is measured. `limits` are the sizes of calls.
pub fn check_samples<D: Dataset>(open: impl Fn(u64) -> D, limits: &[u32]) {
    let count = limits.iter().sum();
    let whole = open(1).next(count).expect("samples");
    let mut dataset = open(1);
    let parts = limits.iter().flat_map(|limit| dataset.next(*limit).expect("samples"));
    assert_eq!(parts.collect::<Vec<_>>(), whole);
    assert_ne!(open(2).next(count).expect("samples"), whole, "another seed");
    let mut spared = open(1);
    let spares = spared.spare(count / 4).expect("spare samples");
    let measured = spared.next(count).expect("samples");
    assert_eq!(measured.len(), count as usize);
    let spared = |sample: &Sample| spares.iter().any(|spare| spare.prompt == sample.prompt);
    assert!(!measured.iter().any(spared));
    // Spare samples change nothing else.
    let others: Vec<_> = whole.into_iter().filter(|sample| !spared(sample)).collect();
    assert_eq!(measured[..others.len()], others);
}

/// Cuts or changes a file 600 times, and asserts that each file is read or refused as input;
/// returns the samples of files that have any.
pub fn damage<D: Dataset>(
    whole: &[u8],
    open: impl Fn(Named) -> Result<D, Error>,
) -> Vec<Vec<Sample>> {
    let mut random = Python::new(7);
    let mut all = Vec::new();
    for round in 0..600 {
        let mut bytes = whole.to_vec();
        let at = random.below(bytes.len() as u64) as usize;
        if round % 3 == 0 {
            bytes.truncate(at);
        } else {
            bytes[at] = b"\"{}[],:09aZ\xff"[random.below(12) as usize];
        }
        let opened = open(Named::default().with_bytes("data", bytes));
        let outcome = opened.and_then(|mut dataset| read(&mut dataset, 7));
        match outcome {
            Ok(samples) if samples.is_empty() => {}
            Ok(samples) => all.push(samples),
            Err(Error::InvalidInput(message)) => assert!(!message.is_empty()),
            Err(other) => panic!("round {round}: {other:?}"),
        }
    }
    all
}
