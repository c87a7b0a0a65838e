//! Finds the option of a live permission request that corresponds to the recorded choice.
//!
//! Option ids are specific to an agent and change between versions; kinds do not, and names are
//! what the person saw.

use serde_json::Value;

/// The answer to give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OptionChoice {
    /// The recorded answer, unchanged.
    AsRecorded,
    /// This option, where the recording has that one.
    Other {
        /// The recorded option.
        recorded: String,
        /// The live one.
        live: String,
    },
    /// No option corresponds to the recorded one.
    None,
}

/// The choice for a live request, from the recorded request and answer.
pub(super) fn choose(request: &Value, answer: &Value, live: &Value) -> OptionChoice {
    let Some(recorded) = answer.pointer("/outcome/optionId").and_then(Value::as_str) else {
        return OptionChoice::AsRecorded;
    };
    let member = |option: &Value, name: &str| option.get(name)?.as_str().map(str::to_owned);
    let options = |request: &Value| {
        let options = request.get("options").and_then(Value::as_array);
        options.cloned().unwrap_or_default()
    };
    let (recorded_options, live_options) = (options(request), options(live));
    let chosen = recorded_options
        .iter()
        .find(|one| member(one, "optionId").as_deref() == Some(recorded));
    let of_chosen = |name| chosen.and_then(|one| member(one, name));
    let (kind, label) = (of_chosen("kind"), of_chosen("name"));
    let same_kind = |one: &&Value| kind.is_some() && member(one, "kind") == kind;
    let same_name = |one: &&Value| label.is_some() && member(one, "name") == label;
    let same_id = |one: &&Value| member(one, "optionId").as_deref() == Some(recorded);
    let found = live_options
        .iter()
        .find(|one| same_id(one) && (chosen.is_none() || same_kind(one) || same_name(one)))
        .or_else(|| {
            live_options
                .iter()
                .find(|one| same_kind(one) && same_name(one))
        })
        .or_else(|| live_options.iter().find(same_kind))
        .or_else(|| live_options.iter().find(same_name));
    match found.and_then(|one| member(one, "optionId")) {
        Some(live) if live == recorded => OptionChoice::AsRecorded,
        Some(live) => OptionChoice::Other {
            recorded: recorded.to_owned(),
            live,
        },
        // The recorded id was not among the options; some clients answer with the kind.
        None if chosen.is_none() => OptionChoice::AsRecorded,
        None => OptionChoice::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The choices of `tests/vectors/compare/permissions.json`.
    #[test]
    fn options_match_by_kind_and_name() {
        let vectors = include_str!("../../tests/vectors/compare/permissions.json");
        let vectors: Value = serde_json::from_str(vectors).unwrap();
        for row in vectors["choices"].as_array().unwrap() {
            let live = &vectors[row["options"].as_str().unwrap()];
            let text = |name: &str| row[name].as_str().map(str::to_owned);
            let expected = match (text("recorded"), text("live")) {
                (None, _) => OptionChoice::AsRecorded,
                (Some(_), None) => OptionChoice::None,
                (Some(recorded), Some(live)) => OptionChoice::Other { recorded, live },
            };
            let found = choose(&vectors["recorded"], &row["answer"], live);
            assert_eq!(found, expected, "{row}");
        }
    }
}
