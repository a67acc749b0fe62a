//! Mutation with a population for each place, kept by instructions.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::meter::{Cost, Meter};
use super::mutate::mutated;
use super::recipe::{Place, Recipe};
use recording::random::Random;

/// How many recipes of a place are kept.
const POPULATION: usize = 12;

/// How a search runs.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The most bytes of a request's text.
    pub size: usize,
    /// How long to search, in real time.
    pub time: Duration,
    /// What random numbers begin with.
    pub seed: u64,
}

/// A recipe and what it costs.
#[derive(Debug, Clone)]
pub struct Found {
    /// The recipe.
    pub recipe: Recipe,
    /// What it costs at the size of the plan.
    pub cost: Cost,
}

/// Searches from the first recipes on. Gives the dearest of each place, the dearest first, and how many were tried.
pub fn run(
    meter: &mut Meter,
    first: &[Recipe],
    plan: Plan,
    mut progress: impl FnMut(u64, Option<&Found>),
) -> (Vec<Found>, u64) {
    let began = Instant::now();
    let mut random = Random::new(plan.seed, 0);
    let mut kept: BTreeMap<Place, Vec<Found>> = BTreeMap::new();
    let mut tried = 0;
    for recipe in first {
        consider(meter, recipe.clone(), plan.size, &mut kept);
        tried += 1;
    }
    while began.elapsed() < plan.time {
        let places: Vec<Place> = kept.keys().copied().collect();
        let Some(place) = places.get(random.below(places.len())) else { break };
        let of_place = &kept[place];
        // The dearest are mutated most.
        let at = random.below(of_place.len()).min(random.below(of_place.len()));
        let other_place = &kept[&places[random.below(places.len())]];
        let other = &other_place[random.below(other_place.len())];
        let recipe = mutated(&of_place[at].recipe, &other.recipe, &mut random);
        consider(meter, recipe, plan.size, &mut kept);
        tried += 1;
        if tried % 16 == 0 {
            progress(tried, kept.values().flatten().max_by_key(|found| found.cost.instructions));
        }
    }
    let mut all: Vec<Found> = kept.into_values().flatten().collect();
    all.sort_by_key(|found| std::cmp::Reverse(found.cost.instructions));
    (all, tried)
}

fn consider(meter: &mut Meter, recipe: Recipe, size: usize, kept: &mut BTreeMap<Place, Vec<Found>>) {
    let exchange = recipe.exchange(size);
    let mut cost = meter.run(&exchange);
    let of_place = kept.entry(recipe.place).or_default();
    // The first time may pay for what is built once in the life of a VM.
    let least = of_place.last().filter(|_| of_place.len() == POPULATION);
    if least.is_none_or(|least| least.cost.instructions < cost.instructions) && !cost.died {
        cost = meter.run(&exchange);
    }
    // Of equal cost one is enough: most mutations change nothing that matters.
    if of_place.iter().any(|found| found.cost.instructions == cost.instructions) {
        return;
    }
    of_place.push(Found { recipe, cost });
    of_place.sort_by_key(|found| std::cmp::Reverse(found.cost.instructions));
    of_place.truncate(POPULATION);
}
