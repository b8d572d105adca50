//! Broken scripts: any text gives an error with its line or an outcome, soon and without a panic.
//!
//! Texts are scripts of the TCP endpoint and of MPTCP with lines, words and numbers changed.
//! `ACKCLOCK_FUZZ_SECONDS` says how long the ignored test goes on, `ACKCLOCK_FUZZ_CORPUS` names
//! another folder of scripts to begin with, `ACKCLOCK_FUZZ_SEED` another beginning. A script that
//! makes the runner panic is left in a file, which the failing test names.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, iter};

use ackclock_packetdrill::{ScriptResult, Settings, parse, run};
use ackclock_tcp::CONTROLLERS;
use ackclock_tcp::profile::Profile;
use ackclock_units::Random;

/// Longer than any script may take on a slow machine, with checks on and nothing optimised.
const LONGEST: Duration = Duration::from_secs(10);

/// The longest text that is made.
const MAX_BYTES: usize = 1 << 16;

/// Replacements for a number or a word now and then: limits of types, and words with a meaning in
/// the language.
const WORDS: &str = "\
    0  1  -1  255  256  65535  65536  2147483647  2147483648  4294967295  4294967296  9223372036854775807  \
    9223372036854775808  -9223372036854775808  99999999999999999999  1e308  0x  0xffffffffffffffff  0.000000001  \
    1000000000  +0  +1  +1000000  *  ...  ~  +0~+1  5...6  <  >  S  F.  R  P.  SEW  -  <...>  <mss 0>  <mss 1>  \
    <wscale 14>  <wscale 255>  <sackOK,TS val 1 ecr 0>  <nop,nop,sack 1:2 3:4 5:6 7:8>  <sack 4294967295:0>  win  \
    win 0  ack  urg 1  [ce]  [ect0]  0:0(0)  1:1001(1000)  1:4294967295(4294967294)  = -1  = 3  EAGAIN  (  )  [  ]  \
    {  }  %{  }%  `  \"  '  //  /*  */  #  ,  |  assert  tcpi_snd_cwnd  close(4)  shutdown(4, SHUT_WR)  \
    write(4, ..., 2147483647) = 2147483647  read(4, ..., 1) = 1  sysctl -q net.ipv4.tcp_sack=0  --tolerance_usecs=0  \
    --mss=1  --set=cc=reno  --set=cc=bbr  --set=cc=cdg  --set=ecn=accecn  --set=ecn=dctcp  --profile=freebsd-14  TCP_CONGESTION  \
    \"bbr\"  \"cdg\"  \"prague\"  \"vegas\"  SO_MAX_PACING_RATE  [ect1]  SEWA  SA  S.A  .5  .6  \
    IPPROTO_MPTCP  <mpcapable v1 flags[flag_h] nokey>  <mpcapable v1 flags[flag_h] key[ckey=2, skey]>  addr[c0]  addr[s1]  \
    <dss dack8=1 dsn8=1 ssn=1 dll=100 nocs>  <dss dack4=1 dsn4=18446744073709551615 ssn=0 dll=0 nocs fin>  mp_fastclose  \
    <mp_join_syn token=auto>  <mp_join_ack sender_hmac=auto>  <add_address addr[s1] hmac=auto>  \
    <remove_address address_id=[0, 1]>  <mp_prio backup=1>  <mp_reset 1>  `ip mptcp limits set subflows 8`  <ECN e1b 1 ceb 0 e0b 1>  \u{0}  é  \u{feff}";

fn word(random: &mut Random) -> &'static str {
    let words = || WORDS.split("  ");
    words().nth(below(random, words().count())).unwrap_or_default()
}

fn corpus() -> Vec<String> {
    let own = ["../tcp/tests/scripts", "tests/it/mptcp/scripts"];
    let own = own.map(|path| Path::new(env!("CARGO_MANIFEST_DIR")).join(path));
    let mut open = env::var_os("ACKCLOCK_FUZZ_CORPUS").map_or(own.to_vec(), |chosen| vec![PathBuf::from(chosen)]);
    let mut paths = Vec::new();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a folder that can be read");
            open.extend(entries.map(|entry| entry.expect("an entry").path()));
        } else if path.extension().is_some_and(|extension| extension == "pkt") {
            paths.push(path);
        }
    }
    paths.sort();
    paths.iter().map(|path| fs::read_to_string(path).expect("a text")).collect()
}

