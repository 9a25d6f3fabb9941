//! OpenAI's Responses API: requests for `/v1/responses`. `read` has the replies, `items` the
//! conversations (<https://platform.openai.com/docs/api-reference/responses>).

mod items;
mod read;

use crate::{Body, Earlier, Error, Prompt, Sample, Setting, Settings};

use super::not_taken;
pub use read::{Reply, decode};

/// The fields of a server's requests.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'f> {
    /// The field that limits the answer's length.
    pub limit: &'f str,
    /// The sampling parameters that the server adds to `temperature` and `top_p`.
    pub further: &'f [&'f str],
    /// True if the server keeps the reply: the next request names it and sends only new messages.
    pub store: bool,
}

/// The body of a request; `earlier` comes from the last reply of the conversation.
///
/// # Errors
/// [`Error::InvalidConfig`] if this API does not accept such a prompt, or has no field for a
/// setting; and [`Error::InvalidInput`] if a message holds what this API cannot express.
pub fn body(
    sample: &Sample,
    settings: &Settings,
    fields: &Fields<'_>,
    earlier: Option<&Earlier>,
) -> Result<Body, Error> {
    let mut body = Body::new();
    body.set("model", settings.model_for(sample));
    let earlier = earlier.filter(|_| fields.store);
    match &sample.prompt {
        Prompt::Text(text) => {
            body.set("input", text);
        }
        Prompt::Messages(messages) => {
            let known = earlier.map_or(0, |earlier| earlier.messages as usize);
            let new = messages.get(known..).unwrap_or_default();
            body.set("input", items::written(new)?);
        }
        Prompt::Tokens(_) => {
            return Err(Error::config(
                "key `route`: the dataset gives token ids, which /v1/responses does not accept; set route = \
                 \"completions\", or have the dataset give text",
            ));
        }
        other => return Err(not_taken(other, "/v1/responses", "responses")),
    }
    if let Some(earlier) = earlier {
        let id = str::from_utf8(&earlier.carry)
            .map_err(|_| Error::Other("the reply's id is not text".to_owned()))?;
        body.set("previous_response_id", id);
    }
    let sampling = &settings.sampling;
    body.set_some("temperature", sampling.temperature).set_some("top_p", sampling.top_p);
    let further = [
        ("top_k", Setting::TopK),
        ("min_p", Setting::MinP),
        ("frequency_penalty", Setting::FrequencyPenalty),
        ("presence_penalty", Setting::PresencePenalty),
        ("repetition_penalty", Setting::RepetitionPenalty),
        ("seed", Setting::Seed),
        ("stop", Setting::Stop),
        ("min_tokens", Setting::MinOutputTokens),
    ];
    let mut refused = Vec::new();
    for (field, setting) in further {
        match setting.value(sample, settings) {
            Some(value) if fields.further.contains(&field) => {
                body.set(field, value);
            }
            Some(_) => refused.push(format!("--{}", setting.key())),
            None => {}
        }
    }
    if !refused.is_empty() {
        return Err(Error::InvalidConfig(format!(
            "key `route`: /v1/responses of this server has no field for {}; leave the setting out, or set another route",
            refused.join(", ")
        )));
    }
    body.set_some(fields.limit, settings.output_tokens_for(sample));
    body.set("store", fields.store);
    body.set("stream", settings.streaming);
    Ok(body)
}

/// The mistake of a configuration that has the server keep replies on another route.
pub fn store_needs_route() -> Error {
    Error::config(
        "key `store`: only /v1/responses keeps replies; set route = \"responses\", or leave this out",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Message, Role};

    #[test]
    fn a_reply_that_was_kept_has_no_meaning_without_store() {
        let message = |role, text| Message::text(role, text);
        let messages =
            vec![message(Role::User, "a"), message(Role::Assistant, "b"), message(Role::User, "c")];
        let sample = Sample::new("1", Prompt::Messages(messages));
        let earlier = Earlier { carry: b"resp_1".to_vec(), messages: 2 };
        let forgetful = Fields { limit: "max_output_tokens", further: &[], store: false };
        let whole = body(&sample, &Settings::new("m"), &forgetful, Some(&earlier)).unwrap();
        let whole = String::from_utf8(whole.to_bytes()).unwrap();
        assert!(whole.contains(r#""content":"a""#) && !whole.contains("previous"), "{whole}");
    }
}
