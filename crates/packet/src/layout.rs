//! The options of a TCP header: which ones, in what order, with what padding.
//!
//! Stacks differ in the order and in how they align; the length is the same in all of them.
//!
//! # Source
//! Linux `tcp_options_write` (`net/ipv4/tcp_output.c`); FreeBSD `tcp_addoptions`
//! (`sys/netinet/tcp_output.c`).
//!
//! # Departures
//! FreeBSD's Fast Open option follows SACK-permitted without padding where there are no timestamps;
//! here it begins a word, so that the length is that of Linux.

use crate::segment::{MAX_OPTIONS, fixed_options_len, mptcp_len, options_len, sack_blocks_that_fit};
use crate::{AccEcn, FastOpen, MptcpOptions, SackBlocks, Segment, Timestamps};

#[cfg(test)]
mod tests;

/// The most options, paddings included, of one segment: MSS, SACK-permitted, a NOP and the window
/// scale, two NOPs each before timestamps and SACK, these two, AccECN, Fast Open, MPTCP, and the
/// paddings before and behind them and of the end.
const MAX_ITEMS: usize = 23;

/// The order of options and their padding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OptionLayout {
    /// `mss, sackOK, TS, nop, wscale`; without timestamps `mss, nop, nop, sackOK, nop, wscale`.
    /// AccECN comes behind TS, and takes the place of NOPs that follow it.
    #[default]
    Linux,
    /// `mss, nop, wscale, sackOK, TS`; the end is padded with `eol`. AccECN, which FreeBSD does not
    /// have, comes behind TS, or behind the MSS where it saves the NOP there.
    FreeBsd,
}

/// One option, as it stands in a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpOption {
    /// End of options, and the zeros behind it.
    End,
    /// No operation: padding.
    Nop,
    /// Maximum segment size.
    Mss(u16),
    /// Window scale.
    WindowScale(u8),
    /// SACK-permitted.
    SackPermitted,
    /// Timestamps.
    Timestamps(Timestamps),
    /// SACK, with at least one block.
    Sack(SackBlocks),
    /// AccECN.
    AccEcn(AccEcn),
    /// TCP Fast Open.
    FastOpen(FastOpen),
    /// All of MPTCP, each padded with NOPs.
    Mptcp(MptcpOptions),
}

impl TcpOption {
    /// Length on the wire, bytes.
    #[allow(clippy::len_without_is_empty, reason = "no option is empty")]
    pub fn len(&self) -> usize {
        match self {
            TcpOption::End | TcpOption::Nop => 1,
            TcpOption::SackPermitted => 2,
            TcpOption::WindowScale(_) => 3,
            TcpOption::Mss(_) => 4,
            TcpOption::Timestamps(_) => 10,
            TcpOption::Sack(blocks) => 2 + 8 * blocks.as_slice().len(),
            TcpOption::AccEcn(option) => option.len(),
            TcpOption::FastOpen(fast_open) => fast_open.option_len(),
            TcpOption::Mptcp(options) => options.padded_len() as usize,
        }
    }
}

/// The options of one header in their order.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    items: [TcpOption; MAX_ITEMS],
    len: usize,
    bytes: usize,
}

impl Options {
    fn push(&mut self, option: TcpOption) {
        self.items[self.len] = option;
        self.len += 1;
        self.bytes += option.len();
    }

    /// Pads with NOPs until the next option starts at `remainder` modulo `modulus`.
    fn align(&mut self, modulus: usize, remainder: usize) {
        while self.bytes % modulus != remainder {
            self.push(TcpOption::Nop);
        }
    }

    /// The options.
    pub fn as_slice(&self) -> &[TcpOption] {
        &self.items[..self.len]
    }
}

impl IntoIterator for Options {
    type Item = TcpOption;
    type IntoIter = std::iter::Take<std::array::IntoIter<TcpOption, MAX_ITEMS>>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter().take(self.len)
    }
}

