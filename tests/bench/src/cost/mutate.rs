//! Small changes of recipes.

use super::recipe::{Piece, Place, Recipe};
use super::seeds::UNITS;
use recording::random::Random;

/// The most pieces of a recipe, and characters of a piece.
const PIECES: usize = 24;
const LENGTH: usize = 4000;

/// A recipe that differs from another one, and takes pieces of a third one at times.
pub(super) fn mutated(recipe: &Recipe, other: &Recipe, random: &mut Random) -> Recipe {
    let mut recipe = recipe.clone();
    for _ in 0..random.range(1, 3) {
        once(&mut recipe, other, random);
    }
    recipe.pieces.truncate(PIECES);
    if recipe.pieces.is_empty() {
        recipe.pieces.push(Piece { text: "a".into(), times: 1, grows: true });
    }
    recipe
}

fn once(recipe: &mut Recipe, other: &Recipe, random: &mut Random) {
    let at = random.below(recipe.pieces.len());
    match random.below(16) {
        0 => recipe.pieces.insert(at, Piece { text: unit(random), times: 1, grows: random.chance(50) }),
        1 if recipe.pieces.len() > 1 => drop(recipe.pieces.remove(at)),
        2 => {
            let copy = recipe.pieces[at].clone();
            recipe.pieces.insert(at, copy);
        }
        3 => recipe.pieces[at].grows ^= true,
        4 => recipe.pieces[at].times = [1, 1, 2, 3, 5, 10, 30, 100, 300, 1000][random.below(10)],
        5 if !other.pieces.is_empty() => {
            let piece = other.pieces[random.below(other.pieces.len())].clone();
            recipe.pieces.insert(at, piece);
        }
        6 if random.chance(20) => recipe.place = Place::ALL[random.below(Place::ALL.len())],
        7 if random.chance(20) => recipe.content_type = content_type(random),
        8 => recipe.pieces[at].text.push_str("{n}"),
        9 => {
            let doubled = recipe.pieces[at].text.repeat(2);
            if doubled.len() <= LENGTH {
                recipe.pieces[at].text = doubled;
            }
        }
        _ => edit(&mut recipe.pieces[at].text, random),
    }
}

/// A change within the text of a piece.
fn edit(text: &mut String, random: &mut Random) {
    let mut characters: Vec<char> = text.chars().collect();
    let at = random.below(characters.len() + 1);
    match random.below(5) {
        0 | 1 => {
            let unit: Vec<char> = unit(random).chars().collect();
            characters.splice(at..at, unit);
        }
        2 if !characters.is_empty() => {
            let at = at.min(characters.len() - 1);
            let end = (at + random.range(1, 4)).min(characters.len());
            characters.drain(at..end);
        }
        3 if !characters.is_empty() => {
            let at = at.min(characters.len() - 1);
            characters[at] = char::from(random.byte());
        }
        _ => characters.insert(at, char::from(random.range(0x20, 0x7e) as u8)),
    }
    characters.truncate(LENGTH);
    *text = characters.into_iter().collect();
}

fn unit(random: &mut Random) -> String {
    match random.below(10) {
        0 => char::from(random.byte()).to_string(),
        1 => format!("{}{}", random.pick(&UNITS), random.pick(&UNITS)),
        2 => format!("{}=", random.pick(&UNITS)),
        _ => random.pick(&UNITS).to_owned(),
    }
}

fn content_type(random: &mut Random) -> Option<String> {
    const TYPES: [&str; 7] = [
        "application/x-www-form-urlencoded",
        "application/json",
        "text/xml",
        "multipart/form-data; boundary=------------------------------",
        "multipart/form-data; boundary=----------------------------------------------------------------------",
        "multipart/form-data; boundary=\"b b\"",
        "application/json; charset=utf-8",
    ];
    random.chance(80).then(|| (*random.pick(&TYPES)).to_owned())
}
