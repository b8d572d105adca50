//! Layouts are those of the headers of Linux.

use proptest::prelude::*;

use super::*;

const NEWLINK: u16 = libc::RTM_NEWLINK;

fn of(length: u32, kind: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let [length, sequence] = [length, sequence].map(u32::to_ne_bytes);
    [&length[..], &kind.to_ne_bytes(), &[0; 2], &sequence, &[0; 4], body].concat()
}

/// The replies to request 7 in a datagram, and whether there are more.
fn replies(bytes: &[u8]) -> io::Result<(Vec<Address>, bool)> {
    let mut replies = Vec::new();
    let ends = read(bytes, 7, &mut replies)?;
    Ok((replies, !ends))
}

#[test]
fn a_request_is_laid_out_as_the_kernel_reads_it() {
    let nested = attribute(10, &attribute(8, &[1]));
    let mut message = Address::new([2, 24, 0, 0, 0, 0, 0, 0]).with(3, b"lo").with(26, &nested);
    message.set(4, 0x0102_0304);
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
    let halves = |halves: [u16; 2]| halves.map(u16::to_ne_bytes).concat();
    let expected = [
        words(&[48]),
        // NLM_F_REQUEST, NLM_F_ACK and NLM_F_DUMP.
        halves([20, 0x305]),
        words(&[9, 0]),
        vec![2, 24, 0, 0],
        words(&[0x0102_0304]),
        // The padding is not counted, but in what is around it.
        halves([6, 3]),
        b"lo\0\0".to_vec(),
        halves([16, 26]),
        halves([12, 10]),
        halves([5, 8]),
        vec![1, 0, 0, 0],
    ];
    assert_eq!(message.encode(libc::RTM_NEWADDR, libc::NLM_F_DUMP, 9), expected.concat());
}

#[test]
fn a_reply_has_several_messages_and_ends_once() {
    let message = Address::new([2, 24, 0, 0, 5, 0, 0, 0]).with(3, b"name").with(0x8001, &[7]);
    let one = message.encode(NEWLINK, 0, 7);
    let done = of(20, DONE, 7, &[0; 4]);
    let others = message.encode(NEWLINK, 0, 6);
    assert_eq!(replies(&[&one[..], &others, &one].concat()).unwrap(), (vec![message.clone(); 2], true));
    assert_eq!(replies(&[&one[..], &done].concat()).unwrap(), (vec![message.clone()], false));
    assert_eq!(replies(&of(36, ERROR, 7, &[0; 20])).unwrap(), (Vec::new(), false));
    assert_eq!((message.get(3), message.get(1), message.word(0)), (Some(&b"name"[..]), None, message.word(0)));
}

#[test]
fn an_error_is_that_of_the_kernel() {
    for kind in [ERROR, DONE] {
        let error = replies(&of(20, kind, 7, &(-libc::EEXIST).to_ne_bytes())).unwrap_err();
        assert_eq!((error.raw_os_error(), error.kind()), (Some(libc::EEXIST), io::ErrorKind::AlreadyExists));
        assert!(replies(&of(20, kind, 7, &i32::MIN.to_ne_bytes())).is_err());
    }
}

#[test]
fn what_is_cut_off_or_has_a_wrong_length_is_refused() {
    let whole = Address::new([0; 8]).with(3, b"name").encode(NEWLINK, 0, 7);
    for length in 1..whole.len() {
        assert_eq!(replies(&whole[..length]).unwrap_err().kind(), io::ErrorKind::InvalidData, "{length}");
    }
    // Lengths of the message, and of the attribute in it.
    for (at, lengths) in [(0, [0, 15, 23, 25, 33, 0x7fff]), (24, [0, 3, 9, 12, 0x100, 0x7fff])] {
        for length in lengths {
            let mut wrong = whole.clone();
            wrong[at..at + 2].copy_from_slice(&u16::to_ne_bytes(length));
            assert!(replies(&wrong).is_err(), "{length} at {at}");
        }
    }
    assert!(replies(&of(18, ERROR, 7, &[0; 2])).is_err());
}

proptest! {
    #[test]
    fn anything_is_read_or_refused(bytes in prop::collection::vec(0_u8..20, 0..200), length in 0_u8..200) {
        let mut bytes = bytes;
        let _ = replies(&bytes);
        // In the middle of a message of its own.
        bytes.splice(0..0, of(length.into(), NEWLINK, 7, &[]));
        let _ = replies(&bytes);
    }
}
