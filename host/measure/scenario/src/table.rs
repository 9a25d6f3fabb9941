//! The declaration of a table: each of its keys once.

/// Declares a table of a scenario with all of its keys.
///
/// A key is written as its documentation (whose first paragraph is its flag's help), its
/// field, its type, its default if it has one, and its further facts, which begin with its place in
/// the plan:
///
/// ```text
/// /// Longest wait for a connection to open.
/// connect: Maybe<Span> = Span(Duration::from_secs(10))
///     => plan("timeouts.connect", Must(Kind::Client))
///     .flag("connect-timeout", "TIME", CONNECTIONS);
/// ```
///
/// The macro makes the struct (a key that is not set has an absent field), its reader, its overlay
/// and its part of [`keys`](crate::keys). For each key with a default it makes a function of the
/// field's name, which returns the value or the default.
macro_rules! table {
    (
        $(#[$meta:meta])*
        pub struct $Table:ident {
            $(
                $(#[doc = $doc:literal])*
                $field:ident $(as $name:literal)? : $Type:ty $(= $default:expr)? $(=> $key:expr)?;
            )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, ::serde::Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub struct $Table {
            $(
                $(#[doc = $doc])*
                #[serde(
                    skip_serializing_if = "crate::field::Field::is_unset",
                    serialize_with = "crate::field::Field::write"
                )]
                $(#[serde(rename = $name)])?
                pub $field: $Type,
            )+
        }

        #[allow(clippy::missing_const_for_fn, reason = "tables without defaults have no functions")]
        impl $Table {
            $($(
                #[doc = concat!("The value of `", stringify!($field), "`, or its default.")]
                pub fn $field(&self) -> <$Type as $crate::field::Field>::Value {
                    let located = self.$field.as_ref();
                    located.map_or_else(|| $default, |located| located.value.clone())
                }
            )?)+
        }

        impl $crate::field::Field for $Table {
            type Value = $Table;

            #[allow(unused_mut, unused_assignments, reason = "not every key has a default")]
            fn declare(key: $crate::key::Key, keys: &mut Vec<$crate::key::Key>) {
                use $crate::field::{Field, below};
                $({
                    let mut own = $crate::key::Key::default();
                    $( own = $key; )?
                    let mut default = None;
                    $(
                        let value: <$Type as Field>::Value = $default;
                        default = Some($crate::field::Value::toml(&value));
                    )?
                    own = own.documented(&[$($doc),*], default);
                    own.path = below(&key.path, $crate::table::name!($field $($name)?));
                    <$Type as Field>::declare(own, keys);
                })+
            }

            fn read(
                t: &mut ::reader::Reader<'_, '_>,
                key: &'static str,
                _: Option<&'static str>,
            ) -> Self {
                t.table(key, <$Table as $crate::field::Table>::read_keys)
            }

            fn merged(self, over: Self) -> Self {
                $Table {
                    $( $field: $crate::field::Field::merged(self.$field, over.$field), )+
                }
            }

            fn is_unset(&self) -> bool {
                $( $crate::field::Field::is_unset(&self.$field) )&&+
            }

            fn say(&mut self, within: &[&str], flag: &str, texts: &[String]) -> Result<(), String> {
                let (first, rest) = within.split_first().unwrap_or((&"", &[]));
                $(
                    if *first == $crate::table::name!($field $($name)?) {
                        return $crate::field::Field::say(&mut self.$field, rest, flag, texts);
                    }
                )+
                Err(format!("{flag}: there is no key `{first}`"))
            }

            fn entries(&self, path: &str, entries: &mut Vec<$crate::field::Entry>) {
                $(
                    let own = $crate::field::below(path, $crate::table::name!($field $($name)?));
                    $crate::field::Field::entries(&self.$field, &own, entries);
                )+
            }
        }

        impl $crate::field::Table for $Table {
            #[allow(unused_mut, unused_assignments, reason = "tables within have no key of their own")]
            fn read_keys(t: &mut ::reader::Reader<'_, '_>) -> Self {
                $Table {
                    $(
                        $field: {
                            let mut expected = None;
                            $( expected = $key.expects; )?
                            $crate::field::Field::read(
                                t,
                                $crate::table::name!($field $($name)?),
                                expected,
                            )
                        },
                    )+
                }
            }
        }
    };
}

/// A field's name in a scenario: `first_token` is `first-token`.
macro_rules! name {
    ($field:ident $name:literal) => {
        $name
    };
    ($field:ident) => {{
        const FIELD: &str = stringify!($field);
        const BYTES: [u8; FIELD.len()] = $crate::table::kebab(FIELD);
        const NAME: &str = match std::str::from_utf8(&BYTES) {
            Ok(name) => name,
            Err(_) => FIELD,
        };
        NAME
    }};
}

pub(crate) use {name, table};

/// A name's bytes with `-` for `_`.
pub(crate) const fn kebab<const LENGTH: usize>(name: &str) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    let mut at = 0;
    while at < LENGTH {
        bytes[at] = match name.as_bytes()[at] {
            b'_' => b'-',
            byte => byte,
        };
        at += 1;
    }
    bytes
}
