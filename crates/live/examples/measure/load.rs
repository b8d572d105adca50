//! Traffic: UDP at a rate, with what arrives and when; TCP by iperf3; ICMP echo.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use ackclock_trace::Histogram;
use anyhow::{Context, Result, ensure};
use nix::errno::Errno;
use nix::sys::prctl::set_timerslack;
use nix::sys::socket::sockopt::{RcvBufForce, ReceiveTimestampns, SndBufForce};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, MultiHeaders, SockFlag, SockProtocol, SockType, SockaddrIn, recvmmsg,
    recvmsg, sendmmsg, sendto, setsockopt,
};
use nix::time::{ClockId, clock_gettime};

use crate::lab::{ADDRESSES, Lab};

/// Bytes of the headers of IPv4 and UDP.
const HEADERS: usize = 28;
/// Packets that one call sends or receives.
const BURST: usize = 32;
const PORT: u16 = 4000;

/// A stream of packets of one length.
#[derive(Clone, Copy)]
pub(crate) struct PacketStream {
    /// Bytes of a packet, those of IP included.
    pub(crate) bytes: usize,
    /// Packets per second.
    pub(crate) rate: f64,
    /// For how long.
    pub(crate) time: Duration,
}

/// Its result.
#[derive(Default)]
pub(crate) struct Streamed {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    /// From the call that sent a packet to its arrival at the other kernel, ns.
    pub(crate) delay: Histogram,
    /// Between the arrivals of the first and the last packet.
    pub(crate) span: Duration,
}

impl Streamed {
    /// Packets per second that arrived.
    pub(crate) fn rate(&self) -> f64 {
        self.received.saturating_sub(1) as f64 / self.span.as_secs_f64()
    }
}

#[expect(clippy::disallowed_methods, reason = "stamps of packets")]
fn now(clock: ClockId) -> io::Result<Duration> {
    Ok(clock_gettime(clock)?.into())
}

/// A socket of a host, once the host has its address.
fn socket(lab: &Lab, host: usize) -> Result<UdpSocket> {
    let address: Ipv4Addr = ADDRESSES[host].parse()?;
    for _ in 0..500 {
        match lab.inside(host, || UdpSocket::bind((address, PORT))) {
            Ok(socket) => {
                thread::sleep(Duration::from_millis(200));
                return Ok(socket);
            }
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
    }
    anyhow::bail!("{address} does not come up")
}

/// Sends a stream from the left host to the right one.
pub(crate) fn udp(lab: &Lab, stream: PacketStream) -> Result<Streamed> {
    let receiver = socket(lab, 1)?;
    let sender = socket(lab, 0)?;
    setsockopt(&receiver, RcvBufForce, &(64 << 20))?;
    setsockopt(&sender, SndBufForce, &(4 << 20))?;
    setsockopt(&receiver, ReceiveTimestampns, &true)?;
    receiver.set_read_timeout(Some(Duration::from_millis(100)))?;
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let receiving = scope.spawn(|| receive(&receiver, stream.bytes - HEADERS, &done));
        let sent = send(&sender, stream);
        // Packets on their way may have a queue before them.
        thread::sleep(Duration::from_millis(1500));
        done.store(true, Ordering::Relaxed);
        let mut result = receiving.join().map_err(|_| io::Error::other("the receiver failed"))??;
        result.sent = sent?;
        Ok(result)
    })
}

