//! Makes a compiled contract small before it is written: schemas that are references alone give way to what they refer to, equal ones
//! become one, and what no operation needs is left out.

use std::collections::HashMap;

use prost::Message as _;

use crate::record::{OperationRecord, ResourceRecord, SchemaRecord};

/// The longest chain of references that is followed at once.
const MAX_CHAIN: usize = 64;
/// How often equal schemas are looked for: those that hold equal ones are equal in the next round.
const MAX_ROUNDS: usize = 12;

/// Reduces the records. `roots` are schemas that are needed beside those of operations: they come first.
pub(super) fn reduce(
    records: Vec<SchemaRecord>,
    resources: &mut [ResourceRecord],
    operations: &mut [OperationRecord],
    roots: &[u32],
) -> Vec<SchemaRecord> {
    let dynamic = resources.iter().any(|resource| !resource.anchors.is_empty());
    let mut reducer = Reducer { records, leads: Vec::new() };
    reducer.leads = (0..).take(reducer.records.len()).collect();
    if !dynamic {
        // The resource of a schema matters to dynamic references only.
        reducer.records.iter_mut().for_each(|record| record.resource = 0);
        reducer.skip_references();
    }
    reducer.merge();
    reducer.renumber(resources, operations, roots)
}

struct Reducer {
    records: Vec<SchemaRecord>,
    /// The schema that stands for each one.
    leads: Vec<u32>,
}

fn place(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

impl Reducer {
    fn lead(&self, schema: u32) -> u32 {
        self.leads.get(place(schema)).copied().unwrap_or(schema)
    }

    /// What is nothing but a reference leads to its target; circles stay.
    fn skip_references(&mut self) {
        let targets: Vec<Option<u32>> = self.records.iter().map(alone).collect();
        for (own, lead) in self.leads.iter_mut().enumerate() {
            let mut at = number(own);
            for _ in 0..MAX_CHAIN {
                match targets.get(place(at)).copied().flatten() {
                    Some(target) => at = target,
                    None => {
                        *lead = at;
                        break;
                    }
                }
            }
        }
    }

    /// Equal schemas become one.
    fn merge(&mut self) {
        for _ in 0..MAX_ROUNDS {
            let leads = std::mem::take(&mut self.leads);
            let follow = |schema: &mut u32| {
                if let Some(lead) = leads.get(place(*schema)) {
                    *schema = *lead;
                }
            };
            self.records.iter_mut().for_each(|record| each(record, follow));
            let mut known: HashMap<Vec<u8>, u32> = HashMap::with_capacity(self.records.len());
            let mut changed = false;
            let mut firsts: Vec<u32> = Vec::with_capacity(self.records.len());
            for (own, record) in self.records.iter().enumerate() {
                let lead = leads.get(own).copied().unwrap_or(u32::MAX);
                if lead != number(own) {
                    firsts.push(lead);
                    continue;
                }
                let first = *known.entry(record.encode_to_vec()).or_insert(lead);
                changed |= first != lead;
                firsts.push(first);
            }
            // What led to a schema that leads on now leads on too.
            self.leads = firsts.iter().map(|lead| firsts.get(place(*lead)).copied().unwrap_or(*lead)).collect();
            if !changed {
                break;
            }
        }
    }

    /// Numbers what is needed anew, in the order in which operations lead to it.
    fn renumber(
        mut self,
        resources: &mut [ResourceRecord],
        operations: &mut [OperationRecord],
        roots: &[u32],
    ) -> Vec<SchemaRecord> {
        let mut numbers: Vec<Option<u32>> = vec![None; self.records.len()];
        let mut order: Vec<u32> = Vec::new();
        let mut due = |schema: u32, order: &mut Vec<u32>| {
            let Some(own) = numbers.get_mut(place(schema)) else { return schema };
            *own.get_or_insert_with(|| {
                order.push(schema);
                number(order.len() - 1)
            })
        };
        for root in roots {
            due(self.lead(*root), &mut order);
        }
        for operation in operations {
            each_of_operation(operation, |schema| *schema = due(self.lead(*schema), &mut order));
        }
        for anchor in resources.iter_mut().flat_map(|resource| &mut resource.anchors) {
            anchor.schema = due(self.lead(anchor.schema), &mut order);
        }
        let mut reduced = Vec::new();
        let mut at = 0;
        while let Some(schema) = order.get(at).copied() {
            let mut record = self.records.get_mut(place(schema)).map(std::mem::take).unwrap_or_default();
            let leads = &self.leads;
            each(&mut record, |child| {
                let lead = leads.get(place(*child)).copied().unwrap_or(*child);
                *child = due(lead, &mut order);
            });
            reduced.push(record);
            at += 1;
        }
        reduced
    }
}

/// The target of a schema that is nothing but a reference.
fn alone(record: &SchemaRecord) -> Option<u32> {
    let target = record.reference?;
    let bare = SchemaRecord { reference: Some(target), resource: record.resource, ..SchemaRecord::default() };
    (bare == *record).then_some(target)
}

/// Every schema that a schema refers to.
fn each(record: &mut SchemaRecord, mut visit: impl FnMut(&mut u32)) {
    let named = record.properties.iter_mut().chain(&mut record.pattern_properties);
    let named = named.chain(&mut record.dependent_schemas).chain(&mut record.mapping);
    named.for_each(|named| visit(&mut named.schema));
    let lists = record.prefix_items.iter_mut().chain(&mut record.all_of);
    lists.chain(&mut record.any_of).chain(&mut record.one_of).for_each(&mut visit);
    let single = [
        &mut record.additional_properties,
        &mut record.property_names,
        &mut record.items,
        &mut record.contains,
        &mut record.not,
        &mut record.condition,
        &mut record.then,
        &mut record.otherwise,
        &mut record.reference,
        &mut record.dynamic_reference,
        &mut record.unevaluated_properties,
        &mut record.unevaluated_items,
    ];
    single.into_iter().filter_map(Option::as_mut).for_each(visit);
}

/// Every schema that an operation refers to.
fn each_of_operation(operation: &mut OperationRecord, mut visit: impl FnMut(&mut u32)) {
    operation.parameters.iter_mut().filter_map(|parameter| parameter.schema.as_mut()).for_each(&mut visit);
    let bodies = operation.body.iter_mut().flat_map(|body| &mut body.media);
    let media = bodies.chain(operation.responses.iter_mut().flat_map(|response| &mut response.media));
    media.filter_map(|media| media.schema.as_mut()).for_each(visit);
}
