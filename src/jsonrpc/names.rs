//! Enums whose variants have names, for labels, logs and values of messages.

/// Makes such an enum: the names are written once, beside the variants.
#[macro_export]
macro_rules! names {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$about:meta])* $variant:ident = $text:literal,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$about])* #[doc = concat!("`", $text, "`")] $variant,)*
        }

        impl $name {
            /// All of them, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Their names, in the same order.
            pub const NAMES: &[&str] = &[$($text,)*];

            /// The name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                Self::NAMES[self as usize]
            }
        }
    };
}
