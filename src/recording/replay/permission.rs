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
    use serde_json::json;

    use super::*;

    #[test]
    fn options_match_by_kind_and_name() {
        let recorded = json!({"options": [
            {"optionId": "allow", "kind": "allow_once", "name": "Allow"},
            {"optionId": "no", "kind": "reject_once", "name": "Skip"},
        ]});
        let chose = |option: &str| json!({"outcome": {"outcome": "selected", "optionId": option}});
        let live = json!({"options": [
            {"optionId": "always", "kind": "allow_always", "name": "Allow"},
            {"optionId": "yes", "kind": "allow_once", "name": "Yes"},
            {"optionId": "never", "kind": "reject_always", "name": "Never"},
        ]});
        let instead = |recorded: &str, live: &str| OptionChoice::Other {
            recorded: recorded.to_owned(),
            live: live.to_owned(),
        };
        assert_eq!(
            choose(&recorded, &chose("allow"), &recorded),
            OptionChoice::AsRecorded
        );
        assert_eq!(
            choose(&recorded, &chose("allow"), &live),
            instead("allow", "yes")
        );
        assert_eq!(choose(&recorded, &chose("no"), &live), OptionChoice::None);
        assert_eq!(
            choose(&recorded, &chose("allow_once"), &recorded),
            OptionChoice::AsRecorded
        );
        let cancelled = json!({"outcome": {"outcome": "cancelled"}});
        assert_eq!(
            choose(&recorded, &cancelled, &live),
            OptionChoice::AsRecorded
        );
    }
}
