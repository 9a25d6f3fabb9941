//! Values that a file leaves out.

/// True of a value that a file leaves out and a reader puts back.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
