//! Any text is a filter or an error that points into it; a printed filter matches the same.

#![no_main]

use acp_relay::analysis::filter::{DerivedFields, Filter};
use acp_relay::recording::{EventKind, RecordedEvent};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let event = RecordedEvent {
        n: 1,
        t: 2,
        w: 3,
        kind: EventKind::Mark("a mark".to_owned()),
    };
    match text.parse::<Filter>() {
        Ok(filter) => {
            let matched = filter.matches(&event, DerivedFields::default());
            let again: Filter = filter.to_string().parse().expect("it was one");
            assert_eq!(again.matches(&event, DerivedFields::default()), matched);
            if let Ok(not) = format!("not ({text})").parse::<Filter>() {
                assert!(not.matches(&event, DerivedFields::default()) != matched);
            }
        }
        Err(error) => {
            assert!(text.get(error.at.clone()).is_some());
            assert!(error.to_string().contains('^'));
        }
    }
});
