//! Namespaces, devices and addresses: created before a run and removed after it, even after one
//! that was killed.
//!
//! A namespace is like those of `ip netns`: a file in `/run/netns` on which the namespace is
//! mounted, so that `ip netns exec NAME` works during a run. Only short-lived threads enter a
//! namespace; this process stays where it is. A namespace that already exists is used and kept. The
//! device of a host that names no namespace is in the namespace of this process, where nothing but
//! the device is touched.
//!
//! Everything is registered before it is created ([`leftovers`]), and the next set-up removes what
//! a killed process left behind.
//!
//! # The kernel's part
//! With offloads, the kernel passes segments of up to 64 kB to a device, and packets without
//! checksums ([`crate::offload`]). Without, it first divides segments into packets and computes the
//! checksums. It puts packets into the device's ring of `txqueuelen` packets, and drops them if
//! that is full. The device's qdisc is the system's default and stays empty, since the device never
//! blocks it: only ackclock's queue management acts. (If `net.core.default_qdisc` is `fq`, that
//! paces sockets that ask for it, as TCP would otherwise by itself.)

mod check;
mod device;
mod gateway;
mod interface;
mod leftovers;
mod namespace;
mod netlink;
mod places;
mod private;
mod record;
mod rtnetlink;
#[cfg(test)]
mod tests;
mod tun;
mod watch;

use std::io;
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use ackclock_sim::spec::{LiveSpec, NodeSpec};

use crate::LiveError;
use namespace::NetworkNamespace;
use record::{RunRecord, RunsLock};

pub(crate) use check::{check, is_privileged};
pub(crate) use device::TunDevice;
pub(crate) use private::enter as enter_private;

/// The addresses in the network namespace of this process.
pub(crate) fn addresses() -> io::Result<Vec<IpAddr>> {
    let of = |interface: nix::ifaddrs::InterfaceAddress| {
        let address = interface.address?;
        let four = address.as_sockaddr_in().map(|four| IpAddr::V4(four.ip()));
        four.or_else(|| address.as_sockaddr_in6().map(|six| IpAddr::V6(six.ip())))
    };
    Ok(nix::ifaddrs::getifaddrs()?.filter_map(of).collect())
}

/// Everything that a run has created on this machine, removed on drop.
#[derive(Debug)]
pub(crate) struct Testbed {
    hosts: Vec<TestbedHost>,
    /// The namespaces that hosts name, each once.
    namespaces: Vec<NetworkNamespace>,
    record: RunRecord,
}

/// A host's device and namespace.
#[derive(Debug)]
struct TestbedHost {
    device: Option<TunDevice>,
    /// Index of its namespace; `None` for that of this process.
    namespace: Option<usize>,
}

impl Testbed {
    /// Removes what killed runs left behind, then creates everything.
    ///
    /// # Errors
    /// [`LiveError::Missing`] with all problems that [`check()`] finds; [`LiveError::SetUp`] if
    /// something could not be created. Nothing remains in either case.
    pub(crate) fn set_up(spec: &LiveSpec) -> Result<Testbed, LiveError> {
        check(spec)?;
        let here = |source| LiveError::SetUp {
            host: String::from("(all)"),
            what: places::runs().display().to_string(),
            source,
        };
        // Concurrent set-ups would take each other's half for left over.
        let lock = RunsLock::take().map_err(here)?;
        leftovers::sweep();
        check::check_free(spec)?;
        let record = RunRecord::create(&lock).map_err(here)?;
        let mut testbed = Testbed { hosts: Vec::new(), namespaces: Vec::new(), record };
        let made = spec.nodes.iter().try_for_each(|node| {
            let host = testbed.make_host(spec, node)?;
            testbed.hosts.push(host);
            Ok(())
        });
        // Removing a half-made testbed takes the lock itself.
        drop(lock);
        made.map(|()| testbed)
    }

