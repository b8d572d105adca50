//! The scenario of a shell.

use std::fmt::Write;
use std::net::IpAddr;
use std::{env, fs};

use ackclock_units::{parse_rate, parse_span};
use anyhow::{Context, anyhow, bail};

use super::network::Network;
use crate::args::shell::ShellArgs;

/// The host of the shell, and its command.
pub(super) const SHELL: &str = "shell";

/// The host at the other end, and its command.
pub(super) const PEER: &str = "peer";

/// The nesting of shells, in the environment of the innermost.
const LEVEL: &str = "ACKCLOCK_SHELL";

/// The links of all shells around, which the prompt shows.
const LINK: &str = "ACKCLOCK_LINK";

/// The request, with values that have been checked.
#[derive(Debug)]
pub(super) struct Wish {
    /// Keys of the link and of its way back.
    link: String,
    back: String,
    /// The text in the prompt.
    label: String,
    /// Number of shells around.
    pub(super) level: u32,
    internet: bool,
    peer: Option<String>,
    /// The command, for /bin/sh.
    command: String,
    /// The file that names the machine's name servers, if `/etc/resolv.conf` would not do.
    resolver: Option<&'static str>,
}

impl Wish {
    /// Reads the options.
    ///
    /// # Errors
    /// One of them is not what it has to be.
    pub(super) fn read(args: &ShellArgs) -> anyhow::Result<Wish> {
        let (mut link, mut back, mut label) = (String::new(), String::new(), Vec::new());
        if let Some(delay) = &args.delay {
            parse_span(delay).map_err(|error| anyhow!("--delay {delay}: {error}"))?;
            let _ = writeln!(link, "delay = {}", quoted(delay));
            label.push(delay.clone());
        }
        for rate in args.rate.iter().chain(&args.up) {
            parse_rate(rate).map_err(|error| anyhow!("a rate of {rate}: {error}"))?;
        }
        let down = args.rate.as_deref().unwrap_or("unlimited");
        let up = args.up.as_deref().unwrap_or(down);
        match &args.trace[..] {
            [] => {
                let _ = writeln!(link, "rate = {}", quoted(up));
                if up != down {
                    let _ = writeln!(back, "rate = {}", quoted(down));
                }
                match (&args.rate, &args.up) {
                    (None, None) => {}
                    (_, None) => label.push(down.to_owned()),
                    (_, Some(up)) => label.push(format!("{down}/{up}")),
                }
            }
            [first, rest @ ..] => {
                for (text, file) in [(&mut link, Some(first)), (&mut back, rest.first())] {
                    let Some(file) = file else { continue };
                    let path = file.to_str().with_context(|| format!("{}: not UTF-8", file.display()))?;
                    let _ = writeln!(text, "trace = {{ file = {} }}", quoted(path));
                    label.push(file.file_name().unwrap_or_default().to_string_lossy().into_owned());
                }
            }
        }
        if let Some(queue) = &args.queue {
            let _ = writeln!(link, "queue = {}", queue_of(queue)?);
            label.push(queue.clone());
        }
        if let Some(loss) = &args.loss {
            let _ = writeln!(link, "loss = {{ kind = \"iid\", probability = {:?} }}", share(loss)?);
            label.push(format!("loss {loss}"));
        }
        let around = env::var(LINK).ok().filter(|around| !around.is_empty());
        let label = [around, Some(label.join(" "))].into_iter().flatten().collect::<Vec<_>>().join(" | ");
        let level = env::var(LEVEL).ok().and_then(|level| level.parse().ok()).unwrap_or(0);
        let command = command(args)?;
        let resolver = if args.internet { resolver() } else { None };
        Ok(Wish { link, back, label, level, internet: args.internet, peer: args.peer.clone(), command, resolver })
    }
}

/// The scenario that does what is asked for, in this network.
pub(super) fn scenario(wish: &Wish, network: &Network) -> String {
    let Wish { link, back, label, level, internet, peer, command, resolver } = wish;
    let Network { device, namespaces: [shell, other], four, six } = network;
    let [addresses, theirs] = [0, 1].map(|end| format!("[\"{}/30\", \"{}/64\"]", four[end], six[end]));
    let environment = [(LEVEL, (level + 1).to_string()), (LINK, label.clone()), ("ACKCLOCK_PEER", four[1].to_string())];
    let environment = environment.map(|(name, value)| format!("{name}={}", sh_quoted(&value)));
    let mut run = format!("export {}; {}", environment.join(" "), command.replace(PROMPT, &prompt(label)));
    if let Some(resolver) = resolver {
        let mounted = format!("mount --bind {resolver} /etc/resolv.conf; {run}");
        run = format!("exec unshare --mount --propagation private sh -c {}", sh_quoted(&mounted));
    }
    let reverse = if back.is_empty() { String::new() } else { format!("\n[links.link.reverse]\n{back}") };
    let mut text = format!(
        "schema = 1\ntitle  = {}\n\n[run]\nduration = \"{LONGEST}\"\n\n[links.link]\n{link}{reverse}\n[hosts.{SHELL}]\ntun     = \"ack0\"\nnetns   = {}\naddress = {addresses}\n\n[hosts.{PEER}]\n",
        quoted(&format!("shell: {label}")),
        quoted(shell),
    );
    let _ = match peer {
        Some(_) => writeln!(text, "tun     = \"ack0\"\nnetns   = {}", quoted(other)),
        None => writeln!(text, "tun     = {}", quoted(device)),
    };
    let _ = writeln!(text, "address = {theirs}");
    if *internet {
        let _ = writeln!(text, "routes  = [\"0.0.0.0/0\"]\nnat     = true");
    }
    let _ = writeln!(text, "\n[[paths]]\nbetween = [\"{SHELL}\", \"{PEER}\"]\npath    = [\"link\"]");
    if let Some(peer) = peer {
        let _ = writeln!(text, "\n[[commands]]\nid   = \"{PEER}\"\nhost = \"{PEER}\"\nrun  = {}", quoted(peer));
    }
    let at = if peer.is_some() { HEAD_START } else { "0s" };
    let _ = writeln!(
        text,
        "\n[[commands]]\nid       = \"{SHELL}\"\nhost     = \"{SHELL}\"\nrun      = {}\nat       = \"{at}\"\nterminal = true",
        quoted(&run)
    );
    text
}

