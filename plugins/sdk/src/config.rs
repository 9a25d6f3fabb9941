//! The user's configuration table: from the host's JSON to the plugin's type, and the schema that
//! lists its keys for host and user.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::Error;

/// Reads a plugin's configuration from a JSON object.
///
/// # Errors
/// [`Error::InvalidConfig`] that names the key and the expected value.
pub fn parse<C: DeserializeOwned>(json: &str) -> Result<C, Error> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let key = error.path().to_string();
        let cause = without_position(&error.inner().to_string());
        Error::InvalidConfig(if key == "." { cause } else { format!("key `{key}`: {cause}") })
    })?;
    deserializer
        .end()
        .map_err(|error| Error::InvalidConfig(without_position(&error.to_string())))?;
    Ok(value)
}

/// The JSON Schema of a configuration type, with its doc comments as descriptions.
pub fn schema<C: JsonSchema>() -> String {
    schemars::schema_for!(C).as_value().to_string()
}

/// Checks the key `prefix`, the path before an API's routes, and takes away the `/` at its end.
///
/// # Errors
/// The message for a path that does not begin with `/`; several mistakes go into one
/// [`Error::InvalidConfig`].
pub fn check_prefix(prefix: &mut String) -> Result<(), String> {
    if !prefix.is_empty() && !prefix.starts_with('/') {
        return Err(format!(
            "key `prefix`: expected a path that begins with `/`, or nothing, got `{prefix}`"
        ));
    }
    prefix.truncate(prefix.trim_end_matches('/').len());
    Ok(())
}

/// The host passes JSON made from the user's TOML, so its lines and columns would only mislead.
fn without_position(message: &str) -> String {
    match message.rfind(" at line ") {
        Some(at) => message[..at].to_owned(),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
    struct Config {
        /// The count.
        how_many: u32,
    }

    impl Default for Config {
        fn default() -> Self {
            Config { how_many: 3 }
        }
    }

    fn complaint(json: &str) -> String {
        match parse::<Config>(json) {
            Err(Error::InvalidConfig(message)) => message,
            other => panic!("expected invalid-config, got {other:?}"),
        }
    }

    #[test]
    fn a_mistake_names_its_key_and_the_expected_value() {
        assert_eq!(
            complaint(r#"{"how-many":"x"}"#),
            "key `how-many`: invalid type: string \"x\", expected u32"
        );
        assert_eq!(
            complaint(r#"{"howmany":1}"#),
            "key `howmany`: unknown field `howmany`, expected `how-many`"
        );
    }

    #[test]
    fn defaults_apply() {
        assert_eq!(parse::<Config>("{}").unwrap().how_many, 3);
    }

    #[test]
    fn the_schema_carries_names_descriptions_and_defaults() {
        let schema: serde_json::Value = serde_json::from_str(&schema::<Config>()).unwrap();
        let key = &schema["properties"]["how-many"];
        assert_eq!(key["description"], "The count.");
        assert_eq!(key["default"], 3);
        assert_eq!(schema["additionalProperties"], false);
    }
}
