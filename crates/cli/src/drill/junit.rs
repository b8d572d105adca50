//! Results as JUnit XML, in the dialect that CI systems read: `failure` if a script failed, `error`
//! if it could not be judged.
//!
//! Times are those of the scripts' own clock, so that the file is the same on every run.

use std::io::{self, Write};

use ackclock_units::Span;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use super::record::{Ending, ScriptRecord, VerdictCounts, seconds};

/// Writes all results; the texts of records are printable already.
pub(crate) fn write(mut to: impl Write, records: &[ScriptRecord]) -> io::Result<()> {
    let mut counts = VerdictCounts::default();
    records.iter().for_each(|record| counts.add(record));
    let took = records.iter().fold(Span::ZERO, |sum, record| sum + record.took);
    let totals = [
        ("name", "ackclock packetdrill"),
        ("tests", &counts.all().to_string()),
        ("failures", &counts.failed.to_string()),
        ("errors", &(counts.unsupported + counts.errors).to_string()),
        ("time", &seconds(took)),
    ];
    let mut xml = Writer::new_with_indent(&mut to, b' ', 2);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    xml.create_element("testsuites").with_attributes(totals).write_inner_content(|xml| {
        xml.create_element("testsuite")
            .with_attributes(totals)
            .write_inner_content(|xml| records.iter().try_for_each(|record| case(xml, record)))?;
        Ok(())
    })?;
    writeln!(to)
}

fn case(xml: &mut Writer<impl Write>, record: &ScriptRecord) -> io::Result<()> {
    // Readers group by what stands before the last dot of a class name, and show a name under it.
    let (folder, file) = record.path.rsplit_once('/').unwrap_or((".", &record.path));
    let took = seconds(record.took);
    let element = xml.create_element("testcase").with_attributes([
        ("classname", folder),
        ("name", file),
        ("file", &record.path),
        ("time", &took),
    ]);
    let (tag, kind) = match record.ending {
        Ending::Passed => ("", ""),
        Ending::Failed => ("failure", "mismatch"),
        Ending::Unsupported => ("error", "unsupported"),
        Ending::Error => ("error", "script"),
    };
    let shell = record.note();
    if tag.is_empty() && shell.is_none() && record.report.is_empty() {
        return element.write_empty().map(|_| ());
    }
    element.write_inner_content(|xml| {
        let mut said = shell.map(|note| format!("{note}\n")).unwrap_or_default();
        if tag.is_empty() {
            said.push_str(&record.report);
        } else {
            let text = format!("{}: {}\n{}", record.place(), record.what, record.report);
            let element = xml.create_element(tag).with_attributes([("type", kind), ("message", &record.what)]);
            element.write_text_content(BytesText::new(&text))?;
        }
        if !said.is_empty() {
            xml.create_element("system-out").write_text_content(BytesText::new(&said))?;
        }
        Ok(())
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::record::sample;
    use super::*;

    #[test]
    fn every_ending_has_its_element() {
        let endings = [Ending::Passed, Ending::Failed, Ending::Unsupported, Ending::Error];
        let mut records: Vec<ScriptRecord> = endings.map(sample).into();
        records.push(ScriptRecord { shell_lines: Vec::new(), ..sample(Ending::Passed) });
        let mut out = Vec::new();
        write(&mut out, &records).unwrap();
        insta::assert_snapshot!(String::from_utf8(out).unwrap(), @r##"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites name="ackclock packetdrill" tests="5" failures="1" errors="2" time="6.250">
          <testsuite name="ackclock packetdrill" tests="5" failures="1" errors="2" time="6.250">
            <testcase classname="a" name="b #1.pkt" file="a/b #1.pkt" time="1.250">
              <system-out>2 shell lines not run: 4, 7
        </system-out>
            </testcase>
            <testcase classname="a" name="b #1.pkt" file="a/b #1.pkt" time="1.250">
              <failure type="mismatch" message="expected &lt;&amp;&gt; &quot;ack 1&quot;">a/b #1.pkt:7: expected &lt;&amp;&gt; &quot;ack 1&quot;
          first ]]&gt; line

        last: &lt;line&gt;
        </failure>
              <system-out>2 shell lines not run: 4, 7
        </system-out>
            </testcase>
            <testcase classname="a" name="b #1.pkt" file="a/b #1.pkt" time="1.250">
              <error type="unsupported" message="expected &lt;&amp;&gt; &quot;ack 1&quot;">a/b #1.pkt:7: expected &lt;&amp;&gt; &quot;ack 1&quot;
        </error>
              <system-out>2 shell lines not run: 4, 7
        </system-out>
            </testcase>
            <testcase classname="a" name="b #1.pkt" file="a/b #1.pkt" time="1.250">
              <error type="script" message="expected &lt;&amp;&gt; &quot;ack 1&quot;">a/b #1.pkt:7: expected &lt;&amp;&gt; &quot;ack 1&quot;
        </error>
              <system-out>2 shell lines not run: 4, 7
        </system-out>
            </testcase>
            <testcase classname="a" name="b #1.pkt" file="a/b #1.pkt" time="1.250"/>
          </testsuite>
        </testsuites>
        "##);
    }
}
