//! Enums whose values have names: in scenarios, on the command line, in results and in messages.
//!
//! [`words!`](crate::words) and [`names!`](crate::names) declare such an enum together with its
//! names, which stand nowhere else.

/// An enum whose values have names.
pub trait Word: Copy + 'static {
    /// Every value, in the order of their declaration.
    const ALL: &'static [Self];

    /// The value's name.
    fn name(self) -> &'static str;

    /// The value's documentation.
    fn about(self) -> &'static str;

    /// The value of that name.
    fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|value| value.name() == name)
    }
}

/// Every name of an enum, in the order of their declaration.
pub fn all<T: Word>() -> impl Iterator<Item = &'static str> {
    T::ALL.iter().map(|value| value.name())
}

/// The error for a text that is not one of an enum's names.
pub fn unknown<T: Word>(text: &str) -> String {
    let names: Vec<String> = all::<T>().map(|name| format!("`{name}`")).collect();
    format!("expected one of {}, found {text:?}", names.join(", "))
}

/// Declares an enum and the names of its values: `name()`, `ALL`, [`Word`](crate::words::Word),
/// `FromStr`, `Display`, and its forms in JSON and in JSON Schemas, for which the crate needs
/// `serde` and `schemars`.
///
/// ```
/// model::words! {
///     /// The course of a rate from one value to another.
///     pub enum Shape {
///         /// By as much in every second.
///         Linear = "linear",
///         /// By the same factor in every second.
///         Exponential = "exponential",
///     }
///     default Linear
/// }
/// assert_eq!("exponential".parse(), Ok(Shape::Exponential));
/// assert_eq!(serde_json::to_string(&Shape::default()).unwrap(), "\"linear\"");
/// ```
#[macro_export]
macro_rules! words {
    (
        $(#[$meta:meta])*
        $visible:vis enum $Enum:ident {
            $( $(#[doc = $about:literal])* $Value:ident = $name:literal, )+
        }
        $(default $Default:ident)?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        $visible enum $Enum {
            $( $(#[doc = $about])* #[serde(rename = $name)] $Value, )+
        }

        $crate::names!(@impl $Enum { $( [$($about),*] $Value = $name, )+ } $(default $Default)?);
    };
}

/// Declares an enum and the names of its values as [`words!`] does, but without forms in JSON.
#[macro_export]
macro_rules! names {
    (
        $(#[$meta:meta])*
        $visible:vis enum $Enum:ident {
            $( $(#[doc = $about:literal])* $Value:ident = $name:literal, )+
        }
        $(default $Default:ident)?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $visible enum $Enum {
            $( $(#[doc = $about])* $Value, )+
        }

        $crate::names!(@impl $Enum { $( [$($about),*] $Value = $name, )+ } $(default $Default)?);
    };
    (@impl $Enum:ident { $( [$($about:literal),*] $Value:ident = $name:literal, )+ } $(default $Default:ident)?) => {
        #[allow(dead_code, reason = "every such enum has the same functions")]
        impl $Enum {
            /// Every value.
            pub const ALL: [$Enum; [$( $name ),+].len()] = [$( $Enum::$Value ),+];

            /// Its name, in scenarios, on the command line, in results and in messages.
            pub const fn name(self) -> &'static str {
                match self {
                    $( $Enum::$Value => $name, )+
                }
            }
        }

        impl $crate::words::Word for $Enum {
            const ALL: &'static [$Enum] = &$Enum::ALL;

            fn name(self) -> &'static str {
                $Enum::name(self)
            }

            fn about(self) -> &'static str {
                match self {
                    $( $Enum::$Value => ::core::concat!($($about),*).trim_ascii_start(), )+
                }
            }
        }

        impl ::core::str::FromStr for $Enum {
            type Err = String;

            fn from_str(name: &str) -> ::core::result::Result<Self, String> {
                <$Enum as $crate::words::Word>::named(name)
                    .ok_or_else(|| $crate::words::unknown::<$Enum>(name))
            }
        }

        impl ::core::fmt::Display for $Enum {
            fn fmt(&self, out: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                out.pad($Enum::name(*self))
            }
        }

        $(
            impl ::core::default::Default for $Enum {
                fn default() -> Self {
                    $Enum::$Default
                }
            }
        )?
    };
}

#[cfg(test)]
mod tests {
    use super::Word;

    crate::words! {
        /// A colour.
        enum Colour {
            /// Like grass,
            /// or like leaves.
            Green = "green",
            /// Like the sky.
            LightBlue = "light-blue",
        }
        default LightBlue
    }

    #[test]
    fn names_and_documentation_are_the_same_everywhere() {
        for colour in Colour::ALL {
            let name = colour.name();
            assert_eq!(name.parse(), Ok(colour));
            assert_eq!(colour.to_string(), name);
            assert_eq!(serde_json::to_value(colour).unwrap(), name);
            assert_eq!(serde_json::from_value::<Colour>(name.into()).unwrap(), colour);
        }
        assert_eq!(Colour::default(), Colour::LightBlue);
        assert_eq!(Colour::Green.about(), "Like grass, or like leaves.");
        let error = "red".parse::<Colour>().unwrap_err();
        assert_eq!(error, "expected one of `green`, `light-blue`, found \"red\"");
        let schema = serde_json::to_value(schemars::schema_for!(Colour)).unwrap();
        let of = |at: usize| schema["oneOf"][at].clone();
        assert_eq!(of(0)["const"], "green");
        assert_eq!(of(1)["const"], "light-blue");
        assert_eq!(of(1)["description"], "Like the sky.");
    }
}
