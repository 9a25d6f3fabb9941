//! `[request]` as written: options for every request.

use crate::Fate::{Must, Silent};
use crate::Kind;
use crate::field::Maybe;
use crate::key::{heading::REQUESTS, plan};
use crate::table::table;
use model::adapter::Assignment;
use model::duration::Span;
use model::identity::{Form, Routing};
use model::session::{AfterFailure, History};
use model::temperature::Temperature;
use reader::{ConfigTable, Located};

table! {
    /// `[request]`: options for every request.
    pub struct RequestOptions {
        /// True if replies are streamed.
        stream: Maybe<bool> = true => plan("request.stream", Must(Kind::Request))
            .switch("disable-stream", REQUESTS)
            .inverted("Ask for whole replies instead of streams");
        /// Output tokens to ask for, whatever the dataset says.
        output_tokens: Maybe<u64> => plan("request.output-tokens", Must(Kind::Lengths))
            .flag("output-tokens", "TOKENS", REQUESTS);
        /// Minimum number of output tokens, if the engine supports it.
        min_output_tokens: Maybe<u64> => plan("request.min-output-tokens", Must(Kind::Lengths))
            .flag("min-output-tokens", "TOKENS", REQUESTS);
        /// True if answers reach the requested length by ignoring the end-of-sequence token.
        ignore_eos: Maybe<bool> = true => plan("request.ignore-eos", Must(Kind::Request))
            .switch("disable-ignore-eos", REQUESTS)
            .inverted("Let the model end its answers by itself");
        /// Sampling temperature; `server` leaves it to the server.
        temperature: Maybe<Temperature> = Temperature::default() => plan("request.temperature", Must(Kind::Request))
            .flag("temperature", "TEMPERATURE", REQUESTS);
        /// Sample from the likeliest tokens whose probabilities add up to this.
        top_p: Maybe<f64> => plan("request.top-p", Must(Kind::Request))
            .flag("top-p", "PROBABILITY", REQUESTS);
        /// Sample from this many of the likeliest tokens.
        top_k: Maybe<u64> => plan("request.top-k", Must(Kind::Request))
            .flag("top-k", "TOKENS", REQUESTS);
        /// Sample from tokens with at least this share of the likeliest token's probability.
        min_p: Maybe<f64> => plan("request.min-p", Must(Kind::Request))
            .flag("min-p", "SHARE", REQUESTS);
        /// Subtract this for each earlier occurrence of a token.
        frequency_penalty: Maybe<f64> => plan("request.frequency-penalty", Must(Kind::Request))
            .flag("frequency-penalty", "PENALTY", REQUESTS)
            .negative();
        /// Subtract this once if a token occurred earlier.
        presence_penalty: Maybe<f64> => plan("request.presence-penalty", Must(Kind::Request))
            .flag("presence-penalty", "PENALTY", REQUESTS)
            .negative();
        /// Divide the score of tokens that occurred earlier by this.
        repetition_penalty: Maybe<f64> => plan("request.repetition-penalty", Must(Kind::Request))
            .flag("repetition-penalty", "PENALTY", REQUESTS);
        /// Random seed of the server's sampling.
        sampling_seed: Maybe<u64> => plan("request.sampling-seed", Must(Kind::Request))
            .flag("sampling-seed", "SEED", REQUESTS);
        /// Text that ends an answer; repeatable.
        stop: Maybe<Vec<Located<String>>> => plan("request.stop", Must(Kind::Request))
            .flag("stop", "TEXT", REQUESTS);
        /// Adapters (LoRA) to use if the dataset names none.
        ///
        /// The flag takes every word after it, so put scenarios first.
        adapters: Maybe<Vec<Located<String>>> => plan("request.adapters", Must(Kind::Request))
            .flag("lora-modules", "NAME", REQUESTS)
            .alias("lora-name")
            .delimiter(',')
            .words()
            .theirs(&["lora-modules"]);
        /// Assignment of adapters to requests.
        adapter_assignment: Maybe<Assignment> = Assignment::default()
            => plan("request.adapter-assignment", Must(Kind::Request))
            .flag("lora-assignment", "WHICH", REQUESTS)
            .theirs(&["lora-assignment"]);
        /// Instructions that every conversation begins with; they stand before the dataset's own.
        system_prompt: Maybe<String> => plan("request.system-prompt", Must(Kind::Prompts))
            .flag("system-prompt", "TEXT", REQUESTS);
        /// Answers that stand in the history of a conversation.
        history: Maybe<History> = History::default() => plan("request.history", Must(Kind::Prompts))
            .flag("history", "WHICH", REQUESTS);
        /// Action for requests that depend on a failed request: drop or continue.
        after_failure: Maybe<AfterFailure> => plan("request.after-failure", Must(Kind::Request))
            .flag("after-failure", "WHAT", REQUESTS)
            .otherwise("drop, but continue in lanes");
        /// Share of requests to cancel, like users who close the page.
        ///
        /// The seed chooses the requests. They have the class `cancelled`, which is no failure.
        cancel_share: Maybe<f64> => plan("request.cancel.share", Must(Kind::Load))
            .flag("cancel-share", "SHARE", REQUESTS);
        /// Time after sending at which such a request is cancelled, unless its answer has ended.
        cancel_after: Maybe<Span> => plan("request.cancel.after", Must(Kind::Load))
            .flag("cancel-after", "TIME", REQUESTS);
        /// Fields that are added to the body of every request; the flag takes a JSON object.
        extra_body: ConfigTable => plan("request.extra-body", Must(Kind::Request))
            .flag("extra-body", "JSON", REQUESTS)
            .alias("extra-request-body")
            .theirs(&["extra-request-body", "extra-args"]);
        /// The ids that requests carry as header fields.
        ids: Ids;
    }
}

