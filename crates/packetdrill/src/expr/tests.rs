//! Python's results for the same code, worked out with the language reference.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

/// Names as a runner defines them.
fn lookup(name: &str) -> Option<Value> {
    match name {
        "tcpi_snd_cwnd" => Some(Value::Int(10)),
        "tcpi_rtt" => Some(Value::Int(100_250)),
        "tcpi_ca_state" => Some(Value::Int(3)),
        "tcpi_options" => Some(Value::Int(0b111)),
        _ => None,
    }
}

fn run_in(env: &mut Variables, text: &str) -> Result<Vec<String>, CodeError> {
    Program::parse(text, 1).unwrap_or_else(|error| panic!("{}", error.render("test", text, false))).run(env, &lookup)
}

fn run(text: &str) -> Result<Vec<String>, CodeError> {
    run_in(&mut Variables::new(), text)
}

/// The value of an expression as Python prints it.
fn value(text: &str) -> String {
    run(&format!("print({text})")).unwrap_or_else(|error| panic!("{text}: {error}")).remove(0)
}

fn failure(text: &str) -> String {
    run(text).expect_err(text).to_string()
}

fn syntax(text: &str) -> String {
    Program::parse(text, 1).expect_err(text).to_string()
}

#[test]
fn arithmetic() {
    let cases = [
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("7 / 2", "3.5"),
        ("4 / 2", "2.0"),
        // Division rounds down, and the rest has the sign of the divisor.
        ("7 // 2", "3"),
        ("-7 // 2", "-4"),
        ("7 // -2", "-4"),
        ("-7 % 3", "2"),
        ("7 % -3", "-2"),
        ("-7.5 % 2", "0.5"),
        ("-7.5 // 2", "-4.0"),
        ("2 ** 10", "1024"),
        ("2 ** -1", "0.5"),
        ("-2 ** 2", "-4"),
        ("2 ** 3 ** 2", "512"),
        ("(-1) ** 3", "-1"),
        ("1 << 4 | 1", "17"),
        ("6 & 3 ^ 1", "3"),
        ("-9 >> 1", "-5"),
        ("~5", "-6"),
        ("--5", "5"),
        ("0x7fffffff", "2147483647"),
        ("1_000", "1000"),
        ("1e3", "1000.0"),
        ("0.1 + 0.2", "0.30000000000000004"),
        ("1e16", "1e+16"),
        ("0.00001", "1e-05"),
        ("True + True", "2"),
        ("'a' + 'b' * 3", "abbb"),
        ("'a' 'b'", "ab"),
    ];
    for (text, expected) in cases {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn comparisons_and_logic() {
    let cases = [
        ("1 < 2 < 3", "True"),
        ("1 < 3 < 2", "False"),
        ("3 > 2 >= 2 != 1", "True"),
        ("1 == 1.0", "True"),
        ("1 == '1'", "False"),
        ("5 in (1, 5)", "True"),
        ("5 not in [1, 2]", "True"),
        ("5 in range(5)", "False"),
        ("4 in range(0, 10, 3)", "False"),
        ("9 in range(0, 10, 3)", "True"),
        ("8 in range(10, 0, -2)", "True"),
        ("'ell' in 'hello'", "True"),
        ("None is None", "True"),
        ("1 is not None", "True"),
        ("not 1 == 2", "True"),
        ("0 or 'x'", "x"),
        ("0 and undefined", "0"),
        ("1 or undefined", "1"),
        ("1 if 2 > 1 else undefined", "1"),
        ("'a' < 'b'", "True"),
        ("(1, 'a') == (1, 'a')", "True"),
        ("1 | 2 == 3", "True"),
        ("(1, 2) < (1, 3)", "True"),
        ("True | False", "True"),
    ];
    for (text, expected) in cases {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn functions() {
    let cases = [
        ("abs(-5)", "5"),
        ("abs(-0.5)", "0.5"),
        ("min(3, 1, 2)", "1"),
        ("max((3, 1, 2))", "3"),
        ("int(-3.7)", "-3"),
        ("int(' 12 ')", "12"),
        ("float(3)", "3.0"),
        // Halves go to the even neighbour.
        ("round(2.5)", "2"),
        ("round(3.5)", "4"),
        ("round(2.675, 2)", "2.67"),
        ("len('abc') + len((1, 2)) + len(range(0, 10, 3))", "9"),
        ("str(1.5) + str(None)", "1.5None"),
        ("bool('')", "False"),
    ];
    for (text, expected) in cases {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn formats() {
    let cases = [
        ("'cwnd=%d' % 10", "cwnd=10"),
        ("'%d %s %r' % (1.9, 'a', 'a')", "1 a 'a'"),
        ("'%5d|%-5d|%05d' % (1, 2, -3)", "    1|2    |-0003"),
        ("'%x %#x %X %o' % (255, 255, 255, 8)", "ff 0xff FF 10"),
        ("'%.2f %f' % (2.5, 1)", "2.50 1.000000"),
        ("'%+d%%' % 5", "+5%"),
        ("'%.3d' % 7", "007"),
        ("'%s' % ((1, 2),)", "(1, 2)"),
        ("'%ld' % 4", "4"),
    ];
    for (text, expected) in cases {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn assertions_as_scripts_write_them() {
    let held = [
        "assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd",
        " assert tcpi_snd_cwnd == 10, 'cwnd=%d' % tcpi_snd_cwnd ",
        "assert 100000 <= tcpi_rtt <= 101000, 'srtt=%d us' % tcpi_rtt",
        "assert (tcpi_options & TCPI_OPT_SYN_DATA) == 0, tcpi_options",
        "assert tcpi_options == (TCPI_OPT_TIMESTAMPS | TCPI_OPT_SACK | TCPI_OPT_WSCALE)",
        "\nassert tcpi_ca_state == TCP_CA_Recovery, tcpi_ca_state\nassert 1  # for sure\n",
        "assert tcpi_snd_cwnd == 10; \\\nassert tcpi_rtt > 0;\\\n",
        "\n    assert 1\n    assert (1 <\n  2)\n    ",
        "assert 1\n    assert 1\n    assert 1\n",
        "print tcpi_snd_cwnd; assert 1",
        "",
        "# nothing",
    ];
    for text in held {
        assert!(run(text).is_ok(), "{text}: {:?}", run(text));
    }
}

#[test]
fn a_failed_assertion_tells_the_condition_and_its_values() {
    let text = "assert 1\nassert tcpi_snd_cwnd == 4 and tcpi_ca_state ==\\\n  TCP_CA_Open, 'state %d' % tcpi_ca_state";
    let error = Program::parse(text, 20).unwrap().run(&mut Variables::new(), &lookup).unwrap_err();
    assert_eq!(error.line, 21);
    assert_eq!(error.message, "state 3");
    // A backslash at the end of a line is part of what is written.
    assert_eq!(error.condition.as_deref(), Some(r"tcpi_snd_cwnd == 4 and tcpi_ca_state ==\ TCP_CA_Open"));
    let name = |name: &str, value: i128| (name.to_owned(), Value::Int(value));
    assert_eq!(error.values, [name("tcpi_snd_cwnd", 10), name("tcpi_ca_state", 3), name("TCP_CA_Open", 0)]);
    assert_eq!(failure("assert tcpi_snd_cwnd < 5"), "line 1: `tcpi_snd_cwnd < 5` does not hold (tcpi_snd_cwnd = 10)");
    assert_eq!(failure("assert 0, undefined"), "line 1: `0` does not hold: `undefined` is not defined");
}

#[test]
fn what_is_printed_is_kept() {
    assert_eq!(run("print('a', 1, 2.0)\nprint 'b', (1,)\nprint()\nprint(5)").unwrap(), ["a 1 2.0", "b (1,)", "", "5"]);
    assert_eq!(run("print((1, 2)); print (1) + 2; print (1), 2; print(3),").unwrap(), ["(1, 2)", "3", "1 2", "3"]);
    let error = run("print(1); assert 0").unwrap_err();
    assert_eq!(error.printed, ["1"]);
}

#[test]
fn assigned_names_last_from_one_piece_of_code_to_the_next() {
    let mut env = Variables::new();
    run_in(&mut env, "cwnd = tcpi_snd_cwnd; LIMIT = 0x7fffffff").unwrap();
    run_in(&mut env, "cwnd += 2\ncwnd *= 10").unwrap();
    run_in(&mut env, "assert cwnd == 120 and LIMIT == 2147483647").unwrap();
    assert_eq!(env.get("cwnd"), Some(&Value::Int(120)));
    // The runner's variables are defined anew each time.
    run_in(&mut env, "tcpi_rtt = 1; TCP_CA_Open = 7; assert tcpi_rtt == 1 and TCP_CA_Open == 7").unwrap();
    run_in(&mut env, "assert tcpi_rtt == 100250 and TCP_CA_Open == 0").unwrap();
}

#[test]
fn conditions() {
    let program = "
if x > 5:
    y = 'large'
    if x > 100: y = 'huge'; z = 1
elif x == 5: y = 'five'
else:
    y = 'small'
    pass
print(y)";
    let with = |x: i128| {
        let mut env = Variables::new();
        run_in(&mut env, &format!("x = {x}")).unwrap();
        run_in(&mut env, program).unwrap().remove(0)
    };
    assert_eq!([with(6), with(101), with(5), with(4)], ["large", "huge", "five", "small"]);
    assert_eq!(run("if 1:\n  print(1)\nelse:\n  print(2)\nprint(3)").unwrap(), ["1", "3"]);
}

#[test]
fn what_cannot_be_computed_is_an_error() {
    let cases = [
        ("undefined", "`undefined` is not defined"),
        ("1 // 0", "division by zero"),
        ("1.0 % 0", "division by zero"),
        ("1 + 'a'", "an integer and a string do not go together here"),
        ("1 < 'a'", "an integer and a string have no order"),
        ("2 ** 200", "an integer does not fit 128 bits"),
        ("2 ** 99999999999999", "an integer does not fit 128 bits"),
        ("1 << 127", "an integer does not fit 128 bits"),
        ("1 << 99999999999999", "an integer does not fit 128 bits"),
        ("170141183460469231731687303715884105727 + 1", "an integer does not fit 128 bits"),
        ("(-170141183460469231731687303715884105727 - 1) // -1", "an integer does not fit 128 bits"),
        ("abs(-170141183460469231731687303715884105727 - 1)", "an integer does not fit 128 bits"),
        ("1 >> -1", "a negative number of bits to shift by"),
        ("1.5 | 1", "bits of a float"),
        ("'a' * 99999999999", "a string that is too long"),
        ("'%99999999d%99999999d' * 65 % 1", "more fields than values in a format"),
        ("'%d' % 'a'", "`%d` does not go with a string"),
        ("'%d' % (1, 2)", "more values than fields in a format"),
        ("'%' % 1", "a format that ends within `%`"),
        ("int(1e300)", "an integer does not fit 128 bits"),
        ("int('x')", "'x' is no integer"),
        ("range(1, 2, 0)", "`range` requires integers, and a step that is not 0"),
        ("min(())", "no values to choose from"),
        ("5 in 5", "`in` does not go with an integer"),
    ];
    for (text, expected) in cases {
        assert_eq!(failure(text), format!("line 1: {expected}"), "{text}");
    }
    // A power that has no real value, and the least integer's rest.
    assert_eq!(failure("(-8) ** 0.5"), "line 1: a root of a negative number");
    assert_eq!(value("(-170141183460469231731687303715884105727 - 1) % -1"), "0");
}

#[test]
fn values_have_a_greatest_size() {
    let mut env = Variables::new();
    run_in(&mut env, "a = (1,)").unwrap();
    let nested = (0..20).find_map(|_| run_in(&mut env, "a = (a,)").err());
    assert_eq!(nested.unwrap().message, "a tuple that is too large");
    run_in(&mut env, "b = (1, 2)").unwrap();
    let wide = (0..20).find_map(|_| run_in(&mut env, "b = (b, b, b, b, b, b, b, b, b, b)").err());
    assert_eq!(wide.unwrap().message, "a tuple that is too large");
}

#[test]
fn what_syntax_errors_say() {
    let programs = [
        "assert",
        "assert 1 ==",
        "assert (1",
        "assert 1)",
        "assert x = 5",
        "assert 'a",
        "assert 1 2",
        "x = ",
        "5 = x",
        "None = 1",
        "x +",
        "import os",
        "for x in y: pass",
        "while 1: pass",
        "f(1)",
        "abs()",
        "round(1, 2, 3)",
        "x.y",
        "x[0]",
        "1 if 2",
        "if 1",
        "if 1:",
        "else: pass",
        "\nif 1:\nassert 1",
        "\nassert 1\n  assert 1",
        "\nif 1:\n    assert 1\n  assert 1",
        "assert 1 \\ 2",
        "assert $x",
        "assert 0x",
        "assert 12ab",
        "assert 340282366920938463463374607431768211456",
        "assert \u{e9}",
    ];
    let mut all = String::new();
    for program in programs {
        writeln!(all, "{program:?}\n    {}", syntax(program)).unwrap();
    }
    insta::assert_snapshot!(all);
}

#[test]
fn nesting_is_bounded() {
    let nested = [
        format!("x = {}1", "(".repeat(50_000)),
        format!("x = {}1{}", "(".repeat(50_000), ")".repeat(50_000)),
        format!("x = {}1", "-".repeat(50_000)),
        format!("x = {}1", "not ".repeat(50_000)),
        format!("x = {}1", "1+".repeat(50_000)),
        format!("x = {}1", "1**".repeat(50_000)),
        format!("x = {}1", "1 if 1 else ".repeat(50_000)),
        format!("x = {}1", "abs(".repeat(50_000)),
        (0..2_000).map(|depth| format!("{}if 1:\n", " ".repeat(depth))).collect(),
    ];
    for text in nested {
        let start: String = text.chars().take(20).collect();
        let error = syntax(&text);
        assert!(
            error.contains("too deep") || error.contains("too long") || error.contains("not closed"),
            "{start}: {error}"
        );
    }
    // The deepest nesting works with little stack.
    let deepest = |depth: usize| {
        let text = format!("assert {}1{}", "(1+".repeat(depth), ")".repeat(depth));
        Program::parse(&text, 1).map(|program| program.run(&mut Variables::new(), &|_| None).is_ok())
    };
    let thread = std::thread::Builder::new().stack_size(1 << 19);
    let results = thread.spawn(move || (1..200).map(|depth| deepest(depth).is_ok()).collect::<Vec<_>>()).unwrap();
    let results = results.join().unwrap();
    assert!(results[20] && !results[198]);
}

/// Pieces that code is made of.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "assert",
        "print",
        "if",
        "else",
        "elif",
        ":",
        ";",
        "\n",
        "  ",
        "x",
        "=",
        "==",
        "<",
        "in",
        "not",
        "and",
        "or",
        "(",
        ")",
        "[",
        "]",
        ",",
        "1",
        "0",
        "-",
        "+",
        "*",
        "**",
        "/",
        "//",
        "%",
        "<<",
        ">>",
        "'%5d'",
        "'a'",
        "2.5",
        "1e400",
        "abs",
        "range",
        "round",
        "int",
        "min",
        "None",
        "True",
        "tcpi_rtt",
        "9223372036854775807",
        "\\",
        "#",
        "\u{e9}",
        "pass",
        "+=",
    ]);
    prop::collection::vec(piece, 0..25).prop_map(|pieces| pieces.join(" "))
}

fn survives(text: &str) {
    match Program::parse(text, 1) {
        Ok(program) => drop(program.run(&mut Variables::new(), &lookup).map_err(|error| error.to_string())),
        Err(error) => assert!(!error.render("fuzz", text, false).is_empty()),
    }
}

/// Expressions that can be read, to be computed.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "0",
        "1",
        "-1",
        "2",
        "3",
        "127",
        "64",
        "2.5",
        "-0.0",
        "1e308",
        "'a'",
        "'%d'",
        "()",
        "(1, 2)",
        "None",
        "True",
        "170141183460469231731687303715884105727",
        "tcpi_rtt",
        "range(3)",
    ])
    .prop_map(str::to_owned);
    leaf.prop_recursive(4, 24, 3, |inner| {
        let operator = prop::sample::select(vec![
            "+", "-", "*", "/", "//", "%", "**", "<<", ">>", "&", "|", "^", "==", "<", ">=", "in", "is", "and", "or",
        ]);
        let function = prop::sample::select(vec!["abs", "int", "float", "round", "len", "str", "bool", "range", "max"]);
        prop_oneof![
            (inner.clone(), operator, inner.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            (function, inner.clone()).prop_map(|(f, a)| format!("{f}({a})")),
            (prop::sample::select(vec!["-", "~", "not "]), inner.clone()).prop_map(|(op, a)| format!("({op}{a})")),
            (inner.clone(), inner.clone(), inner).prop_map(|(a, b, c)| format!("({a} if {b} else {c})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn any_text_is_code_or_an_error(text in "\\PC*") {
        survives(&text);
    }

    #[test]
    fn any_pieces_are_code_or_an_error(text in pieces()) {
        survives(&text);
    }

    #[test]
    fn any_expression_has_a_value_or_an_error(text in expression()) {
        survives(&format!("print({text})"));
        prop_assert!(Program::parse(&format!("x = {text}"), 1).is_ok(), "{}", text);
    }
}
