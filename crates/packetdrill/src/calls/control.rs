//! fcntl and ioctl.

use super::Done;
use crate::args::{Args, CallError};
use crate::errno::Errno;
use crate::socket;
use crate::sockets::{Kernel, Kind};

impl Kernel {
    pub(super) fn call_fcntl(&mut self, args: &Args<'_>) -> Result<Done, CallError> {
        let count = args.count(2..=3)?;
        let nonblock = crate::args::symbol("O_NONBLOCK", args.system).unwrap_or(0);
        let fd = args.integer(0)?;
        let Some(id) = self.by_fd(fd) else {
            return Ok(if self.is_open(fd) { Done::value(2) } else { Done::failed(Errno::EBADF) });
        };
        let socket = &mut self.sockets[id];
        match args.integer(1)? {
            // F_GETFL: a socket is O_RDWR.
            3 => Ok(Done::value(if socket.nonblocking { 2 | nonblock } else { 2 })),
            4 if count == 3 => {
                socket.nonblocking = args.integer(2)? & nonblock != 0;
                Ok(Done::value(0))
            }
            1 | 2 => Ok(Done::value(0)),
            command => Err(CallError::Unsupported(format!("the fcntl command {command}"))),
        }
    }

    pub(super) fn call_ioctl(&mut self, args: &Args<'_>) -> Result<Done, CallError> {
        args.count(2..=3)?;
        let id = match self.socket_arg(args, 0)? {
            Ok(id) => id,
            Err(errno) => return Ok(Done::failed(errno)),
        };
        let name = args.name(1)?;
        let listening = matches!(self.sockets[id].kind, Kind::Listening(_) | Kind::MultipathListening(_));
        let is_multipath = self.multipath(id).is_some();
        let endpoint = self.endpoint(id);
        let value = match name.as_str() {
            _ if listening => return Ok(Done::failed(Errno::EINVAL)),
            "SIOCINQ" | "FIONREAD" => self.unread(id),
            name if is_multipath => return Err(CallError::Unsupported(format!("the ioctl {name} of MPTCP"))),
            "SIOCOUTQ" | "TIOCOUTQ" | "FIONWRITE" => endpoint.map_or(0, socket::unacknowledged),
            "SIOCOUTQNSD" => endpoint.map_or(0, |endpoint| endpoint.sender().sequence().unsent()),
            name => return Err(CallError::Unsupported(format!("the ioctl {name}"))),
        };
        let expected = args.bracketed(2)?;
        let mut done = Done::value(0);
        done.complaint = (expected != value as i64).then(|| format!("{name}: expected {expected}, got {value}"));
        Ok(done)
    }
}
