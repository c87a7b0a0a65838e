//! The features that the program may be built without: what belongs to one of them is an error then,
//! which names it. The flag parser, the configuration reader and `endpoints` look here.

/// For each feature, whether this build has it, and how its words begin: its name, schemes and tables,
/// and then its other subcommands, flags and keys.
const FEATURES: [(bool, &str); 2] = [
    (cfg!(feature = "agent-connect"), AGENT_CONNECT),
    (cfg!(feature = "cluster"), "cluster --cluster gateway"),
];

const AGENT_CONNECT: &str = "agent-connect --agent-connect --allow-callback --default-permission \
                             default-permission --store";

/// The error about a word of a feature that this build is without.
pub(super) fn missing(word: &str) -> Option<String> {
    let (_, words) = FEATURES
        .iter()
        .find(|(is_built, words)| !is_built && words.split(' ').any(|own| word.starts_with(own)))?;
    let feature = words.split(' ').next()?;
    let fault = format!("this program was built without the feature `{feature}`");
    Some(fault)
}
