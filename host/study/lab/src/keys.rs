//! Every key of a lab file, once: its place, its values, its default, and its meaning.
//!
//! [`read`](crate::read) reads them; a test holds the two together.

/// A key of a lab file.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The table that it stands in; empty at the top.
    pub table: &'static str,
    pub name: &'static str,
    /// The values that it takes.
    pub takes: &'static str,
    /// The value without it.
    pub otherwise: &'static str,
    /// Its meaning.
    pub about: &'static str,
}

const fn key(
    [table, name]: [&'static str; 2],
    takes: &'static str,
    otherwise: &'static str,
    about: &'static str,
) -> Key {
    Key { table, name, takes, otherwise, about }
}

/// Keys that an option of an engine may have in the place of a list of values, under
/// `[engines.options]` and `[engines.env-options]`.
pub const OPTION: [Key; 5] = [
    key(["engines.options.NAME", "values"], "a list of values", "required", "The values to try."),
    key(
        ["engines.options.NAME", "baseline"],
        "one of the values",
        "the first value",
        "The value that the baseline has.",
    ),
    key(
        ["engines.options.NAME", "omit"],
        "one of the values",
        "every value is written",
        "With this value the flag is left out, so the engine uses its default.",
    ),
    key(
        ["engines.options.NAME", "off"],
        "a string",
        "nothing is written",
        "The text for `false`, such as \"--no-enable-prefix-caching\". Only options have it, variables do not.",
    ),
    key(
        ["engines.options.NAME", "when"],
        "a condition",
        "it always applies",
        "The condition under which the option applies, such as \"max-num-seqs >= 128\".",
    ),
];

/// Every key, in the order of a file.
pub const KEYS: [Key; 44] = [
    key(["", "name"], "a string", "required", "The name of the lab."),
    key(
        ["", "about"],
        "a string",
        "nothing",
        "Purpose of the lab, in a sentence or two for readers of its page.",
    ),
    key(
        ["", "strategy"],
        "`matrix` or `one-at-a-time`",
        "one-at-a-time",
        "The trials that are run, and their order.",
    ),
    key(
        ["", "repeats"],
        "a whole number from 1 to 100",
        "3",
        "Number of runs of each trial on each scenario. One repeat cannot show a difference.",
    ),
    key(
        ["", "confirm"],
        "a whole number from 0 to 100",
        "as `repeats`",
        "Number of fresh repeats of the best trial and of the baseline that confirm the gain at the end. A trial that was \
         chosen as the fastest is mostly somewhat slower the next time. Without them a gain is not confirmed.",
    ),
    key(
        ["", "retries"],
        "a whole number from 0 to 10",
        "1",
        "Number of retries of an invalid or failed run, or of an engine that did not start.",
    ),
    key(
        ["", "scenarios"],
        "a string or a list of strings",
        "required",
        "The scenarios: files, folders of files, or names of built-in ones. Paths are relative to the lab file.",
    ),
    key(
        ["", "set"],
        "a table of a scenario's keys",
        "nothing",
        "Keys that are laid over every scenario, such as `load.requests = 500`. Texts may hold placeholders, such as \
         \"{model.tokenizer}\".",
    ),
    key(
        ["", "set-for"],
        "a table of tables of a scenario's keys",
        "nothing",
        "As `set`, for one scenario (its file name without `.toml`): [set-for.sharegpt.dataset.files]. It holds no \
         placeholders.",
    ),
    key(["", "objective"], "a table", "nothing is chosen", "The criterion of the best trial."),
    key(
        ["objective", "maximize"],
        "a figure, such as \"throughput.output-tokens-per-s\", or \"score.NAME\"",
        "one of `maximize` and `minimize`",
        "The figure to make as high as possible.",
    ),
    key(
        ["objective", "minimize"],
        "a figure, such as \"e2e.mean\"",
        "one of `maximize` and `minimize`",
        "The figure to make as low as possible.",
    ),
    key(
        ["objective", "subject-to"],
        "a string or a list of strings",
        "\"requests.success-share >= 99%\"",
        "Constraints such as \"ttft.p99 < 2s\" or \"score.exact-match >= 0.9\"; each must hold on average over the \
         rounds of a trial. Requests that failed or were not sent count as infinitely slow, and as wrong answers. The \
         constraint on the success share holds unless another one on it is given.",
    ),
    key(
        ["objective", "pareto"],
        "a list of two figures",
        "[\"throughput.output-tokens-per-s\", \"tpot.mean\"]",
        "The two figures of the Pareto front.",
    ),
    key(["", "budget"], "a table", "no limit", "Limits at which the lab ends, done or not."),
    key(
        ["budget", "time"],
        "a time such as \"8h\"",
        "no limit",
        "The time that engines and runs may take together. No run begins that would probably end later.",
    ),
    key(
        ["budget", "cost"],
        "a number above 0",
        "no limit",
        "The most that they may cost together, by `cost.per-hour`.",
    ),
    key(["", "cost"], "a table", "nothing", "The cost of machines."),
    key(
        ["cost", "per-hour"],
        "a number above 0",
        "costs are not reported",
        "Cost of an hour of the machine, in any currency.",
    ),
    key(
        ["", "models"],
        "a list of tables",
        "one model without a name",
        "The models; each is a study of its own.",
    ),
    key(
        ["models", "name"],
        "a string",
        "required",
        "The model's name in tables, and the placeholder {model.name}.",
    ),
    key(
        ["models", "path"],
        "a string",
        "as `name`",
        "The model that the engine loads: {model.path}.",
    ),
    key(
        ["models", "served-name"],
        "a string",
        "as `path`",
        "The name that requests use: {model.served-name}.",
    ),
    key(
        ["models", "values"],
        "a table of strings and numbers",
        "nothing",
        "Further placeholders: `tp = 4` is {model.tp}.",
    ),
    key(["", "engines"], "a list of tables", "required", "The engines."),
    key(
        ["engines", "name"],
        "a string",
        "required",
        "The engine's name in tables, and the placeholder {engine}.",
    ),
    key(
        ["engines", "backend"],
        "a string",
        "the scenario's",
        "The backend plugin that speaks the engine's protocol.",
    ),
    key(["engines", "config"], "a table", "the scenario's", "Configuration of the backend plugin."),
    key(
        ["engines", "launch"],
        "a list of strings",
        "the engine runs already, at `base-url`",
        "The command that starts the engine, a word each; the options follow it, or stand where the word \"{options}\" does. \
         Placeholders: {port}, {host}, {engine} and {model.…}; {{port}} is the text {port}. A container is a launch command \
         too.",
    ),
    key(
        ["engines", "env"],
        "a table of strings",
        "nothing",
        "Environment variables of the engine. `${NAME}` stands for a variable of this program's environment; it is a secret, \
         and its value is never written anywhere.",
    ),
    key(
        ["engines", "dir"],
        "a path",
        "the lab file's folder",
        "The folder that the engine is started in.",
    ),
    key(["engines", "host"], "a string", "127.0.0.1", "The address that the engine listens on."),
    key(["engines", "port"], "a port, 1 to 65535", "8000", "The port that the engine listens on."),
    key(
        ["engines", "base-url"],
        "an http or https URL",
        "http://HOST:PORT",
        "The engine's address.",
    ),
    key(
        ["engines", "ready-timeout"],
        "a time such as \"15m\"",
        "15m",
        "Time that the engine may take until it answers a request.",
    ),
    key(
        ["engines", "stop-timeout"],
        "a time such as \"30s\"",
        "30s",
        "Time that the engine may take to end before it is killed.",
    ),
    key(
        ["engines", "version-command"],
        "a list of strings",
        "the version is not recorded",
        "A command that prints the engine's version.",
    ),
    key(
        ["engines", "flags"],
        "`space` or `equals`",
        "space",
        "Form of an option: `--name value` or `--name=value`.",
    ),
    key(
        ["engines", "options"],
        "a table of options",
        "nothing",
        "Options of the engine by name. A value is written as it is: 64 as `--name 64`, `true` as `--name` alone, `false` as \
         nothing, a list as several words, a table as JSON. A list holds values to try; the first value is the baseline; a \
         table with `values` says more.",
    ),
    key(
        ["engines", "env-options"],
        "a table of options",
        "nothing",
        "Options of the engine that are environment variables. `true` is 1, and for `false` the variable is not set.",
    ),
    key(
        ["engines", "linked"],
        "a table of groups of options",
        "nothing",
        "Options whose values change together: under [engines.linked.GROUP], lists of the same length. The first of each is the \
         baseline.",
    ),
    key(
        ["engines", "baseline"],
        "a table of values",
        "each option's own baseline",
        "The baseline's values, of any options, in one place.",
    ),
    key(
        ["engines", "exclude"],
        "a condition or a list of them",
        "nothing",
        "Trials that are left out: \"quantization == 'fp8' && model == 'tiny'\".",
    ),
    key(
        ["engines", "models"],
        "a string or a list of strings",
        "all models",
        "The models, by name, to try the engine with.",
    ),
];
