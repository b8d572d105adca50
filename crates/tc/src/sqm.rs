//! SQM's configuration of OpenWrt, `/etc/config/sqm`: each section as the commands that its script
//! gives.
//!
//! # Source
//! tohojo/sqm-scripts at 95337de: `src/run-openwrt.sh` (options), `src/defaults.sh` (defaults),
//! `src/functions.sh` (targets, quanta, bursts, framing), `src/simple.qos`, `simplest.qos`,
//! `simplest_tbf.qos`, `piece_of_cake.qos`, `layer_cake.qos`; OpenWrt's wiki, `docs/guide-user/
//! network/traffic-shaping/sqm-details` (the format).
//!
//! # Departures
//! - Devices have an MTU of 1500 bytes.
//! - Packets get their marks on the way out by the codepoints of SQM's rules: filters by codepoint
//!   stand for rules and marks.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::shell::{self, Variables};
use crate::source::{Action, Command, ImportError, Object, Place, Read, Source};
use crate::units::Expected;

/// The longest name of a device (`ifb_name`).
const LONGEST_NAME: usize = 15;
/// MTU of a device, bytes.
const MTU: u64 = 1500;

/// The scripts that are known.
const SCRIPTS: &[&str] = &["simple.qos", "simplest.qos", "simplest_tbf.qos", "piece_of_cake.qos", "layer_cake.qos"];

/// Options that decide what a page of LuCI shows, or how SQM logs.
const WITHOUT_EFFECT: &[&str] = &[
    "enabled",
    "interface",
    "script",
    "qdisc_advanced",
    "qdisc_really_really_advanced",
    "debug_logging",
    "verbosity",
    "linklayer_advanced",
    "shaper_burst",
];

/// A section of the file.
struct Section {
    place: Place,
    options: BTreeMap<String, (String, Place)>,
}

/// Reads the sections of a file.
pub(crate) fn read(source: &Source<'_>, report: &mut Read) -> Result<(), ImportError> {
    let file: Arc<str> = source.name.into();
    let variables = Variables::default();
    let mut sections: Vec<Section> = Vec::new();
    for command in shell::commands(source.text) {
        let place = Place { file: Arc::clone(&file), line: command.line };
        let words: Vec<String> = variables.expand(&command).into_iter().map(|word| word.text).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match (&words[..], sections.last_mut()) {
            (["config", ..], _) => sections.push(Section { place, options: BTreeMap::new() }),
            (["option" | "list", key, value], Some(section)) => {
                section.options.insert((*key).to_owned(), ((*value).to_owned(), place));
            }
            _ => {
                let problem = format!("`{}`", words.join(" "));
                return Err(ImportError::at(&place, problem, "`config queue`, and `option NAME 'VALUE'` below it"));
            }
        }
    }
    let mut count = 0;
    for section in &sections {
        if section.text("enabled", "0") != "1" {
            report.leave(&section.place, "config", "the section is not enabled: SQM would not start it");
            continue;
        }
        count += 1;
        section.read(report)?;
    }
    if count == 0 {
        return Err(ImportError::Nothing {
            file: source.name.to_owned(),
            found: "no enabled section".to_owned(),
            expected: "`option enabled '1'` in a section",
        });
    }
    Ok(())
}

/// The settings that differ between the two directions.
struct Way<'s> {
    device: String,
    /// kbit/s.
    rate: u64,
    /// Ends of the names of options: `i` or `e`.
    letter: &'s str,
}

impl Section {
    fn text<'s>(&'s self, key: &str, default: &'s str) -> &'s str {
        // An empty option is that of `defaults.sh`.
        self.options.get(key).map(|(text, _)| text.as_str()).filter(|text| !text.is_empty()).unwrap_or(default)
    }

    fn place(&self, key: &str) -> &Place {
        self.options.get(key).map_or(&self.place, |(_, place)| place)
    }

    fn number(&self, key: &str, default: u64) -> Result<u64, ImportError> {
        const EXPECTED: Expected = "a whole number";
        let text = self.text(key, "");
        match text {
            "" => Ok(default),
            _ => {
                text.parse().map_err(|_| ImportError::at(self.place(key), format!("`option {key} '{text}'`"), EXPECTED))
            }
        }
    }

