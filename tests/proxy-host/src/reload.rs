//! A new configuration for a filter that runs, as a gateway gives it.

use std::time::Duration;

use super::load::{LoadError, fault};
use super::vm::Vm;
use crate::cpu_time;

impl Vm {
    /// The number of the root context that has new exchanges.
    #[must_use]
    pub fn root(&self) -> u32 {
        self.store.data().root
    }

    /// Gives the VM another configuration: a new root context takes it beside the old one, which then ends. Exchanges that
    /// are under way must have ended before. A configuration that is refused changes nothing. Answers how long the thread
    /// ran for the filter to take it.
    ///
    /// # Errors
    ///
    /// The filter refuses it, with what it logged; or died of it, and the VM must not be used any more.
    pub fn reconfigure(&mut self, configuration: &[u8]) -> Result<Duration, LoadError> {
        let old = self.reconfigure_beside(configuration)?;
        self.end_root(old)?;
        Ok(self.configured_in())
    }

    /// [`Vm::reconfigure`] without the end of the old root context, which lives on beside the new one, as in a gateway where exchanges on
    /// it are under way. Answers its number.
    ///
    /// # Errors
    ///
    /// As [`Vm::reconfigure`].
    pub fn reconfigure_beside(&mut self, configuration: &[u8]) -> Result<u32, LoadError> {
        let size = u32::try_from(configuration.len()).map_err(|_| LoadError::new("the configuration is over 4 GiB"))?;
        let (old, new) = (self.root(), self.next_context);
        self.next_context += 1;
        let state = self.store.data_mut();
        let old_configuration = std::mem::replace(&mut state.configuration, configuration.to_vec());
        state.beside.insert(old, old_configuration);
        state.root = new;
        let create = self.callbacks.context_create.clone();
        self.call(&create, "on_context_create", new, (new, 0)).map_err(|fault| LoadError::new(fault.message))?;
        let mut ran = Duration::ZERO;
        for (name, size) in [("proxy_on_vm_start", 0), ("proxy_on_configure", size)] {
            let instance = self.store.data().instance;
            let function = instance.and_then(|it| it.get_typed_func::<(u32, u32), u32>(&mut self.store, name).ok());
            let Some(function) = function else { continue };
            self.store.data_mut().effective = new;
            self.module.wind_to_configure(&mut self.store);
            let began = cpu_time();
            let taken = function.call(&mut self.store, (new, size));
            ran += cpu_time().saturating_sub(began);
            let taken = taken.map_err(|error| LoadError::new(fault(name, &error, self.store.data()).message))?;
            if taken == 0 {
                let said: Vec<&str> = self.store.data().logs.iter().map(|line| line.text.as_str()).collect();
                let error = LoadError::new(format!("the filter refuses its configuration: {}", said.join("; ")));
                self.go_back(old);
                self.end_root(new)?;
                return Err(error);
            }
        }
        self.store.data_mut().configured_in = ran;
        Ok(old)
    }

    /// Gives new exchanges to a root context that lives beside the one that has had them, and tells the filter nothing: so a gateway does
    /// that gets a configuration again while exchanges on it are under way. A number that is none of those changes nothing.
    pub fn go_back(&mut self, root: u32) {
        let state = self.store.data_mut();
        if let Some(configuration) = state.beside.remove(&root) {
            let before = std::mem::replace(&mut state.configuration, configuration);
            state.beside.insert(std::mem::replace(&mut state.root, root), before);
            state.effective = root;
        }
    }

    /// Ends a root context that lives beside the one that has new exchanges: the last exchange on it is over.
    ///
    /// # Errors
    ///
    /// The filter died of it, and the VM must not be used any more.
    pub fn end_root(&mut self, root: u32) -> Result<(), LoadError> {
        let failed = |fault: crate::traffic::Fault| LoadError::new(fault.message);
        if let Some(done) = self.callbacks.done.clone() {
            self.call(&done, "on_done", root, root).map_err(failed)?;
        }
        if let Some(delete) = self.callbacks.delete.clone() {
            self.call(&delete, "on_delete", root, root).map_err(failed)?;
        }
        let state = self.store.data_mut();
        state.beside.remove(&root);
        state.timers.remove(&root);
        state.effective = state.root;
        Ok(())
    }
}
