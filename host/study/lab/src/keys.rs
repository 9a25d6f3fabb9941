//! Every key of a lab file, once: its table, its values, its default, and its meaning.
//!
//! [`read`](crate::read) reads them; a test holds the two together.

#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The table that it stands in; empty at the top.
    pub table: &'static str,
    pub name: &'static str,
    /// The values that it takes.
    pub takes: &'static str,
    /// The value without it.
    pub otherwise: &'static str,
    pub about: &'static str,
}

macro_rules! keys {
    ($([$table:literal] $($name:literal $takes:literal else $otherwise:literal: $about:literal;)+)+) => {
        &[$($(Key {
            table: $table, name: $name, takes: $takes, otherwise: $otherwise, about: $about
        }),+),+]
    };
}

/// Keys that an option of an engine may have in the place of a list of values, under
/// `[engines.options]` and `[engines.env-options]`.
pub const OPTION: &[Key] = keys! {
    ["engines.options.NAME"]
    "values" "a list of values" else "required": "The values to try.";
    "baseline" "one of the values" else "the first value": "The value that the baseline has.";
    "omit" "one of the values" else "every value is written":
        "With this value the flag is left out, so the engine uses its default.";
    "off" "a string" else "nothing is written":
        "The text for `false`, such as \"--no-enable-prefix-caching\". Only options have it, \
         variables do not.";
    "when" "a condition" else "it always applies":
        "The condition under which the option applies, such as \"max-num-seqs >= 128\".";
};

/// Every key, in the order of the guide.
pub const KEYS: &[Key] = keys! {
    [""]
    "name" "a string" else "required": "The name of the lab.";
    "about" "a string" else "nothing":
        "Purpose of the lab, in a sentence or two for readers of its page.";
    "strategy" "`matrix` or `one-at-a-time`" else "one-at-a-time":
        "The trials that are run, and their order.";
    "repeats" "a whole number from 1 to 100" else "3":
        "Number of runs of each trial on each scenario. One repeat cannot show a difference.";
    "confirm" "a whole number from 0 to 100" else "as `repeats`":
        "Number of fresh repeats of the best trial and of the baseline that confirm the gain at \
         the end. A trial that was chosen as the fastest is mostly somewhat slower the next time. \
         Without them a gain is not confirmed.";
    "retries" "a whole number from 0 to 10" else "1":
        "Number of retries of an invalid or failed run, or of an engine that did not start.";
    "scenarios" "a string or a list of strings" else "required":
        "The scenarios: files, folders of files, or names of built-in ones. Paths are relative to \
         the lab file.";
    "set" "a table of a scenario's keys" else "nothing":
        "Keys that are laid over every scenario, such as `load.requests = 500`. Texts may hold \
         placeholders, such as \"{model.tokenizer}\".";
    "set-for" "a table of tables of a scenario's keys" else "nothing":
        "As `set`, for one scenario (its file name without `.toml`): \
         [set-for.sharegpt.dataset.files]. It holds no placeholders.";
    "objective" "a table" else "nothing is chosen": "The criterion of the best trial.";
    "budget" "a table" else "no limit": "Limits at which the lab ends, done or not.";
    "cost" "a table" else "nothing": "The cost of machines.";
    "models" "a list of tables" else "one model without a name":
        "The models; each is a study of its own.";
    "engines" "a list of tables" else "required": "The engines.";

    ["objective"]
    "maximize" "a figure, such as \"throughput.output-tokens-per-s\", or \"score.NAME\""
        else "one of `maximize` and `minimize`": "The figure to make as high as possible.";
    "minimize" "a figure, such as \"e2e.mean\"" else "one of `maximize` and `minimize`":
        "The figure to make as low as possible.";
    "subject-to" "a string or a list of strings" else "\"requests.success-share >= 99%\"":
        "Constraints such as \"ttft.p99 < 2s\" or \"score.exact-match >= 0.9\"; each must hold on \
         average over the rounds of a trial. Requests that failed or were not sent count as \
         infinitely slow, and as wrong answers. The constraint on the success share holds unless \
         another one on it is given.";
    "pareto" "a list of two figures" else "[\"throughput.output-tokens-per-s\", \"tpot.mean\"]":
        "The two figures of the Pareto front.";

    ["budget"]
    "time" "a time such as \"8h\"" else "no limit":
        "The time that engines and runs may take together. No run begins that would probably end \
         later.";
    "cost" "a number above 0" else "no limit":
        "The most that they may cost together, by `cost.per-hour`.";

    ["cost"]
    "per-hour" "a number above 0" else "costs are not reported":
        "Cost of an hour of the machine, in any currency.";

    ["models"]
    "name" "a string" else "required":
        "The model's name in tables, and the placeholder {model.name}.";
    "path" "a string" else "as `name`": "The model that the engine loads: {model.path}.";
    "served-name" "a string" else "as `path`":
        "The name that requests use: {model.served-name}.";
    "values" "a table of strings and numbers" else "nothing":
        "Further placeholders: `tp = 4` is {model.tp}.";

    ["engines"]
    "name" "a string" else "required":
        "The engine's name in tables, and the placeholder {engine}.";
    "backend" "a string" else "the scenario's":
        "The backend plugin that speaks the engine's protocol.";
    "config" "a table" else "the scenario's": "Configuration of the backend plugin.";
    "launch" "a list of strings" else "the engine runs already, at `base-url`":
        "The command that starts the engine, a word each; the options follow it, or stand where \
         the word \"{options}\" does. Placeholders: {port}, {host}, {engine} and {model.…}; \
         {{port}} is the text {port}. A container is a launch command too.";
    "env" "a table of strings" else "nothing":
        "Environment variables of the engine. `${NAME}` stands for a variable of this program's \
         environment; it is a secret, and its value is never written anywhere.";
    "dir" "a path" else "the lab file's folder": "The folder that the engine is started in.";
    "host" "a string" else "127.0.0.1": "The address that the engine listens on.";
    "port" "a port, 1 to 65535" else "8000": "The port that the engine listens on.";
    "base-url" "an http or https URL" else "http://HOST:PORT": "The engine's address.";
    "ready-timeout" "a time such as \"15m\"" else "15m":
        "Time that the engine may take until it answers a request.";
    "stop-timeout" "a time such as \"30s\"" else "30s":
        "Time that the engine may take to end before it is killed.";
    "version-command" "a list of strings" else "the version is not recorded":
        "A command that prints the engine's version.";
    "flags" "`space` or `equals`" else "space":
        "Form of an option: `--name value` or `--name=value`.";
    "options" "a table of options" else "nothing":
        "Options of the engine by name. A value is written as it is: 64 as `--name 64`, `true` as \
         `--name` alone, `false` as nothing, a list as several words, a table as JSON. A list \
         holds values to try; the first value is the baseline; a table with `values` says more.";
    "env-options" "a table of options" else "nothing":
        "Options of the engine that are environment variables. `true` is 1, and for `false` the \
         variable is not set.";
    "linked" "a table of groups of options" else "nothing":
        "Options whose values change together: under [engines.linked.GROUP], lists of the same \
         length. The first of each is the baseline.";
    "baseline" "a table of values" else "each option's own baseline":
        "The baseline's values, of any options, in one place.";
    "exclude" "a condition or a list of them" else "nothing":
        "Trials that are left out: \"quantization == 'fp8' && model == 'tiny'\".";
    "models" "a string or a list of strings" else "all models":
        "The models, by name, to try the engine with.";
};
