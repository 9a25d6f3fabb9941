//! Structs that are written as JSON: results, their parts, and other files of a run.

pub use macro_rules_attribute::apply;

/// Declares a struct that is written as JSON, as an attribute. Keys are in kebab case, and unknown
/// keys are refused. An optional value that is absent has no key: absent is not zero.
///
/// The struct can be cloned, compared and debugged, and has a JSON Schema. The crate needs `serde`
/// and `schemars`.
///
/// ```
/// /// Outcomes.
/// #[model::apply(model::document!)]
/// #[derive(Default)]
/// pub struct Requests {
///     /// Requests that were due.
///     pub total: u64,
///     /// Requests in a second.
///     pub per_second: Option<f64>,
/// }
/// assert_eq!(serde_json::to_string(&Requests::default()).unwrap(), r#"{"total":0}"#);
/// ```
#[macro_export]
macro_rules! document {
    ($(#[$meta:meta])* $visible:vis struct $Name:ident { $($fields:tt)* }) => {
        $crate::document! { @ [$(#[$meta])* $visible struct $Name] {} $($fields)* }
    };
    // Moves the first field that is left to the fields in braces.
    (@ $head:tt { $($done:tt)* }
        $(#[$meta:meta])* $visible:vis $field:ident: Option<$Value:ty>, $($rest:tt)*) => {
        $crate::document! { @ $head {
            $($done)*
            $(#[$meta])*
            #[serde(default, skip_serializing_if = "Option::is_none")]
            $visible $field: Option<$Value>,
        } $($rest)* }
    };
    (@ $head:tt { $($done:tt)* }
        $(#[$meta:meta])* $visible:vis $field:ident: $Value:ty, $($rest:tt)*) => {
        $crate::document! { @ $head {
            $($done)* $(#[$meta])* $visible $field: $Value,
        } $($rest)* }
    };
    (@ [$($head:tt)*] { $($fields:tt)* }) => {
        #[derive(Clone, Debug, PartialEq)]
        #[derive(::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        $($head)* { $($fields)* }
    };
}