    fn make_host(&mut self, spec: &LiveSpec, node: &NodeSpec) -> Result<TestbedHost, LiveError> {
        let failed = |what: String| move |source: io::Error| LiveError::SetUp { host: node.name.clone(), what, source };
        let Some(tun) = &node.tun else { return Ok(TestbedHost { device: None, namespace: None }) };
        let namespace = match &node.netns {
            None => None,
            Some(name) => Some(match self.namespaces.iter().position(|namespace| namespace.name() == name) {
                Some(index) => index,
                None => {
                    let made = NetworkNamespace::open_or_make(name, &mut self.record)
                        .map_err(failed(format!("network namespace {name}")))?;
                    self.namespaces.push(made);
                    self.namespaces.len() - 1
                }
            }),
        };
        let inside = namespace.map(|index| &self.namespaces[index]);
        let plan = netlink::DevicePlan::new(spec, node);
        let device = namespace::inside(inside, || TunDevice::create(tun, &plan, spec.offload));
        let device = device.map_err(failed(format!("device {tun}")))?;
        if let (Some(name), Some(index)) = (&node.interface, namespace) {
            let taken = interface::take(name, &self.namespaces[index], &mut self.record);
            taken.map_err(failed(format!("interface {name}")))?;
        }
        if !node.routes.is_empty() {
            let namespace = namespace.map(|index| &self.namespaces[index]);
            let made = gateway::set_up(spec, node, namespace, &mut self.record);
            made.map_err(failed(String::from("the way to what lies behind it")))?;
        }
        Ok(TestbedHost { device: Some(device), namespace })
    }

    /// The device of a host; `None` if it has none.
    pub(crate) fn device(&self, node: usize) -> Option<&TunDevice> {
        self.hosts[node].device.as_ref()
    }

    /// Packets that the kernel dropped because the device of a host was not read in time. Asks the
    /// kernel from a thread in the host's namespace.
    ///
    /// # Errors
    /// The device is gone.
    pub(crate) fn dropped(&self, node: usize) -> io::Result<u64> {
        let Some(index) = self.device(node).map(TunDevice::index) else { return Ok(0) };
        namespace::inside(self.namespace(node), || netlink::dropped(index))
    }

    /// Starts a program in the namespace of a host, in a process group of its own and without
    /// standard input. [`leftovers::MARK`] in its environment identifies it and its descendants,
    /// which are killed with the testbed.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn spawn(&self, node: usize, command: &mut Command) -> io::Result<Child> {
        self.spawn_in_terminal(node, command.stdin(Stdio::null()).process_group(0))
    }

    /// Starts a program as [`Testbed::spawn`] does, but with our standard input and in our process
    /// group, so that it receives the signals of the terminal's keys.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn spawn_in_terminal(&self, node: usize, command: &mut Command) -> io::Result<Child> {
        command.env(leftovers::MARK, self.record.token());
        if let Some(base) = places::base() {
            command.env(places::VARIABLE, base);
        }
        // A child inherits the namespaces of the thread that starts it.
        namespace::inside(self.namespace(node), || command.spawn())
    }

    /// The variable in the environment of programs that identifies them, `NAME=VALUE`.
    pub(crate) fn mark(&self) -> String {
        format!("{}={}", leftovers::MARK, self.record.token())
    }

    /// Kills every program that was started, and its descendants.
    pub(crate) fn kill_programs(&self) {
        leftovers::kill_all(self.record.token(), &[]);
    }

    /// The programs that are running.
    #[cfg(test)]
    pub(crate) fn programs(&self) -> Vec<nix::unistd::Pid> {
        leftovers::processes(self.record.token(), &[])
    }

    fn namespace(&self, node: usize) -> Option<&NetworkNamespace> {
        self.hosts[node].namespace.map(|index| &self.namespaces[index])
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        let own = self.namespaces.iter().filter(|namespace| namespace.is_ours());
        leftovers::kill_all(self.record.token(), &own.map(NetworkNamespace::id).collect::<Vec<_>>());
        // A device is removed with its last open file.
        self.hosts.clear();
        let undone = leftovers::undo(&self.record);
        let removed = self.namespaces.drain(..).map(NetworkNamespace::remove).fold(true, |all, one| all & one.is_ok());
        if removed && undone {
            self.record.clear();
        }
    }
}
