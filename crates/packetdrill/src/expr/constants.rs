//! Names that packetdrill defines before code runs.

use super::Value;

/// Name and value. States and congestion states are Linux's (`include/net/tcp_states.h`,
/// `include/uapi/linux/tcp.h`), and so are those of FreeBSD's suite, `TCPI_...`, as
/// nplab/packetdrill defines them on Linux.
const CONSTANTS: &[(&str, i128)] = &[
    ("TCPI_CLOSED", 7),
    ("TCPI_CLOSE_WAIT", 8),
    ("TCPI_CLOSING", 11),
    ("TCPI_ESTABLISHED", 1),
    ("TCPI_FIN_WAIT_1", 4),
    ("TCPI_FIN_WAIT_2", 5),
    ("TCPI_LAST_ACK", 9),
    ("TCPI_LISTEN", 10),
    ("TCPI_NEW_SYN_RECV", 12),
    ("TCPI_OPT_ECN", 8),
    ("TCPI_OPT_ECN_SEEN", 16),
    ("TCPI_OPT_SACK", 2),
    ("TCPI_OPT_SYN_DATA", 32),
    ("TCPI_OPT_TFO_CHILD", 128),
    ("TCPI_OPT_TIMESTAMPS", 1),
    ("TCPI_OPT_USEC_TS", 64),
    ("TCPI_OPT_WSCALE", 4),
    ("TCPI_SYN_RECEIVED", 3),
    ("TCPI_SYN_SENT", 2),
    ("TCPI_TIME_WAIT", 6),
    ("TCP_CA_CWR", 2),
    ("TCP_CA_Disorder", 1),
    ("TCP_CA_Loss", 4),
    ("TCP_CA_Open", 0),
    ("TCP_CA_Recovery", 3),
    ("TCP_CLOSE", 7),
    ("TCP_CLOSE_WAIT", 8),
    ("TCP_CLOSING", 11),
    ("TCP_ESTABLISHED", 1),
    ("TCP_FIN_WAIT1", 4),
    ("TCP_FIN_WAIT2", 5),
    ("TCP_LAST_ACK", 9),
    ("TCP_LISTEN", 10),
    ("TCP_SYN_RECV", 3),
    ("TCP_SYN_SENT", 2),
    ("TCP_TIME_WAIT", 6),
];

pub(super) fn find(name: &str) -> Option<Value> {
    CONSTANTS.binary_search_by_key(&name, |&(name, _)| name).ok().map(|at| Value::Int(CONSTANTS[at].1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(CONSTANTS.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(find("TCP_CA_Loss"), Some(Value::Int(4)));
        assert_eq!(find("TCP_CA_Lost"), None);
    }
}
