//! A guest: the process of a kernel, its clock, its network interface and its console.
//!
//! The guest speaks over three connections: to its calendar, to the device, and, for calls, from the
//! device. It sends a message and does nothing else until the answer, so at most one message is under
//! way at a time, and what it does depends on nothing but the answers.

use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File};
use std::io::{self, IoSliceMut, Read, Seek, SeekFrom, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::calendar::{self, Calendar};
use crate::vhost::{self, VhostDevice};
use crate::vring::RingFault;

/// Ethernet's type of frames that carry the conversation with the first process (IEEE Std 802, local
/// experimental).
const CONVERSATION: [u8; 2] = [0x88, 0xb5];
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
/// Bytes of Ethernet's header.
const ETHERNET: usize = 14;

/// The guest's hardware address: locally administered.
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// The guests' time of day at their time 0: 1 January 2026, 0:00 UTC.
const DAY: u64 = 1_767_225_600 * 1_000_000_000;

/// Lines of the console that an error shows.
const LAST_LINES: usize = 12;
/// Bytes from the end of the console in which they are looked for.
const TAIL: u64 = 4096;

/// Messages without progress of the time after which a guest is considered stuck.
const PATIENCE: usize = 1 << 22;

/// A kernel to boot.
#[derive(Clone, Debug)]
pub(crate) struct Boot {
    /// The kernel, a program.
    pub(crate) kernel: PathBuf,
    /// The file system that it starts from, a cpio archive with `/init`.
    pub(crate) initrd: PathBuf,
    /// More of its command line.
    pub(crate) append: String,
    pub(crate) memory_mb: u64,
    pub(crate) mtu: u16,
    /// Wall time without a message after which it has failed.
    pub(crate) patience: Duration,
}

/// A packet of the guest, with the time of its sending.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) at: u64,
    /// A frame of Ethernet.
    pub(crate) frame: Vec<u8>,
}

impl Sent {
    pub(crate) fn packet(&self) -> &[u8] {
        &self.frame[ETHERNET..]
    }
}

/// The process of a guest, which ends with this.
#[derive(Debug)]
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // The processes of the guest are of its group. One that has ended already is no error.
        let group = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        let _ = group.map(|group| kill_process_group(group, Signal::KILL));
        let _ = self.0.wait();
    }
}

/// A directory that is removed with this.
#[derive(Debug)]
struct Directory(PathBuf);

