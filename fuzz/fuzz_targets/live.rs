//! Any bytes for what hosts behind devices send: the run goes on to its end, and what they are
//! handed are right packets.

#![no_main]

use std::sync::LazyLock;

use ackclock_sim::spec::RunSpec;
use libfuzzer_sys::fuzz_target;

#[path = "../../crates/live/tests/it/hostile/drive.rs"]
mod drive;

static SPECS: LazyLock<Vec<RunSpec>> = LazyLock::new(drive::specs);

fuzz_target!(|data: &[u8]| drive::drive(&SPECS, data));
