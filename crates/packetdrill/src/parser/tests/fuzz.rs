//! No text panics.

use super::*;

/// Pieces that a script is made of, put together at random, come further than random characters do.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "+0",
        "*",
        "~",
        "...",
        "0.1",
        ".",
        "1:1(0)",
        "1:",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "<",
        ">",
        "S",
        "P.",
        "ack",
        "win",
        "5",
        "0x1f",
        "-1",
        "mss",
        "sack",
        "TS",
        "val",
        "ecr",
        "nop",
        "FO",
        "ECN",
        "e0b",
        ",",
        "=",
        "|",
        "\"a\"",
        "`b`",
        "%{ assert 1 }%",
        "%{",
        "}%",
        "//",
        "/*",
        "*/",
        "#ifdef",
        "#endif",
        "--a",
        "\n",
        " ",
        "\\",
        "\"",
        "`",
        "icmp",
        "udp",
        "gre",
        "encap",
        "/udp(1 > 2)",
        "\u{e9}",
        "socket",
        "tos",
        "flags",
        "!",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.join(" "))
}

/// Reads a text and, where that fails, renders the error.
fn survives(text: &str) {
    match parse(text) {
        Ok(_) => {}
        Err(error) => {
            assert!(!error.render("fuzz", text, false).is_empty());
            assert!(error.line >= 1 && error.column >= 1 && error.place.end <= text.len());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_bytes_give_a_script_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        survives(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_pieces_give_a_script_or_an_error(text in pieces()) {
        survives(&text);
    }

    #[test]
    fn a_script_with_changes_gives_a_script_or_an_error(
        changes in prop::collection::vec((0..SCRIPT.len(), 0..3_u8, any::<u8>()), 1..6),
    ) {
        let mut bytes = SCRIPT.as_bytes().to_vec();
        for (at, change, byte) in changes {
            let at = at.min(bytes.len().saturating_sub(1));
            match change {
                0 => bytes[at] = byte,
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, byte & 0x7f),
            }
        }
        survives(&String::from_utf8_lossy(&bytes));
    }
}
