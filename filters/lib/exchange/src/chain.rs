//! The chains of a filter: which plugins act on which route, in which order.

use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

use snapshot::{IdentitySource, Snapshot, Trailers};

use crate::parts::{FindPart, Parts};
use crate::timer::Timers;
use crate::{Build, Exchange, Host, Loaded, Plugin, PluginDefinition, Role, Scope, SkipRight, Tables};

/// The plugins that a filter knows, by name.
pub type Registry = [PluginDefinition];

/// All chains of a filter, made of a snapshot once and immutable from then on.
pub struct Chain {
    /// How a caller is identified.
    pub identity: IdentitySource,
    /// Other filters of this gateway run plugins on the same requests: signals travel between them.
    pub shared_exchange: bool,
    /// What becomes of the trailers of requests.
    pub trailers: Trailers,
    routes: HashMap<Vec<u8>, Rc<Steps>>,
    without_route: Rc<Steps>,
    pub(crate) parts: Parts,
    timers: Timers,
}

/// The steps of one route, those of the global chain first.
pub(crate) struct Steps {
    /// The gateway's name of the route; empty in the steps of requests without one.
    pub(crate) name: Rc<str>,
    pub(crate) id: Rc<str>,
    pub(crate) label: Rc<str>,
    no_grpc: bool,
    pub(crate) list: Vec<Rc<Step>>,
}

/// One plugin in a chain.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) plugin: Box<dyn Plugin>,
    pub(crate) scope: Scope,
    pub(crate) on_refusal_only: bool,
    pub(crate) role: Role,
    pub(crate) may_skip: SkipRight,
}

impl Step {
    /// The plugin, whose turn it is from now on: signals that are added are its own.
    pub(crate) fn turn(&self, exchange: &mut Exchange) -> &dyn Plugin {
        exchange.score.turn_of(self.name);
        self.plugin.as_ref()
    }
}

/// Why a snapshot cannot be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    /// Where: a route and a step.
    pub place: String,
    /// What is wrong, and what to do.
    pub message: String,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

impl std::error::Error for LoadError {}

impl Chain {
    /// Makes every plugin of a snapshot.
    ///
    /// # Errors
    ///
    /// The first step that cannot be made, by its place.
    pub fn load(snapshot: &Snapshot, registry: &Registry) -> Result<Self, LoadError> {
        Self::load_after(snapshot, registry, &|_| None, &[], &Rc::default())
    }

    /// [`Chain::load`], where `find` gives parts that were left out on the way, what `earlier` chains have made of a part that did
    /// not change is used again, and plugins keep `tables` of the worker.
    ///
    /// # Errors
    ///
    /// As of [`Chain::load`].
    pub fn load_after(
        snapshot: &Snapshot,
        registry: &Registry,
        find: &FindPart<'_>,
        earlier: &[Rc<Chain>],
        tables: &Rc<Tables>,
    ) -> Result<Self, LoadError> {
        let parts = snapshot.parts.iter().map(|part| (part.hash.as_slice(), part.data.as_slice()));
        let mut build = Build::after(parts, find, earlier, Rc::clone(tables));
        let global = steps(&snapshot.global, registry, &mut build, "the global chain")?;
        let mut routes = HashMap::with_capacity(snapshot.routes.len());
        for route in &snapshot.routes {
            let place = format!("route `{}`", route.name);
            let mut list = global.clone();
            list.extend(steps(&route.steps, registry, &mut build, &place)?);
            let steps = Steps {
                name: route.name.as_str().into(),
                id: route.id.as_str().into(),
                label: route.label.as_str().into(),
                no_grpc: route.no_grpc,
                list,
            };
            routes.insert(route.name.clone().into_bytes(), Rc::new(steps));
        }
        let timers = Timers::new(routes.values().flat_map(|steps: &Rc<Steps>| &steps.list).chain(&global));
        Ok(Self {
            identity: snapshot.identity.clone().unwrap_or_default(),
            shared_exchange: !snapshot.composite && snapshot.filter != "preset",
            trailers: snapshot.trailers(),
            routes,
            without_route: Rc::new(Steps {
                name: Rc::default(),
                id: Rc::default(),
                label: Rc::default(),
                no_grpc: false,
                list: global,
            }),
            parts: build.finish(),
            timers,
        })
    }

    /// A chain of one plugin, on every path of every route: for a run outside of a gateway.
    #[must_use]
    pub fn single(name: &'static str, plugin: Box<dyn Plugin>) -> Self {
        let (role, may_skip) = (Role::Other, SkipRight::None);
        let step = Step { name, plugin, scope: Scope::default(), on_refusal_only: false, role, may_skip };
        let without_route = Steps {
            name: Rc::default(),
            id: Rc::default(),
            label: Rc::default(),
            no_grpc: false,
            list: vec![Rc::new(step)],
        };
        Self {
            identity: IdentitySource::default(),
            shared_exchange: false,
            trailers: Trailers::default(),
            routes: HashMap::new(),
            without_route: Rc::new(without_route),
            parts: Parts::default(),
            timers: Timers::default(),
        }
    }

    /// Where its parts came from.
    #[must_use]
    pub fn loaded(&self) -> Loaded {
        self.parts.loaded
    }

    /// Lets one plugin do a piece of [`Plugin::prepare`]; `false` once none has anything left to do.
    #[must_use]
    pub fn prepare(&self) -> bool {
        let all = self.routes.values().chain([&self.without_route]);
        all.flat_map(|steps| &steps.list).any(|step| step.plugin.prepare())
    }

    /// Runs the tasks of plugins that are due ([`Plugin::on_timer`]). `worker` is a number that no other worker of the node has.
    pub fn run_timers(&self, worker: u64, host: &dyn Host) {
        self.timers.run(worker, host);
    }

    /// Whether a request on this route can be gRPC. A route that Palisade does not manage can: nothing is known about its
    /// backend.
    #[must_use]
    pub fn may_be_grpc(&self, route: &[u8]) -> bool {
        !self.steps(route).no_grpc
    }

    /// The steps for a route; the global chain alone where no route matched or the route has none of its own.
    pub(crate) fn steps(&self, route: &[u8]) -> &Rc<Steps> {
        self.routes.get(route).unwrap_or(&self.without_route)
    }
}

fn steps(
    list: &[snapshot::Step],
    registry: &Registry,
    build: &mut Build<'_>,
    place: &str,
) -> Result<Vec<Rc<Step>>, LoadError> {
    let make = |(number, step): (usize, &snapshot::Step)| {
        let fail =
            |message: String| LoadError { place: format!("{place}, step {} (`{}`)", number + 1, step.plugin), message };
        let definition = registry.iter().find(|definition| definition.name == step.plugin).ok_or_else(|| {
            fail("this filter has no such plugin; use filters and control plane of one release".to_owned())
        })?;
        let plugin = (definition.build)(&step.config, build).map_err(fail)?;
        let scope = Scope::new(&step.include, &step.exclude).map_err(fail)?;
        let PluginDefinition { name, role, may_skip, .. } = *definition;
        Ok(Rc::new(Step { name, plugin, scope, on_refusal_only: step.on_refusal_only, role, may_skip }))
    };
    list.iter().enumerate().map(make).collect()
}
