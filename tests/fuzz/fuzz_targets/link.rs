//! Any bytes are a header of a resumable link or an error; a header that is written again is read as
//! the same one.

#![no_main]

use acp_relay::link::Header;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok((header, begin)) = Header::read(bytes)
        && header != Header::Unknown
    {
        assert!(begin <= bytes.len());
        let mut written = Vec::new();
        header.write(&mut written);
        let again = Header::read(&written).expect("it was one");
        assert_eq!(again, (header, written.len()));
    }
});