impl Directory {
    fn new() -> io::Result<Directory> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ackclock-uml-{}-{number}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Directory(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A kernel in progress.
#[derive(Debug)]
pub(crate) struct Guest {
    _process: Process,
    console: File,
    _directory: Directory,
    patience: Duration,
    clock: UnixStream,
    listener: UnixListener,
    interface: Option<UnixStream>,
    calls: Option<UnixStream>,
    calendar: Calendar,
    device: VhostDevice,
    packets: VecDeque<Sent>,
    said: VecDeque<String>,
    /// Messages since the time last went on.
    messages: usize,
}

/// The guest's part of a message that something is wrong with.
fn broken(RingFault(what): RingFault) -> String {
    format!("the guest breaks the protocol of its network interface: {what}")
}

impl Guest {
    /// Starts a kernel, and waits until it has found its clock.
    pub(crate) fn start(boot: &Boot) -> Result<Guest, String> {
        let made = |what: &'static str| move |error: io::Error| format!("cannot create {what} of the guest: {error}");
        let directory = Directory::new().map_err(made("the directory"))?;
        let path = |name: &str| directory.0.join(name);
        let clock = UnixListener::bind(path("clock")).map_err(made("the clock's socket"))?;
        let listener = UnixListener::bind(path("net")).map_err(made("the interface's socket"))?;
        let console = File::options().read(true).append(true).create_new(true).open(path("console"));
        let console = console.map_err(made("the console"))?;
        let kernel = boot.kernel.display();
        let absolute = |path: &Path| std::path::absolute(path).map_err(made("the directory"));
        symlink(absolute(&boot.initrd)?, path("initrd")).map_err(made("the file system"))?;
        // A kernel mixes its command line into its random numbers (`random_init_early`): names in the
        // guest's directory are the same in every run.
        let arguments = format!(
            "mem={}M initrd=initrd time-travel=ext:clock virtio_uml.device=net:1 uml_dir=. umid=guest con=null \
             con0=null,fd:1 ssl=null panic=1 random.trust_cpu=0 virtio_net.napi_tx=0 {}",
            boot.memory_mb, boot.append
        );
        // Addresses that the machine draws at random would move the kernel's memory.
        let mut command = Command::new("setarch");
        command.arg("--addr-no-randomize").arg(absolute(&boot.kernel)?).args(arguments.split_whitespace());
        command.current_dir(&directory.0);
        command.stdin(Stdio::null()).process_group(0).env_clear().env("TMPDIR", std::env::temp_dir());
        if let Some(search) = std::env::var_os("PATH") {
            command.env("PATH", search);
        }
        let out = || console.try_clone().map_err(made("the console"));
        command.stdout(out()?).stderr(out()?);
        let child = command.spawn().map_err(|error| format!("cannot start {kernel} by `setarch`: {error}"))?;
        let mut process = Process(child);
        let ready =
            wait(&[clock.as_fd(), listener.as_fd()], boot.patience, || process.0.try_wait().ok().flatten().is_some());
        let stream = match ready.map_err(|error| format!("cannot wait for {kernel}: {error}"))? {
            Some(0) => clock.accept().map_err(made("the clock"))?.0,
            // Without time travel a kernel comes to its interface first, or to nothing, or to its end.
            ready => {
                let what = match ready {
                    Some(_) => "takes its time from the machine",
                    None => "did not ask for its clock",
                };
                return Err(format!(
                    "{kernel} {what}: expected User Mode Linux with CONFIG_UML_TIME_TRAVEL_SUPPORT, such as \
                     `crates/uml/build-image` builds{}",
                    last_lines(&console)
                ));
            }
        };
        let _ = stream.set_read_timeout(Some(boot.patience));
        Ok(Guest {
            _process: process,
            console,
            patience: boot.patience,
            clock: stream,
            listener,
            interface: None,
            calls: None,
            calendar: Calendar::new(DAY),
            device: VhostDevice::new(MAC, boot.mtu),
            packets: VecDeque::new(),
            said: VecDeque::new(),
            messages: 0,
            _directory: directory,
        })
    }

    /// The time at which it wants to run; `None` if never.
    pub(crate) fn requested(&self) -> Option<u64> {
        self.calendar.requested()
    }

    /// The time that it has reached.
    pub(crate) fn clock(&self) -> u64 {
        self.calendar.clock()
    }

    /// Packets that it has sent, the earliest first.
    pub(crate) fn packets(&mut self) -> &mut VecDeque<Sent> {
        &mut self.packets
    }

    /// The time of the first of them.
    pub(crate) fn next_packet(&self) -> Option<u64> {
        self.packets.front().map(|sent| sent.at)
    }

    /// Something is on its way to it.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.device.waiting.is_empty()
    }

    /// A packet has been passed on.
    pub(crate) fn recycle(&mut self, sent: Sent) {
        self.device.recycle(sent.frame);
    }

    /// The next thing that its first process has said.
    pub(crate) fn said(&mut self) -> Option<String> {
        self.said.pop_front()
    }

    /// A packet for it.
    pub(crate) fn deliver(&mut self, packet: &[u8]) {
        let kind = if packet.first().is_some_and(|first| first >> 4 == 6) { IPV6 } else { IPV4 };
        self.enter(kind, packet);
    }

    /// A message to its first process.
    pub(crate) fn tell(&mut self, text: &str) {
        self.enter(CONVERSATION, text.as_bytes());
    }

    fn enter(&mut self, kind: [u8; 2], payload: &[u8]) {
        let mut frame = self.device.frame();
        frame.extend(MAC);
        // The sender: any other address.
        frame.extend([2, 0, 0, 0, 0, 2]);
        frame.extend(kind);
        frame.extend(payload);
        self.device.waiting.push_back(frame);
    }

    /// Lets it do everything that is due at `now`, and, if nothing comes of it, also what it wants to
    /// do before `until`.
    pub(crate) fn drive(&mut self, now: u64, until: u64) -> Result<(), String> {
        while !self.calendar.waits() {
            self.step()?;
        }
        if self.calendar.clock() < now {
            self.messages = 0;
        }
        // It has gone ahead to the time of a packet of its own.
        if self.calendar.clock() > now {
            return Ok(());
        }
        self.calendar.set(now);
        loop {
            if self.device.is_ready() {
                self.device.fill().map_err(broken)?;
                while let Some(number) = self.device.next_call().map_err(broken)? {
                    self.call(number)?;
                }
            }
            if self.calendar.requested().is_none_or(|at| at > now) {
                return Ok(());
            }
            if until > now {
                let free = self.calendar.free_until(until);
                self.send_clock(free)?;
            }
            let run = self.calendar.run();
            self.send_clock(run)?;
            while !self.calendar.waits() {
                self.step()?;
            }
            if self.calendar.clock() > now {
                return Ok(());
            }
        }
    }

    /// Sends a message of the calendar, and waits for its acknowledgment.
    fn send_clock(&mut self, message: Option<calendar::TimeMessage>) -> Result<(), String> {
        let Some(message) = message else { return Ok(()) };
        self.write_clock(message)?;
        while !self.serve_clock()? {}
        Ok(())
    }

    fn write_clock(&mut self, message: calendar::TimeMessage) -> Result<(), String> {
        self.clock.write_all(&message.bytes()).map_err(|error| self.lost(&error))
    }

    /// Receives a message over the clock; `true` if it acknowledges ours.
    fn serve_clock(&mut self) -> Result<bool, String> {
        self.messages += 1;
        if self.messages > PATIENCE {
            return Err(format!(
                "the guest does not let the time go on: {PATIENCE} messages at {} ns of its clock{}",
                self.calendar.clock(),
                last_lines(&self.console)
            ));
        }
        let mut bytes = [0; calendar::MESSAGE];
        self.clock.read_exact(&mut bytes).map_err(|error| self.lost(&error))?;
        let message = calendar::TimeMessage::parse(&bytes)
            .map_err(|op| format!("the guest's clock sends message {op}, which is unknown"))?;
        match self.calendar.receive(message).map_err(|what| format!("the guest's clock {what}"))? {
            None => Ok(true),
            Some(answer) => self.write_clock(answer).map(|()| false),
        }
    }

    /// Waits for one message of a guest that runs, and answers it.
    fn step(&mut self) -> Result<(), String> {
        let mut sources = vec![self.clock.as_fd()];
        sources.push(self.interface.as_ref().map_or(self.listener.as_fd(), AsFd::as_fd));
        let ready = wait(&sources, self.patience, || false).map_err(|error| self.lost(&error))?;
        match ready {
            Some(0) => self.serve_clock().map(|_| ()),
            Some(_) if self.interface.is_none() => {
                let (stream, _) = self.listener.accept().map_err(|error| self.lost(&error))?;
                let _ = stream.set_read_timeout(Some(self.patience));
                self.interface = Some(stream);
                Ok(())
            }
            Some(_) => self.serve_interface(),
            None => Err(format!(
                "the guest hangs: it has computed for {} s without a message, at {} ns of its clock{}",
                self.patience.as_secs(),
                self.calendar.clock(),
                last_lines(&self.console)
            )),
        }
    }

    /// Receives a message of the driver, and answers it.
    fn serve_interface(&mut self) -> Result<(), String> {
        let Some(stream) = &self.interface else { return Ok(()) };
        let message = receive(stream).map_err(|error| self.lost(&error))?.map_err(broken)?;
        let outcome = self.device.receive(message).map_err(broken)?;
        if let Some(calls) = outcome.calls {
            let calls = UnixStream::from(calls);
            let _ = calls.set_read_timeout(Some(self.patience));
            let _ = calls.set_nonblocking(false);
            self.calls = Some(calls);
        }
        if outcome.has_sent {
            self.collect();
            // Others may answer its packets: from here on it asks.
            let rein = self.calendar.rein_in();
            self.send_clock(rein)?;
        }
        if let (Some(reply), Some(stream)) = (outcome.reply, &mut self.interface) {
            stream.write_all(&reply).map_err(|error| self.lost(&error))?;
        }
        Ok(())
    }

    /// Sorts what the device has taken.
    fn collect(&mut self) {
        let at = self.calendar.clock();
        while let Some(frame) = self.device.sent.pop_front() {
            match frame.get(12..ETHERNET) {
                Some(kind) if (kind == IPV4 || kind == IPV6) && !is_to_many(&frame[ETHERNET..]) => {
                    self.packets.push_back(Sent { at, frame });
                }
                Some(kind) if kind == CONVERSATION => {
                    self.said.push_back(String::from_utf8_lossy(&frame[ETHERNET..]).into_owned());
                    self.device.recycle(frame);
                }
                _ => self.device.recycle(frame),
            }
        }
    }

    /// Calls the driver for queue `number`, while it stands still.
    fn call(&mut self, number: usize) -> Result<(), String> {
        let Some(calls) = &mut self.calls else { return Err("the guest's interface takes no calls".to_owned()) };
        if let Err(error) = calls.write_all(&vhost::call(number)) {
            return Err(self.lost(&error));
        }
        loop {
            let Some(calls) = &self.calls else { return Ok(()) };
            let ready = wait(&[self.clock.as_fd(), calls.as_fd()], self.patience, || false);
            match ready.map_err(|error| self.lost(&error))? {
                Some(0) => _ = self.serve_clock()?,
                Some(_) => break,
                None => return Err(format!("the guest does not answer an interrupt{}", last_lines(&self.console))),
            }
        }
        let Some(calls) = &self.calls else { return Ok(()) };
        let answer = receive(calls).map_err(|error| self.lost(&error))?.map_err(broken)?;
        if vhost::is_accepted(answer.flags, &answer.payload) {
            Ok(())
        } else {
            Err(broken(RingFault(format!("it refuses the call of queue {number}"))))
        }
    }

    /// The error of a connection that has ended, which mostly means that the guest has.
    fn lost(&self, error: &io::Error) -> String {
        let what = match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                "the guest has ended".to_owned()
            }
            _ => format!("the connection to the guest: {error}"),
        };
        format!("{what}{}", last_lines(&self.console))
    }

    /// Ends it with what its console says last.
    pub(crate) fn console(&self) -> String {
        last_lines(&self.console)
    }
}

