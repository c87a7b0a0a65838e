//! Any text is a filter or an error that points into it; a filter says the same of itself again.

#![no_main]

use acp_relay::recording::filter::{Facts, Filter};
use acp_relay::recording::{Event, What};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let event = Event {
        n: 1,
        t: 2,
        w: 3,
        what: What::Mark("a mark".to_owned()),
    };
    match text.parse::<Filter>() {
        Ok(filter) => {
            let held = filter.matches(&event, Facts::default());
            let again: Filter = filter.to_string().parse().expect("it was one");
            assert_eq!(again.matches(&event, Facts::default()), held);
            if let Ok(not) = format!("not ({text})").parse::<Filter>() {
                assert!(not.matches(&event, Facts::default()) != held);
            }
        }
        Err(fault) => {
            assert!(text.get(fault.at.clone()).is_some());
            assert!(fault.to_string().contains('^'));
        }
    }
});
