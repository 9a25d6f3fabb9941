//! The outcome of an exchange: one table of classes, which records, summaries, pages and exit codes
//! share.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

crate::words! {
    /// The outcome of an exchange, as a class. Each class is counted and printed separately.
    pub enum Class {
        /// The reply was complete and held the requested answer.
        Complete = "complete",
        /// The answer ended before its length, although the request forced the length.
        Short = "short",
        /// The reply was complete but held no answer.
        Empty = "empty",
        /// The reply began and ended before its end marker.
        Truncated = "truncated",
        /// The server reported an error inside a reply that began as a success.
        InBandError = "in-band-error",
        /// The server answered with an HTTP status that is not a success.
        HttpStatus = "http-status",
        /// No connection could be made: refused, an unknown host, or no agreement on TLS.
        Refused = "refused",
        /// The connection broke before the reply's headers.
        Reset = "reset",
        /// No connection within the timeout.
        ConnectTimeout = "connect-timeout",
        /// Nothing of the answer within the first-token timeout.
        FirstTokenTimeout = "first-token-timeout",
        /// No more of the answer within the token-gap timeout.
        TokenGapTimeout = "token-gap-timeout",
        /// The answer was not complete within the request timeout.
        RequestTimeout = "request-timeout",
        /// The reply is not in the backend's dialect.
        Protocol = "protocol",
        /// The plugin trapped, ran too long or broke its contract.
        Plugin = "plugin",
        /// This client hung up on purpose, as the plan demands for a share of the requests; not a
        /// failure.
        Cancelled = "cancelled",
        /// The run was stopped while the request was in flight.
        Interrupted = "interrupted",
        /// It was due, but the run ended before the cap on requests in flight released it.
        NotSent = "not-sent",
        /// A request that it depends on failed, so it was not sent.
        ParentFailed = "parent-failed",
        /// A lost agent had to send it. The outcome is not known.
        LostWithAgent = "lost-with-agent",
    }
}

impl Class {
    /// True if a request of this class failed: its user got no requested answer, and had not left
    /// on purpose.
    pub const fn is_failure(self) -> bool {
        !matches!(self, Class::Complete | Class::Cancelled)
    }
}

crate::words! {
    /// The reason why a server did not answer, in terms that all engines share; the backend reads
    /// it from the reply.
    pub enum Reason {
        /// It is overloaded: a full queue, a limit on the request rate.
        Overloaded = "overloaded",
        /// It is not ready yet, or no longer ready.
        Unavailable = "unavailable",
        /// Prompt and answer are longer than the model's context.
        TooLong = "too-long",
        /// It does not serve this model or adapter.
        UnknownModel = "unknown-model",
        /// The key is missing or wrong, or does not permit this.
        Unauthorised = "unauthorised",
        /// The request is wrong in another way.
        Invalid = "invalid",
        /// The server failed.
        Internal = "internal",
    }
}

/// The outcome of an exchange. Only a complete answer is a success.
///
/// In JSON it is an object with the `class`, also for a complete answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The reply was complete and held the requested answer.
    Ok,
    /// Any other outcome.
    Incomplete {
        /// Its class, never [`Class::Complete`].
        class: Class,
        /// The server's reason for a refusal, if its reply states one.
        reason: Option<Reason>,
        /// A message for people; without secrets.
        message: String,
    },
}

impl Outcome {
    /// Its class.
    pub fn class(&self) -> Class {
        match self {
            Outcome::Ok => Class::Complete,
            Outcome::Incomplete { class, .. } => *class,
        }
    }
}

/// An outcome in JSON.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Fields {
    /// Class of the outcome.
    class: Class,
    /// The server's reason for a refusal, if its reply states one.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    /// A message for people, without secrets; absent for a complete answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = match self {
            Outcome::Ok => Fields { class: Class::Complete, reason: None, message: None },
            Outcome::Incomplete { class, reason, message } => {
                Fields { class: *class, reason: *reason, message: Some(message.clone()) }
            }
        };
        fields.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Outcome {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Fields { class, reason, message } = Fields::deserialize(deserializer)?;
        if class == Class::Complete {
            return Ok(Outcome::Ok);
        }
        Ok(Outcome::Incomplete {
            class,
            reason,
            message: message.ok_or_else(|| D::Error::missing_field("message"))?,
        })
    }
}

impl JsonSchema for Outcome {
    fn schema_name() -> Cow<'static, str> {
        "Outcome".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Fields::json_schema(generator);
        let about = "The outcome of an exchange. Only a complete answer is a success.";
        schema.insert("description".to_owned(), about.into());
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Outcome, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    fn incomplete(class: Class, reason: Option<Reason>, message: &str) -> Outcome {
        Outcome::Incomplete { class, reason, message: message.to_owned() }
    }

    #[test]
    fn outcomes_are_written_with_their_class_and_read_back() {
        let refused = incomplete(Class::HttpStatus, Some(Reason::Overloaded), "HTTP 429");
        for (outcome, text) in [
            (Outcome::Ok, r#"{"class":"complete"}"#),
            (refused, r#"{"class":"http-status","reason":"overloaded","message":"HTTP 429"}"#),
            (incomplete(Class::Truncated, None, ""), r#"{"class":"truncated","message":""}"#),
        ] {
            assert_eq!(serde_json::to_string(&outcome).unwrap(), text);
            assert_eq!(read(text).unwrap(), outcome);
        }
        for (text, why) in [
            ("{}", "missing field `class`"),
            (r#"{"class":"reset"}"#, "missing field `message`"),
            (r#"{"class":"gone","message":""}"#, "unknown variant `gone`"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn only_answers_and_cancellations_are_no_failure() {
        let others = Class::ALL.into_iter().filter(|class| !class.is_failure());
        assert_eq!(others.collect::<Vec<_>>(), [Class::Complete, Class::Cancelled]);
    }
}