/// Returns `true` if a packet is for more than one host: nobody else is on the link.
fn is_to_many(packet: &[u8]) -> bool {
    match packet.first().map(|first| first >> 4) {
        // 224.0.0.0/4 and 255.255.255.255.
        Some(4) => packet.get(16).is_some_and(|&first| first >= 224),
        // ff00::/8.
        Some(6) => packet.get(24) == Some(&0xff),
        _ => true,
    }
}

/// Waits until one of `sources` can be read, and returns its number; `None` if none can for so long,
/// or if `ended`, which is asked each second.
fn wait(
    sources: &[std::os::fd::BorrowedFd<'_>],
    patience: Duration,
    mut ended: impl FnMut() -> bool,
) -> io::Result<Option<usize>> {
    let second = Timespec { tv_sec: 1, tv_nsec: 0 };
    for _ in 0..patience.as_secs().max(1) {
        let mut polled: Vec<PollFd<'_>> =
            sources.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        match poll(&mut polled, Some(&second)) {
            Ok(0) if ended() => return Ok(None),
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(polled.iter().position(|fd| !fd.revents().is_empty())),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

/// Receives a message with the files that it carries.
fn receive(stream: &UnixStream) -> io::Result<Result<vhost::VhostMessage, RingFault>> {
    let mut header = [0; vhost::HEADER];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut files = RecvAncillaryBuffer::new(&mut space);
    let got = recvmsg(stream, &mut [IoSliceMut::new(&mut header)], &mut files, RecvFlags::CMSG_CLOEXEC)?.bytes;
    let fds: Vec<OwnedFd> = files
        .drain()
        .flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => fds.collect(),
            _ => Vec::new(),
        })
        .collect();
    if got == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut reader = stream;
    reader.read_exact(&mut header[got..])?;
    let (request, flags, len) = match vhost::parse_header(&header) {
        Ok(parsed) => parsed,
        Err(fault) => return Ok(Err(fault)),
    };
    let mut payload = vec![0; len];
    reader.read_exact(&mut payload)?;
    Ok(Ok(vhost::VhostMessage { request, flags, payload, fds }))
}

/// The last lines of a console, as the end of a message.
fn last_lines(mut console: &File) -> String {
    let mut text = Vec::new();
    let len = console.metadata().map_or(0, |of| of.len());
    let read = console.seek(SeekFrom::Start(len.saturating_sub(TAIL))).and_then(|_| console.read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    if read.is_err() || lines.is_empty() {
        return "; its console is empty".to_owned();
    }
    let lines = &lines[lines.len().saturating_sub(LAST_LINES)..];
    format!("; its console says last:\n  {}", lines.join("\n  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_for_many_are_for_nobody() {
        let mut four = [0; 20];
        four[0] = 0x45;
        let mut six = [0; 40];
        six[0] = 0x60;
        assert!(!is_to_many(&four) && !is_to_many(&six));
        four[16] = 224;
        six[24] = 0xff;
        for packet in [&four[..], &six, &[], &[0x75; 20]] {
            assert!(is_to_many(packet), "{packet:?}");
        }
    }

    #[test]
    fn a_console_ends_with_its_last_lines() {
        let directory = Directory::new().expect("a directory");
        let path = directory.0.join("console");
        let mut file = File::options().read(true).append(true).create_new(true).open(&path).expect("a file");
        assert_eq!(last_lines(&file), "; its console is empty");
        for line in 0..100 {
            writeln!(file, "line {line} {}\r\n", "x".repeat(100)).expect("room");
        }
        let shown = last_lines(&file);
        assert_eq!(shown.lines().count(), 1 + LAST_LINES);
        assert!(shown.starts_with("; its console says last:\n  line 88 x") && shown.ends_with("xx"), "{shown}");
    }

    #[test]
    fn messages_come_with_their_files() {
        let (mut ours, theirs) = UnixStream::pair().expect("a pair");
        ours.write_all(&vhost::call(1)).expect("room");
        let got = receive(&theirs).expect("a message").expect("a proper one");
        assert_eq!((got.request, got.flags, got.payload.as_slice()), (4, 9, &[1, 0, 0, 0, 0, 0, 0, 0][..]));
        drop(ours);
        assert_eq!(receive(&theirs).map(|_| ()).map_err(|error| error.kind()), Err(io::ErrorKind::UnexpectedEof));
    }

    #[test]
    fn a_program_that_is_no_kernel_says_how_to_build_one() {
        let boot = Boot {
            kernel: "/bin/true".into(),
            initrd: "/nothing".into(),
            append: String::new(),
            memory_mb: 32,
            mtu: 1500,
            patience: Duration::from_secs(5),
        };
        let Err(error) = Guest::start(&boot) else { panic!("it starts without a kernel") };
        assert!(error.contains("build-image") && error.contains("TIME_TRAVEL"), "{error}");
    }
}