/// The options of `segment` as `layout` has them, padding included; their lengths add up to
/// [`options_len`].
pub fn options(segment: &Segment, layout: OptionLayout) -> Options {
    let mut out = Options { items: [TcpOption::Nop; MAX_ITEMS], len: 0, bytes: 0 };
    if let Some(mss) = segment.mss {
        out.push(TcpOption::Mss(mss));
    }
    match layout {
        OptionLayout::Linux => push_as_linux(segment, &mut out),
        OptionLayout::FreeBsd => push_as_freebsd(segment, &mut out),
    }
    let fit = sack_blocks_that_fit(segment, fixed_options_len(segment)) as usize;
    if fit > 0 {
        let mut blocks = SackBlocks::default();
        for &(left, right) in &segment.sack.as_slice()[..fit] {
            blocks.push(left, right);
        }
        // No stack sends both SACK and SACK-permitted; together they take what [`options_len`]
        // says.
        if segment.acc_ecn.is_none() {
            out.align(4, 0);
        }
        out.align(4, 2);
        out.push(TcpOption::Sack(blocks));
    }
    if let Some(fast_open) = segment.fast_open {
        push_fast_open(&mut out, fast_open, layout);
    }
    if mptcp_len(segment, out.bytes.next_multiple_of(4) as u32) > 0 {
        out.align(4, 0);
        out.push(TcpOption::Mptcp(segment.mptcp));
    }
    let pad = if layout == OptionLayout::Linux { TcpOption::Nop } else { TcpOption::End };
    while out.bytes < options_len(segment) as usize {
        out.push(pad);
    }
    out
}

fn push_as_linux(segment: &Segment, out: &mut Options) {
    // It replaces the NOPs before a timestamp, without which it comes last.
    let early = segment.sack_permitted && segment.timestamps.is_some();
    if early {
        out.push(TcpOption::SackPermitted);
    }
    if let Some(timestamps) = segment.timestamps {
        out.align(4, 2);
        out.push(TcpOption::Timestamps(timestamps));
    }
    // What is left over of an option with one field or none goes where others are aligned; two
    // bytes are not split.
    let late = segment.acc_ecn.filter(|option| option.len() == 2 && (early || !segment.sack_permitted));
    if late.is_none() {
        push_acc_ecn(segment, out);
    }
    if segment.sack_permitted && !early {
        out.align(4, 2);
        out.push(TcpOption::SackPermitted);
    }
    if let Some(shift) = segment.window_scale {
        out.align(4, 1);
        out.push(TcpOption::WindowScale(shift));
    }
    if late.is_some() {
        push_acc_ecn(segment, out);
    }
}

fn push_as_freebsd(segment: &Segment, out: &mut Options) {
    let early = segment.window_scale.is_some() && segment.acc_ecn.is_some_and(|option| option.len() == 5);
    if early {
        push_acc_ecn(segment, out);
    }
    if let Some(shift) = segment.window_scale {
        out.align(2, 1);
        out.push(TcpOption::WindowScale(shift));
    }
    if segment.sack_permitted {
        out.align(2, 0);
        out.push(TcpOption::SackPermitted);
    }
    if let Some(timestamps) = segment.timestamps {
        out.align(4, 2);
        out.push(TcpOption::Timestamps(timestamps));
    }
    if !early {
        push_acc_ecn(segment, out);
    }
}

fn push_acc_ecn(segment: &Segment, out: &mut Options) {
    if let Some(option) = segment.acc_ecn {
        out.push(TcpOption::AccEcn(option));
        if option.len() == 11 {
            out.push(TcpOption::Nop);
        }
    }
}

/// Puts `option` into `segment`, with as many of its fields as fit next to the other options;
/// `false`, and nothing done, unless there is room for `least` fields. For `least` fields, if not
/// none, up to two SACK blocks may remain of more.
///
/// As Linux's `tcp_options_fit_accecn`.
pub fn fit_acc_ecn(segment: &mut Segment, option: AccEcn, least: usize) -> bool {
    segment.acc_ecn = None;
    let mut blocks = sack_blocks_that_fit(segment, fixed_options_len(segment)) as usize;
    let mut trial = *segment;
    loop {
        trial.sack.truncate(blocks);
        for fields in (least..=AccEcn::MOST_FIELDS).rev() {
            trial.acc_ecn = Some(option.shortened(fields));
            let sack = if blocks > 0 { 4 + 8 * blocks as u32 } else { 0 };
            if fixed_options_len(&trial) + sack <= MAX_OPTIONS {
                *segment = trial;
                return true;
            }
        }
        if least == 0 || blocks <= 2 {
            return false;
        }
        blocks -= 1;
    }
}

/// Linux pads the option with NOPs; FreeBSD leaves it to the end of the header, but without
/// timestamps the options before it may not fill a word, and are filled here: see the module's
/// departures.
#[cold]
fn push_fast_open(out: &mut Options, fast_open: FastOpen, layout: OptionLayout) {
    out.align(4, 0);
    out.push(TcpOption::FastOpen(fast_open));
    if layout == OptionLayout::Linux {
        out.align(4, 0);
    }
}
