//! Any text is a configuration or has faults; the first one names a line and a column of the text.

#![no_main]

use acp_relay::cli::configuration_faults;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Some(faults) = configuration_faults(text) else {
        return;
    };
    let lines = text.matches('\n').count() + 1;
    let first = faults.lines().next().expect("faults have a line");
    let place = first.strip_prefix("acp-relay.toml:").expect("it is named");
    let mut numbers = place.split(':').map(str::parse::<usize>);
    let (line, column) = (numbers.next(), numbers.next());
    assert!(
        matches!(line, Some(Ok(line)) if (1..=lines).contains(&line)),
        "{faults}"
    );
    assert!(matches!(column, Some(Ok(1..))), "{faults}");
});
