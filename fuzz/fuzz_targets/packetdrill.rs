//! Any bytes: an error with its line, or an outcome, which is the same a second time. Never a
//! panic, never for long.

#![no_main]

use ackclock_packetdrill::{Settings, parse, run};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match parse(text) {
        Ok(script) => {
            let settings = Settings::new();
            assert_eq!(run(&script, &settings), run(&script, &settings));
        }
        Err(error) => {
            let lines = text.split('\n').count() as u32;
            assert!((1..=lines).contains(&error.line), "line {} of {lines}", error.line);
            let _ = error.render("script.pkt", text, false);
        }
    }
});