table! {
    /// `[request.ids]`: the ids that requests carry, so that a server's log can be joined with
    /// records, and routers keep a session on one server.
    pub struct Ids {
        /// Header fields for the id of each request; `off` for none.
        ///
        /// A header that `headers` in [target] sets replaces an id of the same name.
        request: Maybe<Vec<Located<String>>> = vec![Located::flag("default", "x-request-id".to_owned())]
            => plan("request.ids.request", Silent)
            .flag("request-id-header", "NAME", REQUESTS)
            .delimiter(',');
        /// Header fields for the id of the session, such as X-Session-ID.
        ///
        /// The requests of a conversation share an id. Any other request has its own id.
        session: Maybe<Vec<Located<String>>> => plan("request.ids.session", Silent)
            .flag("session-header", "NAME", REQUESTS)
            .delimiter(',')
            .otherwise("none");
        /// Header fields for the id of the session that began this one, such as
        /// X-Dynamo-Parent-Session-ID.
        ///
        /// Only the requests of a sub-agent carry it.
        parent: Maybe<Vec<Located<String>>> => plan("request.ids.parent", Silent)
            .flag("parent-session-header", "NAME", REQUESTS)
            .delimiter(',')
            .otherwise("none");
        /// Header fields for a key that a router sends to one server, such as X-SMG-Routing-Key.
        routing_key: Maybe<Vec<Located<String>>> => plan("request.ids.routing-key", Silent)
            .flag("routing-key-header", "NAME", REQUESTS)
            .delimiter(',')
            .otherwise("none");
        /// Scope of a routing key.
        routing_by: Maybe<Routing> = Routing::default() => plan("request.ids.routing-by", Silent)
            .flag("routing-by", "WHAT", REQUESTS);
        /// Prefix of ids, before the request's number: up to 64 letters, digits and -_.:/
        prefix: Maybe<String> => plan("request.ids.prefix", Silent)
            .flag("request-id-prefix", "TEXT", REQUESTS)
            .otherwise("a random text, new in each run")
            .theirs(&["request-id-prefix"]);
        /// Form of ids.
        form: Maybe<Form> = Form::default() => plan("request.ids.form", Silent)
            .flag("request-id-form", "FORM", REQUESTS);
        /// Send a trace context (`traceparent` of the W3C), by which servers add their spans to a
        /// request's trace.
        traceparent: Maybe<bool> = false
            => plan("request.ids.traceparent", Silent).switch("traceparent", REQUESTS);
    }
}