    fn read(&self, report: &mut Read) -> Result<(), ImportError> {
        let interface = self.text("interface", "eth0").to_owned();
        let script = self.text("script", "");
        if !SCRIPTS.contains(&script) {
            let problem = format!("`option script '{script}'`");
            return Err(ImportError::at(self.place("script"), problem, format!("one of {}", SCRIPTS.join(", "))));
        }
        let known = [
            "download",
            "upload",
            "linklayer_adaptation_mechanism",
            "linklayer",
            "overhead",
            "tcMTU",
            "tcTSIZE",
            "tcMPU",
            "ilimit",
            "elimit",
            "itarget",
            "etarget",
            "ingress_ecn",
            "egress_ecn",
            "iqdisc_opts",
            "eqdisc_opts",
            "target",
            "qdisc",
            "squash_dscp",
            "squash_ingress",
        ];
        for (key, (value, place)) in &self.options {
            if !known.contains(&key.as_str()) && !WITHOUT_EFFECT.contains(&key.as_str()) {
                report.leave(place, format!("option {key} '{value}'"), "SQM's scripts do not read it");
            }
        }
        report.notes.push(format!("SQM ({script}) on {interface}: the way forward is the download."));
        let mut ifb = format!("ifb4{interface}");
        ifb.truncate(ifb.char_indices().nth(LONGEST_NAME).map_or(ifb.len(), |(end, _)| end));
        let up = Way { device: interface.clone(), rate: self.number("upload", 0)?, letter: "e" };
        let down = Way { device: ifb.clone(), rate: self.number("download", 0)?, letter: "i" };
        for (way, key) in [(&up, "upload"), (&down, "download")] {
            match way.rate {
                0 => report.leave(self.place(key), format!("option {key} '0'"), "this direction is not shaped"),
                _ => self.direction(way, script, key, report)?,
            }
        }
        if down.rate > 0 {
            let place = self.place("download");
            self.push(
                report,
                place,
                Object::Filter,
                &format!("dev {interface} parent ffff: matchall action mirred egress redirect dev {ifb}"),
            );
        }
        Ok(())
    }

    fn push(&self, report: &mut Read, place: &Place, object: Object, words: &str) {
        let words = words.split_ascii_whitespace().map(str::to_owned).collect();
        report.commands.push(Command { place: place.clone(), object, action: Action::Add, words, name: None });
    }

