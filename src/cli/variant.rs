//! Options whose values are the variants of an enum of another crate.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use jsonrpc::Choice;

/// Reads the name of any variant.
pub(super) fn variant_of<T: Choice + Send + Sync>() -> impl TypedValueParser<Value = T> {
    one_of(T::ALL)
}

/// Reads the name of one of these variants.
pub(super) fn one_of<T: Choice + Send + Sync>(
    values: &'static [T],
) -> impl TypedValueParser<Value = T> {
    let name = |value: &T| PossibleValue::new(value.name()).help(value.about());
    PossibleValuesParser::new(values.iter().map(name)).try_map(|name| T::from_name(&name))
}
