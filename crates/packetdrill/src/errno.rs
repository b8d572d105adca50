//! Error numbers of system calls by name.

use std::fmt;

use ackclock_tcp::Error;

macro_rules! errnos {
    ($($name:ident $number:literal $text:literal,)*) => {
        /// An error of a system call, with Linux's number and remark.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(clippy::upper_case_acronyms, reason = "their names in errno.h")]
        pub(crate) enum Errno {
            $($name,)*
        }

        impl Errno {
            /// The one called `name`.
            pub(crate) fn by_name(name: &str) -> Option<Errno> {
                match name {
                    $(stringify!($name) => Some(Errno::$name),)*
                    "EWOULDBLOCK" => Some(Errno::EAGAIN),
                    "ENOTSUP" => Some(Errno::EOPNOTSUPP),
                    _ => None,
                }
            }

            /// The one with Linux's `number`.
            pub(crate) fn by_number(number: i64) -> Option<Errno> {
                match number {
                    $($number => Some(Errno::$name),)*
                    _ => None,
                }
            }

            fn name(self) -> &'static str {
                match self {
                    $(Errno::$name => stringify!($name),)*
                }
            }

            /// Linux's number.
            pub(crate) fn number(self) -> i64 {
                match self {
                    $(Errno::$name => $number,)*
                }
            }

            fn text(self) -> &'static str {
                match self {
                    $(Errno::$name => $text,)*
                }
            }
        }
    };
}

errnos! {
    EPERM 1 "Operation not permitted",
    ENOENT 2 "No such file or directory",
    EINTR 4 "Interrupted system call",
    EBADF 9 "Bad file descriptor",
    EAGAIN 11 "Resource temporarily unavailable",
    ENOMEM 12 "Cannot allocate memory",
    EACCES 13 "Permission denied",
    EFAULT 14 "Bad address",
    EEXIST 17 "File exists",
    EINVAL 22 "Invalid argument",
    EPIPE 32 "Broken pipe",
    EDOM 33 "Numerical argument out of domain",
    ENONET 64 "Machine is not on the network",
    EPROTO 71 "Protocol error",
    ENOTSOCK 88 "Socket operation on non-socket",
    EDESTADDRREQ 89 "Destination address required",
    EMSGSIZE 90 "Message too long",
    EPROTOTYPE 91 "Protocol wrong type for socket",
    ENOPROTOOPT 92 "Protocol not available",
    EPROTONOSUPPORT 93 "Protocol not supported",
    EOPNOTSUPP 95 "Operation not supported",
    EAFNOSUPPORT 97 "Address family not supported by protocol",
    EADDRINUSE 98 "Address already in use",
    EADDRNOTAVAIL 99 "Cannot assign requested address",
    ENETDOWN 100 "Network is down",
    ENETUNREACH 101 "Network is unreachable",
    ECONNABORTED 103 "Software caused connection abort",
    ECONNRESET 104 "Connection reset by peer",
    ENOBUFS 105 "No buffer space available",
    EISCONN 106 "Transport endpoint is already connected",
    ENOTCONN 107 "Transport endpoint is not connected",
    ESHUTDOWN 108 "Cannot send after transport endpoint shutdown",
    ETIMEDOUT 110 "Connection timed out",
    ECONNREFUSED 111 "Connection refused",
    EHOSTDOWN 112 "Host is down",
    EHOSTUNREACH 113 "No route to host",
    EALREADY 114 "Operation already in progress",
    EINPROGRESS 115 "Operation now in progress",
}

impl fmt::Display for Errno {
    /// `EAGAIN (Resource temporarily unavailable)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.text())
    }
}

impl From<Error> for Errno {
    fn from(error: Error) -> Errno {
        match error {
            Error::Reset => Errno::ECONNRESET,
            Error::Refused => Errno::ECONNREFUSED,
            Error::TimedOut => Errno::ETIMEDOUT,
            Error::Aborted => Errno::ECONNABORTED,
            Error::BrokenPipe => Errno::EPIPE,
            Error::NotConnected => Errno::ENOTCONN,
            Error::NetUnreachable => Errno::ENETUNREACH,
            Error::HostUnreachable => Errno::EHOSTUNREACH,
            Error::NoProtocol => Errno::ENOPROTOOPT,
            Error::MessageTooLong => Errno::EMSGSIZE,
            Error::NotSupported => Errno::EOPNOTSUPP,
            Error::HostDown => Errno::EHOSTDOWN,
            Error::NoNetwork => Errno::ENONET,
            Error::Protocol => Errno::EPROTO,
            Error::Forbidden => Errno::EACCES,
        }
    }
}
