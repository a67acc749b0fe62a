//! The route of requests whose recording names none.

use std::collections::BTreeSet;

/// What a report says where there are routes and such requests take none of them.
const GLOBAL_CHAIN: &str = "none: the global chain";

/// A route's name, or the global chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DefaultRoute {
    /// Empty for the global chain.
    pub(super) name: String,
    /// Whether a report says so where it is the global chain.
    is_told: bool,
}

impl DefaultRoute {
    /// What a report says of it.
    pub(super) fn fact(&self) -> Option<&str> {
        match self.name.as_str() {
            "" => Some(GLOBAL_CHAIN).filter(|_| self.is_told),
            name => Some(name),
        }
    }

    /// For a snapshot with these routes: the one that is named, or the only one.
    pub(super) fn of(known: &[&str], named: Option<&str>) -> Result<Self, String> {
        let name = match (named, known) {
            (Some(named), known) if known.is_empty() || known.contains(&named) => named,
            (Some(named), known) => {
                return Err(format!("the snapshot has no route `{named}`: it has {}", known.join(", ")));
            }
            (None, [only]) => only,
            (None, []) => "",
            (None, known) => {
                tell(known);
                ""
            }
        };
        Ok(Self { name: name.to_owned(), is_told: false })
    }

    /// For two snapshots that are compared, decided once for both: what differs is to be what the two make of a request, and not
    /// where they put it. The route that is named for each (empty for none; for B, without one, that of A); where a side does not
    /// have it, the global chain. With no name, the only route, if both have the same only one; else the global chain.
    pub(super) fn of_both(known: [&[&str]; 2], before: Option<&str>, after: Option<&str>) -> Result<[Self; 2], String> {
        let names = match (before, after) {
            (None, None) => [common(known); 2],
            (before, after) => {
                let before = before.unwrap_or_default();
                present(known, [before, after.unwrap_or(before)])?
            }
        };
        let is_told = known.iter().any(|routes| !routes.is_empty());
        Ok(names.map(|name| Self { name: name.to_owned(), is_told }))
    }
}

/// The only route of both.
fn common<'a>(known: [&[&'a str]; 2]) -> &'a str {
    match known {
        [[a], [b]] if a == b => a,
        [[], []] => "",
        _ => {
            tell(&all(known));
            ""
        }
    }
}

/// The names, each as far as its side has it.
fn present<'a>(known: [&[&str]; 2], [before, after]: [&'a str; 2]) -> Result<[&'a str; 2], String> {
    let [of_a, of_b] = known;
    if of_a.is_empty() && of_b.is_empty() {
        // A filter from elsewhere: its routes are not known.
        return Ok([before, after]);
    }
    let [has_a, has_b] = [of_a.contains(&before), of_b.contains(&after)];
    let named = if before.is_empty() { after } else { before };
    if !has_a && !has_b && !named.is_empty() {
        return Err(format!("neither snapshot has the route `{named}`: they have {}", all(known).join(", ")));
    }
    Ok([if has_a { before } else { "" }, if has_b { after } else { "" }])
}

fn all<'a>(known: [&[&'a str]; 2]) -> Vec<&'a str> {
    let all: BTreeSet<&str> = known.into_iter().flatten().copied().collect();
    all.into_iter().collect()
}

fn tell(known: &[&str]) {
    let known = known.join(", ");
    eprintln!("palisade-replay: requests without a route take the global chain; --route gives one of {known}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(known: [&[&str]; 2], before: Option<&str>, after: Option<&str>) -> Result<[String; 2], String> {
        DefaultRoute::of_both(known, before, after).map(|routes| routes.map(|route| route.name))
    }

    #[test]
    fn two_sides_take_the_only_route_if_it_is_the_same() {
        let of = |a: &[&str], b: &[&str]| both([a, b], None, None).unwrap();
        assert_eq!(of(&["shop"], &["shop"]), ["shop", "shop"]);
        for (a, b) in [
            (&["shop"][..], &["blog", "shop"][..]),
            (&["shop"], &["blog"]),
            (&["shop"], &[]),
            (&[], &["shop"]),
            (&["a", "b"], &["a", "b"]),
            (&[], &[]),
        ] {
            assert_eq!(of(a, b), ["", ""], "{a:?} {b:?}");
        }
    }

    #[test]
    fn a_side_without_the_named_route_takes_the_global_chain_and_says_so() {
        let of = |a: &[&str], b: &[&str], before, after| both([a, b], before, after).unwrap();
        assert_eq!(of(&["shop"], &["blog", "shop"], Some("blog"), None), ["", "blog"]);
        assert_eq!(of(&["shop", "blog"], &["shop"], Some("blog"), None), ["blog", ""]);
        assert_eq!(of(&["shop"], &["store"], Some("shop"), Some("store")), ["shop", "store"]);
        assert_eq!(of(&["shop"], &["shop"], None, Some("shop")), ["", "shop"], "A is not asked for its only one");
        assert_eq!(of(&["shop"], &["shop"], Some("shop"), Some("")), ["shop", ""]);
        assert_eq!(of(&[], &["blog"], Some("blog"), None), ["", "blog"]);
        assert_eq!(of(&[], &[], Some("theirs"), None), ["theirs", "theirs"]);
        let why = both([&["shop"], &["blog"]], Some("x"), None).unwrap_err();
        assert_eq!(why, "neither snapshot has the route `x`: they have blog, shop");
        let told = |route: &DefaultRoute| route.fact().map(str::to_owned);
        let [a, b] = DefaultRoute::of_both([&["shop"], &["blog", "shop"]], Some("blog"), None).unwrap();
        assert_eq!((told(&a).as_deref(), told(&b).as_deref()), (Some(GLOBAL_CHAIN), Some("blog")));
        assert_eq!(told(&DefaultRoute::of(&[], None).unwrap()), None);
    }

    #[test]
    fn one_run_takes_the_only_route() {
        let of = |known: &[&str], named| DefaultRoute::of(known, named).map(|route| route.name);
        assert_eq!((of(&["shop"], None), of(&["a", "b"], None)), (Ok("shop".to_owned()), Ok(String::new())));
        assert_eq!((of(&["a", "b"], Some("b")), of(&[], Some("b"))), (Ok("b".to_owned()), Ok("b".to_owned())));
        assert!(of(&["a", "b"], Some("c")).unwrap_err().contains("it has a, b"));
    }
}