/// Sends at the times that the rate gives, up to a burst at once if they have gone by; sleeps in
/// between.
fn send(socket: &UdpSocket, stream: PacketStream) -> io::Result<u64> {
    set_timerslack(1)?;
    let to = SockaddrIn::from(SocketAddrV4::new(ADDRESSES[1].parse().map_err(io::Error::other)?, PORT));
    let addresses = [Some(to); BURST];
    let mut headers = MultiHeaders::<SockaddrIn>::preallocate(BURST, None);
    let mut packets = vec![[0; 65_507]; BURST];
    // A rate of many packets in a tick of 200 us goes in bursts, one of few packet by packet.
    let tick = Duration::from_micros(200);
    let begin = now(ClockId::CLOCK_MONOTONIC)?;
    let mut sent = 0_u64;
    loop {
        let elapsed = now(ClockId::CLOCK_MONOTONIC)? - begin;
        if elapsed >= stream.time {
            return Ok(sent);
        }
        let due = (elapsed.as_secs_f64() * stream.rate) as u64 + 1;
        let count = due.saturating_sub(sent).min(BURST as u64) as usize;
        if count == 0 {
            let next = Duration::from_secs_f64(sent as f64 / stream.rate);
            thread::sleep(next.saturating_sub(elapsed).max(tick.min(Duration::from_secs_f64(1.0 / stream.rate))));
            continue;
        }
        let stamp = now(ClockId::CLOCK_REALTIME)?.as_nanos() as u64;
        packets[..count].iter_mut().for_each(|packet| packet[..8].copy_from_slice(&stamp.to_be_bytes()));
        let slices: Vec<_> = packets[..count].iter().map(|p| [IoSlice::new(&p[..stream.bytes - HEADERS])]).collect();
        let results = sendmmsg(socket.as_raw_fd(), &mut headers, &slices, &addresses[..count], [], MsgFlags::empty());
        match results {
            Ok(results) => sent += results.count() as u64,
            Err(Errno::ENOBUFS | Errno::EAGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn receive(socket: &UdpSocket, bytes: usize, done: &AtomicBool) -> io::Result<Streamed> {
    let mut headers = MultiHeaders::<SockaddrIn>::preallocate(BURST, Some(nix::cmsg_space!(nix::sys::time::TimeSpec)));
    let mut buffers = vec![vec![0; bytes]; BURST];
    let mut streamed = Streamed::default();
    let (mut first, mut last) = (None, Duration::ZERO);
    while !done.load(Ordering::Relaxed) {
        let mut stamps = [None; BURST];
        let mut count = 0;
        {
            let mut slices: Vec<_> = buffers.iter_mut().map(|buffer| [IoSliceMut::new(buffer)]).collect();
            let received =
                recvmmsg(socket.as_raw_fd(), &mut headers, slices.iter_mut(), MsgFlags::MSG_WAITFORONE, None);
            match received {
                Ok(received) => {
                    for message in received {
                        for control in message.cmsgs()? {
                            if let ControlMessageOwned::ScmTimestampns(stamp) = control {
                                stamps[count] = Some(Duration::from(stamp));
                            }
                        }
                        count += 1;
                    }
                }
                Err(Errno::EAGAIN | Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        for (buffer, stamp) in buffers.iter().zip(stamps).take(count) {
            streamed.received += 1;
            let Some(stamp) = stamp else { continue };
            let sent = buffer.first_chunk().map_or(0, |stamp| u64::from_be_bytes(*stamp));
            streamed.delay.add((stamp.as_nanos() as u64).saturating_sub(sent));
            first.get_or_insert(stamp);
            last = stamp;
        }
    }
    streamed.span = last.saturating_sub(first.unwrap_or(last));
    Ok(streamed)
}

/// A TCP connection of the two kernels for some seconds, with this congestion control: bit/s of
/// payload.
pub(crate) fn tcp(lab: &Lab, seconds: u64, congestion: &str) -> Result<f64> {
    // The address is there before iperf3 is.
    drop(socket(lab, 0)?);
    drop(socket(lab, 1)?);
    let mut server = lab
        .command(1, "iperf3")
        .args(["-s", "-1", "-B", ADDRESSES[1]])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("iperf3 is not installed")?;
    thread::sleep(Duration::from_millis(200));
    let seconds = seconds.to_string();
    let arguments = ["-c", ADDRESSES[1], "-J", "-t", &seconds, "-C", congestion];
    let client = lab.command(0, "iperf3").args(arguments).output().context("iperf3");
    let _ = server.kill();
    server.wait()?;
    let report: serde_json::Value = serde_json::from_slice(&client?.stdout)?;
    report["end"]["sum_received"]["bits_per_second"].as_f64().context("iperf3 has measured nothing")
}

/// Round-trip times from left to right by ICMP echo, ns, `rate` of them a second, as `ping`
/// measures them: until the kernel has the answer, not until this process has been told. `ping`
/// itself prints tenths of a millisecond beyond 10 ms.
pub(crate) fn ping(lab: &Lab, rate: u32, time: Duration) -> Result<Histogram> {
    /// Bytes of the packet without the IP header: ICMP header and 56 bytes, as `ping` sends.
    const LENGTH: usize = 64;
    drop(socket(lab, 1)?);
    let _up = socket(lab, 0)?;
    let socket = lab.inside(0, || {
        Ok(nix::sys::socket::socket(AddressFamily::Inet, SockType::Raw, SockFlag::SOCK_NONBLOCK, SockProtocol::Icmp)?)
    })?;
    setsockopt(&socket, ReceiveTimestampns, &true)?;
    set_timerslack(1)?;
    let to = SockaddrIn::from(SocketAddrV4::new(ADDRESSES[1].parse()?, 0));
    let gap = Duration::from_secs(1) / rate;
    let count = (time.as_secs_f64() * f64::from(rate)) as u16;
    let mut times = Histogram::new();
    let mut control = nix::cmsg_space!(nix::sys::time::TimeSpec);
    let mut packet = [0; LENGTH];
    let id = std::process::id() as u16;
    for number in 0..count {
        // RFC 792: type 8, code 0, checksum, identifier, sequence number.
        packet[0] = 8;
        packet[2..4].fill(0);
        packet[4..6].copy_from_slice(&id.to_be_bytes());
        packet[6..8].copy_from_slice(&number.to_be_bytes());
        packet[8..16].copy_from_slice(&(now(ClockId::CLOCK_REALTIME)?.as_nanos() as u64).to_be_bytes());
        let sum: u32 = packet.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        packet[2..4].copy_from_slice(&sum.to_be_bytes());
        sendto(socket.as_raw_fd(), &packet, &to, MsgFlags::empty())?;
        thread::sleep(gap);
        loop {
            let mut answer = [0; 128];
            let mut slices = [IoSliceMut::new(&mut answer)];
            let stamp = match recvmsg::<()>(socket.as_raw_fd(), &mut slices, Some(&mut control), MsgFlags::empty()) {
                Ok(message) => message.cmsgs()?.find_map(|control| match control {
                    ControlMessageOwned::ScmTimestampns(stamp) => Some(Duration::from(stamp)),
                    _ => None,
                }),
                Err(Errno::EAGAIN) => break,
                Err(error) => return Err(error.into()),
            };
            // An answer to us, behind 20 bytes of IP.
            if answer[20] == 0 && answer[24..26] == id.to_be_bytes() {
                let sent = u64::from_be_bytes(answer[28..36].try_into()?);
                times.add(stamp.map_or(0, |stamp| stamp.as_nanos() as u64).saturating_sub(sent));
            }
        }
    }
    ensure!(times.samples() + 20 > u64::from(count), "{} answers to {count} packets", times.samples());
    Ok(times)
}
