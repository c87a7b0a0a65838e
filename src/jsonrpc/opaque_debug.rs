//! `Debug` for types whose fields have none, or say too much.

/// Implements `Debug` for types by their names; in parentheses, the field of each that is shown.
#[macro_export]
macro_rules! opaque_debug {
    ($($name:ident $(($field:ident))?),+) => {$(
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut shown = f.debug_struct(stringify!($name));
                shown$(.field(stringify!($field), &self.$field))?.finish_non_exhaustive()
            }
        }
    )+};
}