/// Where systemd-resolved has the name servers that it asks itself.
const UPSTREAM: &str = "/run/systemd/resolve/resolv.conf";

/// The replacement for `/etc/resolv.conf`, if that one names a resolver on the machine's loopback
/// device alone: nobody listens on that of the shell.
fn resolver() -> Option<&'static str> {
    let servers = |path| {
        let text = fs::read_to_string(path).unwrap_or_default();
        let servers = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver")?.trim().parse().ok());
        servers.collect::<Vec<IpAddr>>()
    };
    let is_out = |servers: Vec<IpAddr>| servers.iter().any(|server| !server.is_loopback());
    (!is_out(servers("/etc/resolv.conf")) && is_out(servers(UPSTREAM))).then_some(UPSTREAM)
}

/// The head of a saved scenario.
pub(super) const MADE_BY: &str = "# Made by `ackclock shell`: it ends with the shell, and `forward` of the link is up, from \
                                  the shell to the other end.\n";

/// The longest life of a shell.
const LONGEST: &str = "8760h";

/// The peer's command begins this long before the shell.
const HEAD_START: &str = "500ms";

/// Stands in a command for what sets the prompt.
const PROMPT: &str = "\u{1}PROMPT\u{1}";

/// The command for /bin/sh.
fn command(args: &ShellArgs) -> anyhow::Result<String> {
    if args.command.is_empty() {
        let shell = env::var("SHELL").ok().filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".to_owned());
        return Ok(format!("{PROMPT}exec {}", sh_quoted(&shell)));
    }
    let mut words = Vec::new();
    for word in &args.command {
        let Some(word) = word.to_str() else { bail!("{}: not UTF-8", word.display()) };
        words.push(sh_quoted(word));
    }
    Ok(format!("exec {}", words.join(" ")))
}

/// The commands that make a shell show the link in its prompt. Bash sets its prompt by itself when
/// it starts: the first thing that it does after that is to put the link before it.
fn prompt(label: &str) -> String {
    let shown = format!("[{label}] ");
    let is_bash = env::var("SHELL").is_ok_and(|shell| shell.ends_with("/bash"));
    if is_bash {
        let first = format!("PS1={}\"$PS1\"; unset PROMPT_COMMAND", sh_quoted(&shown));
        format!("export PROMPT_COMMAND={}; ", sh_quoted(&first))
    } else {
        format!("export PS1={}; ", sh_quoted(&format!("{shown}$ ")))
    }
}

/// A queue discipline: `pie,target=5ms` is `{ kind = "pie", target = "5ms" }`.
fn queue_of(text: &str) -> anyhow::Result<String> {
    let mut parts = text.split(',');
    let mut table = format!("{{ kind = {}", quoted(parts.next().unwrap_or_default()));
    for part in parts {
        let Some((key, value)) = part.split_once('=') else {
            bail!("--queue {text}: `{part}` is not KEY=VALUE, such as target=5ms");
        };
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)) {
            bail!("--queue {text}: `{key}` is not a key");
        }
        let bare = value.parse::<f64>().is_ok_and(f64::is_finite) || matches!(value, "true" | "false");
        let value = if bare { value.to_owned() } else { quoted(value) };
        let _ = write!(table, ", {key} = {value}");
    }
    Ok(table + " }")
}

/// A share of packets: `1%` or `0.01`.
fn share(text: &str) -> anyhow::Result<f64> {
    let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    match number.trim().parse::<f64>() {
        Ok(share) if (0.0..=unit).contains(&share) => Ok(share / unit),
        _ => bail!("--loss {text}: expected a share of packets, such as 1% or 0.01"),
    }
}

/// A string of TOML.
fn quoted(text: &str) -> String {
    // TOML reads strings of JSON, but for one character.
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// A word for /bin/sh.
fn sh_quoted(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:=@%+,".contains(&byte);
    if !text.is_empty() && text.bytes().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_and_shares_are_read() {
        assert_eq!(queue_of("fq_codel").unwrap(), "{ kind = \"fq_codel\" }");
        assert_eq!(
            queue_of("pie,target=5ms,ecn=true,limit=100p").unwrap(),
            "{ kind = \"pie\", target = \"5ms\", ecn = true, limit = \"100p\" }"
        );
        assert!(queue_of("pie,target").unwrap_err().to_string().contains("not KEY=VALUE"));
        assert!(queue_of("pie, x y=3").is_err());
        assert_eq!((share("1%").unwrap(), share("0.25").unwrap(), share("0").unwrap()), (0.01, 0.25, 0.0));
        for wrong in ["101%", "1.5", "-1%", "nan", "%", "one"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn words_stay_what_they_are() {
        for word in ["plain", "", "a b", "it's", "$HOME", "\"x\"", "a\\b", "\u{7f}", "*", "~"] {
            let script = format!("printf %s {}", sh_quoted(word));
            let said = std::process::Command::new("sh").args(["-c", &script]).output().expect("sh").stdout;
            assert_eq!(String::from_utf8_lossy(&said), word);
            let text = format!("x = {}", quoted(word));
            let read: toml::Table = text.parse().expect("TOML");
            assert_eq!(read["x"].as_str(), Some(word));
        }
    }
}
