//! Fields that are read, and those that are none.

use super::*;

fn rewritten(field: &str) -> Option<String> {
    let dictionary = Dictionary::read(field.as_bytes())?;
    let members = dictionary.iter().map(|(key, member)| {
        let mut written = key.to_vec();
        written.push(b'=');
        member.write(&mut written);
        String::from_utf8(written).unwrap()
    });
    Some(members.collect::<Vec<_>>().join(", "))
}

#[test]
fn members_are_written_in_their_canonical_form() {
    for (field, canonical) in [
        ("", ""),
        ("a=1", "a=1"),
        ("  a=(  \"x\"   y;z )  ", "a=(\"x\" y;z)"),
        ("a=( );b;  c=?0;d=?1", "a=();b;c=?0;d"),
        ("a, b;x=1,c=?0", "a=?1, b=?1;x=1, c=?0"),
        ("a=-007,b=1.50,c=-0.0,d=2.000,e=-1.005", "a=-7, b=1.5, c=0.0, d=2.0, e=-1.005"),
        (r#"a="q\"u\\o te""#, r#"a="q\"u\\o te""#),
        ("a=:aGk=:, b=:aGk:, c=::", "a=:aGk=:, b=:aGk=:, c=::"),
        ("a=@1659578233, b=*t/x:y%", "a=@1659578233, b=*t/x:y%"),
        ("a=1\t,\t b=2", "a=1, b=2"),
        ("a=1, b=2, a=3;x;x=4;y", "a=3;x=4;y, b=2"),
    ] {
        assert_eq!(rewritten(field).as_deref(), Some(canonical), "{field}");
    }
}

#[test]
fn what_is_no_dictionary_is_not_read() {
    for field in [
        "A=1",
        "1=1",
        "a=",
        "a=(",
        "a=(x",
        "a=(x,y)",
        "a=(\"x\"\"y\")",
        "a=1,",
        ",a=1",
        "a=1 b=2",
        "a==1",
        "a=\"x",
        "a=\"\\x\"",
        "a=\"\u{e4}\"",
        "a=:*:",
        "a=:aGk",
        "a=?2",
        "a=?",
        "a=-",
        "a=1.",
        "a=.5",
        "a=1.2345",
        "a=1234567890123456",
        "a=1234567890123.1",
        "a=@1.5",
        "a=%\"x\"",
        "a=1;",
        "a=1;B",
        "a=1; ",
        "a=(x);=",
        "a=\"\\",
        "a=((x))",
        "\u{0}",
        "a=1\n",
    ] {
        assert_eq!(rewritten(field), None, "{field:?}");
    }
}

#[test]
fn fields_are_bounded() {
    let many =
        |count: usize, join: &str, one: &dyn Fn(usize) -> String| (0..count).map(one).collect::<Vec<_>>().join(join);
    let read = |field: String| Dictionary::read(field.as_bytes()).is_some();
    for (most, field) in [
        (MAX_MEMBERS, &(|count| many(count, ",", &|number| format!("a{number}"))) as &dyn Fn(usize) -> String),
        (MAX_ITEMS, &|count| format!("a=({})", many(count, " ", &|number| number.to_string()))),
        (MAX_PARAMETERS, &|count| format!("a;{}", many(count, ";", &|number| format!("p{number}")))),
    ] {
        assert!(read(field(most)) && !read(field(most + 1)), "{}", field(1));
    }
}

#[test]
fn an_item_is_all_of_its_field() {
    assert_eq!(Item::read(b" \"x\";type=cimd ").map(|item| item.parameters.iter().count()), Some(1));
    for field in ["", "\"x\" y", "\"x\", \"y\"", "(x)", "a=1"] {
        assert_eq!(Item::read(field.as_bytes()), None, "{field}");
    }
}
