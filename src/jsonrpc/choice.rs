//! Enums whose variants are the values of an option, with names and descriptions for users.

use strum::{EnumMessage, VariantArray};

/// Such an enum. It derives the traits of `strum`; a variant's documentation describes it.
pub trait Choice: Copy + VariantArray + EnumMessage + Into<&'static str> {
    /// All of them.
    const ALL: &'static [Self] = <Self as VariantArray>::VARIANTS;

    /// The name, as users write it.
    fn name(self) -> &'static str {
        self.into()
    }

    /// What it means: its documentation, in one line.
    fn about(self) -> String {
        let lines = self.get_documentation().unwrap_or_default();
        lines.trim_end().replace('\n', " ")
    }

    /// The value with that name.
    ///
    /// # Errors
    /// The names that are known.
    fn from_name(name: &str) -> Result<Self, String> {
        let mut all = Self::ALL.iter();
        all.find(|value| value.name() == name)
            .copied()
            .ok_or_else(|| {
                let names: Vec<&str> = Self::ALL.iter().map(|value| value.name()).collect();
                format!("{name:?} is not known; expected {}", names.join(", "))
            })
    }
}

impl<T: Copy + VariantArray + EnumMessage + Into<&'static str>> Choice for T {}
