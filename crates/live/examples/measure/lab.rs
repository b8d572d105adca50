//! Two namespaces, and devices in them without anything of ackclock's.

use std::fs::File;
use std::io;
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, ensure};
use nix::sched::{CloneFlags, setns};
use tun_tap::{Iface, Mode};

use crate::tun;

/// The addresses of the two hosts.
pub(crate) const ADDRESSES: [&str; 2] = ["10.99.0.1", "10.99.0.2"];
pub(crate) const PREFIX: u8 = 24;

/// Two namespaces; dropped, they are removed.
pub(crate) struct Lab {
    names: [String; 2],
}

impl Lab {
    pub(crate) fn new() -> Result<Lab> {
        let id = std::process::id();
        let lab = Lab { names: [format!("ackm-left-{id}"), format!("ackm-right-{id}")] };
        for name in &lab.names {
            ip(&["netns", "add", name])?;
            ip(&["-n", name, "link", "set", "lo", "up"])?;
            // No traffic but what is measured.
            run("ip", &["netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1"])?;
            run("ip", &["netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1"])?;
        }
        Ok(lab)
    }

    pub(crate) fn name(&self, host: usize) -> &str {
        &self.names[host]
    }

    /// The name of the device of a host.
    pub(crate) fn tun(host: usize) -> String {
        format!("ackm{host}")
    }

    /// A device with the address of a host, up, which does not block. It is gone when it is closed.
    pub(crate) fn device(&self, host: usize, mtu: u16, queue: u32) -> Result<Iface> {
        let device = self.inside(host, || {
            let device = Iface::without_packet_info(&Lab::tun(host), Mode::Tun)?;
            device.set_non_blocking()?;
            Ok(device)
        })?;
        self.configure(host, mtu, queue)?;
        Ok(device)
    }

    /// The same with offloads.
    pub(crate) fn device_with_offloads(&self, host: usize, mtu: u16, queue: u32) -> Result<File> {
        let device = self.inside(host, || tun::open(&Lab::tun(host)))?;
        self.configure(host, mtu, queue)?;
        Ok(device)
    }

    fn configure(&self, host: usize, mtu: u16, queue: u32) -> Result<()> {
        let name = Lab::tun(host);
        let (mtu, queue) = (mtu.to_string(), queue.to_string());
        let address = format!("{}/{PREFIX}", ADDRESSES[host]);
        ip(&["-n", &self.names[host], "link", "set", &name, "mtu", &mtu, "txqueuelen", &queue, "up"])?;
        ip(&["-n", &self.names[host], "addr", "add", &address, "dev", &name])
    }

    /// Does something on a thread that is in the namespace of a host.
    pub(crate) fn inside<T: Send>(&self, host: usize, action: impl FnOnce() -> io::Result<T> + Send) -> Result<T> {
        let namespace = File::open(format!("/run/netns/{}", self.names[host]))?;
        let enter = move || {
            setns(namespace, CloneFlags::CLONE_NEWNET)?;
            action()
        };
        let result = thread::scope(|scope| scope.spawn(enter).join());
        Ok(result.map_err(|_| io::Error::other("a thread failed"))??)
    }

    /// A program in the namespace of a host.
    pub(crate) fn command(&self, host: usize, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[host], program]);
        command
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = ip(&["netns", "del", name]);
        }
    }
}

fn ip(arguments: &[&str]) -> Result<()> {
    run("ip", arguments)
}

fn run(program: &str, arguments: &[&str]) -> Result<()> {
    let output =
        Command::new(program).args(arguments).output().with_context(|| format!("{program} is not installed"))?;
    ensure!(
        output.status.success(),
        "{program} {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}
