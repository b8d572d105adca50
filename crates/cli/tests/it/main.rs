//! The integration tests of the crate in one binary, without those that clean up what killed live
//! runs have left: each of these is alone on the machine.

mod adaptive;
mod bad_input;
mod book;
mod broken_off;
mod check;
mod clock;
mod common;
mod compare;
mod completions;
mod control;
mod export;
mod guide;
mod import;
mod lessons;
mod list;
mod metrics;
mod no_live;
mod out;
mod packetdrill;
mod pattern;
mod pcap;
mod quotes;
mod record;
mod report;
mod reproduce;
mod run;
mod shards;
mod shown;
mod starter;
mod sweep;
mod trace;
mod verify;
mod watch;