/// Below `bound`.
fn below(random: &mut Random, bound: usize) -> usize {
    random.below(bound as u64) as usize
}

/// One text with one to a few things wrong.
fn broken(corpus: &[String], random: &mut Random) -> String {
    let mut text = corpus[below(random, corpus.len())].clone();
    for _ in 0..=below(random, 3) {
        text = match below(random, 8) {
            0 => bytes(&text, random),
            1 | 2 => lines(&text, &corpus[below(random, corpus.len())], random),
            _ => words(&text, random),
        };
    }
    let mut end = text.len().min(MAX_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

fn bytes(text: &str, random: &mut Random) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let at = below(random, bytes.len().max(1));
    match below(random, 4) {
        0 => bytes.truncate(at),
        1 => bytes.insert(at.min(bytes.len()), random.bits() as u8),
        2 if !bytes.is_empty() => bytes[at] ^= 1 << below(random, 8),
        _ if !bytes.is_empty() => drop(bytes.remove(at)),
        _ => {}
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn lines(text: &str, other: &str, random: &mut Random) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let others: Vec<&str> = other.lines().collect();
    let at = below(random, lines.len().max(1));
    match below(random, 4) {
        0 if !lines.is_empty() => drop(lines.remove(at)),
        1 if !lines.is_empty() => {
            let to = below(random, lines.len());
            lines.swap(at, to);
        }
        2 if !lines.is_empty() => {
            let line = lines[at];
            let times = 1 + below(random, 20);
            lines.splice(at..at, iter::repeat_n(line, times));
        }
        _ if !others.is_empty() => lines.insert(at.min(lines.len()), others[below(random, others.len())]),
        _ => {}
    }
    lines.join("\n")
}

/// Changes a word: digits, or what is between blanks and punctuation.
fn words(text: &str, random: &mut Random) -> String {
    let kind = |c: char| match c {
        '0'..='9' => 0,
        'a'..='z' | 'A'..='Z' | '_' => 1,
        _ => 2,
    };
    let mut starts: Vec<usize> = Vec::new();
    let mut last = None;
    for (at, c) in text.char_indices() {
        if kind(c) == 2 || last != Some(kind(c)) {
            starts.push(at);
        }
        last = Some(kind(c));
    }
    if starts.is_empty() {
        return word(random).to_owned();
    }
    let mut chosen = below(random, starts.len());
    // Numbers make the more interesting mistakes.
    for _ in 0..4 {
        if text[starts[chosen]..].starts_with(|c: char| c.is_ascii_digit()) {
            break;
        }
        chosen = below(random, starts.len());
    }
    let from = starts[chosen];
    let to = starts.get(chosen + 1).copied().unwrap_or(text.len());
    let old = &text[from..to];
    let new = match (below(random, 4), old.parse::<u64>()) {
        (0, Ok(number)) => number.wrapping_add(1).to_string(),
        (1, Ok(number)) => number.wrapping_mul(random.below(5000)).to_string(),
        (2, _) => String::new(),
        _ => word(random).to_owned(),
    };
    format!("{}{new}{}", &text[..from], &text[to..])
}

/// Any host with any controller and feedback of ECN, most often the one that the script is for.
fn any_settings(random: &mut Random) -> Settings {
    let choices: [(&str, &[&str]); 7] = [
        ("profile", &Profile::all().map(|profile| profile.name)),
        ("cc", &CONTROLLERS.map(|controller| controller.name)),
        ("ecn", &["on", "off", "passive", "dctcp", "accecn", "accecn-classic", "accecn-passive"]),
        ("accecn_option", &["off", "minimum", "full", "persist"]),
        ("accecn_rules", &["rfc9768", "linux"]),
        ("loss_detector", &["rfc6675", "freebsd-9", "tahoe", "reno", "linux", "ncr", "rr-tcp", "rack"]),
        ("abe", &["on", "off"]),
    ];
    let mut settings = Settings::new();
    for (key, values) in choices {
        if below(random, 3) == 0 {
            settings.set(key, values[below(random, values.len())]).expect("a setting");
        }
    }
    settings
}

/// Parses and runs a text; what became of it.
fn result(text: &str, settings: &Settings) -> &'static str {
    match parse(text) {
        Ok(script) => {
            let outcome = run(&script, settings);
            if let ScriptResult::Failed(failure) = &outcome.result {
                assert!(failure.line as usize <= text.lines().count().max(1), "line {}", failure.line);
            }
            assert!(!outcome.to_string().is_empty());
            outcome.result.name()
        }
        Err(error) => {
            assert!((1..=text.split('\n').count()).contains(&(error.line as usize)), "line {}", error.line);
            assert!(error.render("script.pkt", text, false).contains(&format!("script.pkt:{}:", error.line)));
            "no script"
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the limit is on real time")]
fn now() -> Instant {
    Instant::now()
}

/// Tries texts while `go_on` says so and returns how many ended how.
fn attack(seed: u64, mut go_on: impl FnMut(usize) -> bool) -> Vec<(&'static str, usize)> {
    let corpus = corpus();
    assert!(!corpus.is_empty(), "there are scripts to begin with");
    let mut random = Random::for_component(seed, 0, "hostile");
    let mut ends: Vec<(&'static str, usize)> = Vec::new();
    let mut tried = 0;
    while go_on(tried) {
        tried += 1;
        let text = broken(&corpus, &mut random);
        let settings = if tried % 2 == 0 { any_settings(&mut random) } else { Settings::new() };
        let begun = now();
        let end = catch_unwind(AssertUnwindSafe(|| result(&text, &settings)));
        let took = now() - begun;
        let culprit = || {
            let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("hostile-{seed}-{tried}.pkt"));
            fs::write(&path, &text).expect("the target directory is writable");
            path.display().to_string()
        };
        let Ok(end) = end else { panic!("{} makes it panic with {settings:?}", culprit()) };
        assert!(took < LONGEST, "{} takes {took:?}", culprit());
        match ends.iter_mut().find(|(name, _)| *name == end) {
            Some((_, count)) => *count += 1,
            None => ends.push((end, 1)),
        }
    }
    ends
}

#[test]
fn broken_scripts_give_errors_and_no_panics() {
    let ends = attack(1, |tried| tried < 5000);
    // Both are attacked: what reads and what runs.
    for end in ["no script", "failed", "passed"] {
        assert!(ends.iter().any(|&(name, count)| name == end && count > 50), "{ends:?}");
    }
}

#[expect(clippy::print_stdout, reason = "says how much was tried")]
#[test]
#[ignore = "goes on for ACKCLOCK_FUZZ_SECONDS"]
fn broken_scripts_for_a_long_time() {
    let number = |name: &str, default| env::var(name).map_or(default, |text| text.parse().expect("a number"));
    let limit = Duration::from_secs(number("ACKCLOCK_FUZZ_SECONDS", 60));
    let begun = now();
    let ends = attack(number("ACKCLOCK_FUZZ_SEED", 2), |_| now() - begun < limit);
    println!("{ends:?}");
}

#[test]
fn texts_that_are_no_scripts() {
    let result = |text: &str| result(text, &Settings::new());
    for text in
        ["", "\n", "\0", "//", "/*", "%{", "`", "0", "+", "0 <", "0 > S", "--", "\u{feff}", "0 socket(", "'", "\"\\"]
    {
        result(text);
    }
    result(&"(".repeat(100_000));
    result(&"0 f(".to_owned().repeat(50_000));
    result(&format!("0 f({}) = 0", "[".repeat(50_000)));
    result(&format!("0 f({}1) = 0", "1 | ".repeat(50_000)));
    result(&format!("0 %{{ assert {}1 }}%", "(".repeat(50_000)));
    result(&format!("0 %{{ assert {}1 }}%", "not ".repeat(50_000)));
    result(&"9".repeat(100_000));
}