    /// The qdisc for flows; scripts of CAKE have no other.
    fn qdisc<'s>(&'s self, script: &str) -> &'s str {
        let named = self.text("qdisc", "fq_codel");
        match script {
            "piece_of_cake.qos" | "layer_cake.qos" => "cake",
            "simplest_tbf.qos" if named.starts_with("cake") => "fq_codel",
            _ => named,
        }
    }

    fn direction(&self, way: &Way<'_>, script: &str, key: &str, report: &mut Read) -> Result<(), ImportError> {
        let qdisc = self.qdisc(script);
        let is_ingress = way.letter == "i";
        let zero = self.number("squash_dscp", 1)? == 1;
        let ignore = self.number("squash_ingress", 1)? == 1;
        let options = self.text(if is_ingress { "iqdisc_opts" } else { "eqdisc_opts" }, "");
        let (device, rate) = (&way.device, way.rate);
        let place = self.place(key);
        let stab = self.stab(qdisc)?;
        if is_ingress && zero && script == "simple.qos" {
            let why = "the codepoints of what arrives are not cleared: only `wash` of CAKE does that here";
            report.leave(self.place("squash_dscp"), "squash_dscp", why);
        }
        if qdisc.starts_with("cake") {
            let mut words: Vec<&str> = match script {
                "simple.qos" => Vec::new(),
                "simplest.qos" => vec!["besteffort"],
                // `*_CAKE_OPTS` of defaults.sh.
                "piece_of_cake.qos" => vec!["diffserv3", "nat", "besteffort"],
                _ => vec!["diffserv3", "nat"],
            };
            let is_layered = script == "layer_cake.qos" || script == "simple.qos";
            if is_ingress && ignore && is_layered {
                words.push("besteffort");
            }
            if is_ingress && zero && script.ends_with("cake.qos") {
                words.push("wash");
            }
            let framing = self.cake_framing(qdisc)?;
            let words = format!(
                "dev {device} root {stab} {qdisc} bandwidth {rate}kbit {} {framing} {options}",
                words.join(" ")
            );
            self.push(report, place, Object::Qdisc, &words);
            return Ok(());
        }
        let framing = self.htb_framing()?;
        let bytes = burst(rate);
        let (quantum, burst) = (format!("quantum {bytes}"), format!("burst {bytes} cburst {bytes}"));
        let target = self.target(way, qdisc)?;
        let limit = self.limit(way, qdisc);
        let ecn = self.ecn(way, qdisc, report);
        let flows = if ["fq_codel", "sfq"].contains(&qdisc) { "flows 1024" } else { "" };
        let leaf = |quantum: &str| format!("{qdisc} {limit} {target} {ecn} {quantum} {flows} {options}");
        if script == "simplest_tbf.qos" {
            let words =
                format!("dev {device} root handle 1: {stab} tbf rate {rate}kbit burst {bytes} latency 300ms {framing}");
            self.push(report, place, Object::Qdisc, &words);
            self.push(report, place, Object::Qdisc, &format!("dev {device} parent 1: handle 110: {}", leaf("")));
            return Ok(());
        }
        let is_flat = script == "simplest.qos" || (is_ingress && ignore);
        let default = if is_flat { 10 } else { 12 };
        self.push(report, place, Object::Qdisc, &format!("dev {device} root handle 1: {stab} htb default {default}"));
        let class =
            |id: u64, rates: &str| format!("dev {device} parent 1:1 classid 1:{id} htb {quantum} {rates} {framing}");
        let top = format!(
            "dev {device} parent 1: classid 1:1 htb {quantum} rate {rate}kbit ceil {rate}kbit {burst} {framing}"
        );
        self.push(report, place, Object::Class, &top);
        if is_flat {
            let words = class(10, &format!("rate {rate}kbit ceil {rate}kbit {burst} prio 0"));
            self.push(report, place, Object::Class, &words);
            self.push(report, place, Object::Qdisc, &format!("dev {device} parent 1:10 handle 110: {}", leaf("")));
            return Ok(());
        }
        // A third for what is urgent, a sixth for best effort and for the background.
        let (urgent, sixth, ceil) = (rate / 3, rate / 6, rate.saturating_sub(16));
        let least = if is_ingress { 32 } else { 128 };
        let quanta = if is_ingress { ["500", "1500", "300"] } else { ["300", "300", "300"] };
        let classes = [
            (11, format!("rate {least}kbit ceil {urgent}kbit prio 1")),
            (12, format!("rate {sixth}kbit ceil {ceil}kbit {burst} prio 2")),
            (13, format!("rate {sixth}kbit ceil {ceil}kbit {burst} prio 3")),
        ];
        for ((id, rates), quantum) in classes.iter().zip(quanta) {
            self.push(report, place, Object::Class, &class(*id, rates));
            // `get_quantum`.
            let quantum = match qdisc {
                "fq_codel" | "fq_pie" | "drr" => format!("quantum {quantum}"),
                _ => String::new(),
            };
            self.push(
                report,
                place,
                Object::Qdisc,
                &format!("dev {device} parent 1:{id} handle {id}0: {}", leaf(&quantum)),
            );
        }
        // `diffserv` for what arrives; for what is sent, the rules of `ipt_setup`.
        let filters: &[(&str, u64)] = if is_ingress {
            &[("0x00", 12), ("0x20", 13), ("0x10", 11), ("0xb8", 11), ("0xc0", 11), ("0xe0", 11), ("0x90", 11)]
        } else {
            &[("0x20", 13), ("0xc0", 11), ("0xb8", 11), ("0x90", 11), ("0x10", 11)]
        };
        for (number, (tos, class)) in filters.iter().enumerate() {
            let words = format!(
                "dev {device} parent 1:0 protocol ip prio {} u32 match ip tos {tos} 0xfc classid 1:{class}",
                number + 1
            );
            self.push(report, place, Object::Filter, &words);
        }
        if !is_ingress {
            let why = "ICMP has no class of its own, and no packets are marked by their ports here";
            report.leave(place, "rules for ICMP, and for ports 53 and 123", why);
        }
        Ok(())
    }

    /// `get_stab_string`.
    fn stab(&self, qdisc: &str) -> Result<String, ImportError> {
        let layer = self.text("linklayer", "none");
        let how = match self.text("linklayer_adaptation_mechanism", "default") {
            "default" if qdisc != "cake" => "tc_stab",
            how => how,
        };
        if how != "tc_stab" || layer == "none" {
            return Ok(String::new());
        }
        Ok(format!(
            "stab mtu {} tsize {} mpu {} overhead {} linklayer {layer}",
            self.number("tcMTU", 2047)?,
            self.number("tcTSIZE", 512)?,
            self.number("tcMPU", 0)?,
            self.overhead()?
        ))
    }

    /// `get_cake_lla_string`.
    fn cake_framing(&self, qdisc: &str) -> Result<String, ImportError> {
        let layer = self.text("linklayer", "none");
        let how = match self.text("linklayer_adaptation_mechanism", "default") {
            "default" if qdisc == "cake" => "cake",
            how => how,
        };
        if how != "cake" || layer == "none" {
            return Ok(String::new());
        }
        let atm = if layer == "atm" { "atm" } else { "" };
        Ok(format!("{atm} overhead {} mpu {}", self.overhead()?, self.number("tcMPU", 0)?))
    }

    /// `get_htb_adsll_string`.
    fn htb_framing(&self) -> Result<String, ImportError> {
        let layer = self.text("linklayer", "none");
        if self.text("linklayer_adaptation_mechanism", "default") != "htb_private" || layer == "none" {
            return Ok(String::new());
        }
        let (mpu, mtu) = (self.number("tcMPU", 0)?, self.number("tcMTU", 2047)?);
        Ok(format!("mpu {mpu} linklayer {layer} overhead {} mtu {mtu}", self.overhead()?))
    }

    fn overhead(&self) -> Result<i64, ImportError> {
        let text = self.text("overhead", "0");
        let wrong = || ImportError::at(self.place("overhead"), format!("`option overhead '{text}'`"), "a whole number");
        text.parse().map_err(|_| wrong())
    }

    /// `get_limit`.
    fn limit(&self, way: &Way<'_>, qdisc: &str) -> String {
        let given = self.text(if way.letter == "i" { "ilimit" } else { "elimit" }, "");
        let takes = qdisc.ends_with("codel") || qdisc.ends_with("pie") || ["pfifo", "sfq"].contains(&qdisc);
        match (given, takes) {
            ("", true) => "limit 1001".to_owned(),
            ("", false) if qdisc == "bfifo" => format!("limit {}", 1001 * MTU),
            ("", false) => String::new(),
            (limit, _) => format!("limit {limit}"),
        }
    }

    /// `get_target`, `adapt_target_to_slow_link` and `adapt_interval_to_slow_link`.
    fn target(&self, way: &Way<'_>, qdisc: &str) -> Result<String, ImportError> {
        if !qdisc.ends_with("codel") && !qdisc.ends_with("pie") {
            return Ok(String::new());
        }
        let key = if way.letter == "i" { "itarget" } else { "etarget" };
        let text = self.text(key, "auto");
        if text.eq_ignore_ascii_case("auto") {
            // 33 cells of 53 bytes, in microseconds.
            let target = (1000 * 33 * 53 * 8 / way.rate).max(5000);
            let interval =
                if qdisc.ends_with("codel") { format!("interval {}us", 95_000 + target) } else { String::new() };
            return Ok(format!("target {target}us {interval}"));
        }
        if text.eq_ignore_ascii_case("default") {
            return Ok(String::new());
        }
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let is_unit = ["s", "sec", "secs", "ms", "msec", "msecs", "us", "usec", "usecs"].contains(&&text[digits..]);
        if digits == 0 || !is_unit {
            let problem = format!("`option {key} '{text}'`");
            return Err(ImportError::at(self.place(key), problem, "a time such as 5ms, auto or default"));
        }
        Ok(format!("target {text}"))
    }

    /// `get_ecn`.
    fn ecn(&self, way: &Way<'_>, qdisc: &str, report: &mut Read) -> &'static str {
        let key = if way.letter == "i" { "ingress_ecn" } else { "egress_ecn" };
        let takes = qdisc.ends_with("codel") || qdisc.ends_with("pie") || qdisc.ends_with("red");
        match self.text(key, "ECN") {
            "ECN" if takes => "ecn",
            "NOECN" if takes => "noecn",
            "ECN" | "NOECN" => "",
            other => {
                report.leave(self.place(key), format!("option {key} '{other}'"), "SQM knows ECN and NOECN");
                ""
            }
        }
    }
}

/// `get_burst` at the default of 1 ms, by which `get_htb_quantum` goes, too: at least a packet in
/// cells of ATM. Bytes.
fn burst(rate: u64) -> u64 {
    let least = (MTU + 48).div_ceil(48) * 53;
    (1000 * rate / 8000).max(least)
}
