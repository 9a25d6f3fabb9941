//! A backend's instance: the world `backend-plugin` of `wit/`.

use wasmtime::Store;
use wasmtime::component::{Linker, ResourceAny};

use super::super::awaited::exported;
use super::super::bindings::backend_world::{BackendPlugin, BackendPluginPre};
use super::super::bindings::{log, types};
use super::super::instance::{Configured, Located, Reopen, World, by_bindings};
use super::super::sandbox::{Guest, GuestData};
use super::wit::{Call, Control, Credentials, Decoded, Earlier, Frames, Framing, Head};
use super::wit::{Prepared, Reading, Refusal, Request, ServedModel};
use model::plugin::Kind;
use model::plugin::Limits;

impl World for BackendPlugin {
    const KIND: Kind = Kind::Backend;

    by_bindings!(BackendPluginPre<Guest>);

    fn limit_ms(limits: &Limits) -> u64 {
        limits.backend_call_ms
    }

    fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
        types::add_to_linker::<Guest, GuestData>(linker, |guest| guest)?;
        log::add_to_linker::<Guest, GuestData>(linker, |guest| guest)
    }
}

impl Reopen for BackendPlugin {
    fn open(&self, store: &mut Store<Guest>, from: &Configured<Self>) -> Located<ResourceAny> {
        let codec = self.runner_plugin_backend().codec();
        exported!(store, "backend", "[static]codec.open", codec, call_open(&from.config))
    }
}

/// The calls of `codec`, as in the contract.
impl BackendPlugin {
    pub(super) fn default_url(
        &self,
        store: &mut Store<Guest>,
        codec: ResourceAny,
    ) -> wasmtime::Result<String> {
        let interface = self.runner_plugin_backend().codec();
        exported!(store, "backend", "[method]codec.default-url", interface, call_default_url(codec))
    }

    pub(super) fn control(
        &self,
        store: &mut Store<Guest>,
        codec: ResourceAny,
        what: Control,
    ) -> wasmtime::Result<Option<Request>> {
        let interface = self.runner_plugin_backend().codec();
        exported!(store, "backend", "[method]codec.control", interface, call_control(codec, what))
    }

    pub(super) fn prepare(
        &self,
        store: &mut Store<Guest>,
        codec: ResourceAny,
    ) -> wasmtime::Result<Option<Request>> {
        let interface = self.runner_plugin_backend().codec();
        exported!(store, "backend", "[method]codec.prepare", interface, call_prepare(codec))
    }

    pub(super) fn read_prepared(
        &self,
        store: &mut Store<Guest>,
        codec: ResourceAny,
        body: &[u8],
    ) -> Located<Prepared> {
        let interface = self.runner_plugin_backend().codec();
        exported!(
            store,
            "backend",
            "[method]codec.read-prepared",
            interface,
            call_read_prepared(codec, body)
        )
    }

    pub(super) fn read_models(
        &self,
        store: &mut Store<Guest>,
        codec: ResourceAny,
        body: &[u8],
    ) -> Located<Vec<ServedModel>> {
        let interface = self.runner_plugin_backend().codec();
        exported!(
            store,
            "backend",
            "[method]codec.read-models",
            interface,
            call_read_models(codec, body)
        )
    }

    pub(super) fn read_metrics(
        &self,
        store: &mut Store<Guest>,
        codec: ResourceAny,
        body: &[u8],
    ) -> Located<Vec<Reading>> {
        let interface = self.runner_plugin_backend().codec();
        exported!(
            store,
            "backend",
            "[method]codec.read-metrics",
            interface,
            call_read_metrics(codec, body)
        )
    }

    pub(super) fn encode(
        &self,
        store: &mut Store<Guest>,
        codec: ResourceAny,
        sample: &types::Sample,
        settings: &types::Settings,
        earlier: Option<&Earlier>,
    ) -> Located<Call> {
        let interface = self.runner_plugin_backend().codec();
        exported!(
            store,
            "backend",
            "[method]codec.encode",
            interface,
            call_encode(codec, sample, settings, earlier)
        )
    }

    /// The state before the first frame.
    pub(super) fn begin(
        &self,
        store: &mut Store<Guest>,
        codec: ResourceAny,
        head: &Head,
    ) -> Located<Vec<u8>> {
        let interface = self.runner_plugin_backend().codec();
        exported!(store, "backend", "[method]codec.begin", interface, call_begin(codec, head))
    }

    pub(super) fn credentials(
        &self,
        store: &mut Store<Guest>,
        codec: ResourceAny,
    ) -> wasmtime::Result<Credentials> {
        let interface = self.runner_plugin_backend().codec();
        exported!(store, "backend", "[method]codec.credentials", interface, call_credentials(codec))
    }

    pub(super) fn framing(
        &self,
        store: &mut Store<Guest>,
        codec: ResourceAny,
        streaming: bool,
    ) -> wasmtime::Result<Framing> {
        let interface = self.runner_plugin_backend().codec();
        exported!(
            store,
            "backend",
            "[method]codec.framing",
            interface,
            call_framing(codec, streaming)
        )
    }

    pub(super) fn decode(
        &self,
        store: &mut Store<Guest>,
        codec: ResourceAny,
        state: &[u8],
        frames: &Frames,
    ) -> Located<Decoded> {
        let interface = self.runner_plugin_backend().codec();
        exported!(
            store,
            "backend",
            "[method]codec.decode",
            interface,
            call_decode(codec, state, frames)
        )
    }

    pub(super) fn explain(
        &self,
        store: &mut Store<Guest>,
        codec: ResourceAny,
        status: u16,
        body: &[u8],
    ) -> wasmtime::Result<Refusal> {
        let interface = self.runner_plugin_backend().codec();
        exported!(
            store,
            "backend",
            "[method]codec.explain",
            interface,
            call_explain(codec, status, body)
        )
    }
}
