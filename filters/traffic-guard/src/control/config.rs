//! The plugin's configuration.

use std::ops::RangeInclusive;

use kit::{FieldProblem, checks, typed};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::TrafficSettings;
use crate::{Dimension, DimensionOfStep, TrafficGuardStep};

/// The bounds of `surge_factor`.
const SURGE_FACTOR: RangeInclusive<f64> = 1.1..=100.0;
/// The bounds of `bucket_seconds`.
const BUCKET_SECONDS: RangeInclusive<u32> = 1..=3600;
/// The bounds of `learning_buckets`.
const LEARNING_BUCKETS: RangeInclusive<u32> = 2..=10_000;
/// The bounds of the floors, in requests per second.
const FLOOR: RangeInclusive<f64> = 0.1..=1_000_000.0;

/// The configuration.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrafficGuardConfig {
    /// Routes are watched.
    pub route: bool,
    /// Sources are watched.
    pub source: bool,
    /// Consumers are watched.
    pub consumer: bool,
    /// Networks are watched.
    pub asn: bool,
    /// How many times the usual pace is a surge: 1.1 to 100.
    pub surge_factor: f64,
    /// The length of a bucket: 1 to 3600.
    pub bucket_seconds: u32,
    /// Over how many buckets the usual pace is averaged: 2 to 10,000.
    pub learning_buckets: u32,
    /// How many buckets are learned before anything is a surge: 1 to `learning_buckets`.
    pub warmup_buckets: u32,
    /// The least that is taken for the usual pace of a route, in requests per second: 0.1 to 1,000,000.
    pub route_floor: f64,
    /// The same of a source.
    pub source_floor: f64,
    /// The same of a consumer.
    pub consumer_floor: f64,
    /// The same of a network.
    pub asn_floor: f64,
    /// What a surge of a route adds to the score: 0 to 100.
    pub route_weight: f64,
    /// The same of a source.
    pub source_weight: f64,
    /// The same of a consumer.
    pub consumer_weight: f64,
    /// The same of a network.
    pub asn_weight: f64,
}

impl Default for TrafficGuardConfig {
    fn default() -> Self {
        Self {
            route: true,
            source: true,
            consumer: true,
            asn: true,
            surge_factor: 3.0,
            bucket_seconds: 10,
            learning_buckets: 60,
            warmup_buckets: 6,
            route_floor: 20.0,
            source_floor: 5.0,
            consumer_floor: 10.0,
            asn_floor: 20.0,
            route_weight: 40.0,
            source_weight: 40.0,
            consumer_weight: 40.0,
            asn_weight: 30.0,
        }
    }
}

impl TrafficGuardConfig {
    /// Reads a configuration and checks it.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn read(config: &Map<String, Value>) -> Result<Self, Vec<FieldProblem>> {
        let config: Self = typed(Value::Object(config.clone())).map_err(|problem| vec![problem])?;
        let problems = config.problems();
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }

    fn problems(&self) -> Vec<FieldProblem> {
        let found = [
            checks::within("/surge_factor", self.surge_factor, SURGE_FACTOR),
            checks::within("/bucket_seconds", self.bucket_seconds, BUCKET_SECONDS),
            checks::within("/learning_buckets", self.learning_buckets, LEARNING_BUCKETS),
            checks::within("/warmup_buckets", self.warmup_buckets, 1..=self.learning_buckets.max(1)),
            checks::within("/route_floor", self.route_floor, FLOOR),
            checks::within("/source_floor", self.source_floor, FLOOR),
            checks::within("/consumer_floor", self.consumer_floor, FLOOR),
            checks::within("/asn_floor", self.asn_floor, FLOOR),
            checks::weight("/route_weight", self.route_weight),
            checks::weight("/source_weight", self.source_weight),
            checks::weight("/consumer_weight", self.consumer_weight),
            checks::weight("/asn_weight", self.asn_weight),
        ];
        found.into_iter().flatten().collect()
    }

    /// The step of a configuration without problems.
    #[must_use]
    pub fn step(&self, settings: &TrafficSettings) -> TrafficGuardStep {
        let all = [
            (self.route, Dimension::Route, self.route_floor, self.route_weight),
            (self.source, Dimension::Source, self.source_floor, self.source_weight),
            (self.consumer, Dimension::Consumer, self.consumer_floor, self.consumer_weight),
            (self.asn, Dimension::Asn, self.asn_floor, self.asn_weight),
        ];
        let watched = all.into_iter().filter(|(is_watched, ..)| *is_watched);
        let dimension = |(_, dimension, floor, weight): (_, Dimension, _, _)| DimensionOfStep {
            dimension: dimension.into(),
            floor,
            weight,
        };
        TrafficGuardStep {
            dimensions: watched.map(dimension).collect(),
            surge_factor: self.surge_factor,
            bucket_millis: self.bucket_seconds.saturating_mul(1000),
            learning_buckets: self.learning_buckets,
            warmup_buckets: self.warmup_buckets,
            max_keys: settings.max_keys,
        }
    }
}
