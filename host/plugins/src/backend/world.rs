//! A backend's instance, in the version of the contract that it was built for.

use wasmtime::Store;
use wasmtime::component::{Linker, ResourceAny};

use super::super::bindings::backend_world::{BackendPlugin, BackendPluginPre};
use super::super::bindings::v0_1::backend_world as v0_1;
use super::super::bindings::v0_2::backend_world as v0_2;
use super::super::bindings::{log, types};
use super::super::contract::{self, v0_1 as oldest, v0_2 as older};
use super::super::instance::{Configured, Located, Reopen, World, of_each_version};
use super::super::sandbox::{Guest, GuestData};
use super::wit::{Control, Credentials, Decoded, Earlier, Frames, Framing, Head};
use super::wit::{Reading, Refusal, Request, ServedModel};
use model::plugin::Kind;
use model::plugin::Limits;

/// A backend's instance.
pub enum BackendWorld {
    /// Of 0.1.0.
    V0_1(v0_1::BackendPlugin),
    /// Of 0.2.0.
    V0_2(v0_2::BackendPlugin),
    /// Of 0.3.0.
    V0_3(BackendPlugin),
}

impl World for BackendWorld {
    const KIND: Kind = Kind::Backend;

    of_each_version!(
        v0_1::BackendPluginPre<Guest>,
        v0_2::BackendPluginPre<Guest>,
        BackendPluginPre<Guest>
    );

    fn limit_ms(limits: &Limits) -> u64 {
        limits.backend_call_ms
    }

    fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
        contract::link_older(linker)?;
        types::add_to_linker::<Guest, GuestData>(linker, |guest| guest)?;
        log::add_to_linker::<Guest, GuestData>(linker, |guest| guest)
    }
}

impl Reopen for BackendWorld {
    fn open(&self, store: &mut Store<Guest>, from: &Configured<Self>) -> Located<ResourceAny> {
        match self {
            Self::V0_1(plugin) => {
                let codec = plugin.runner_plugin_backend().codec();
                Ok(codec.call_open(store, &from.config)?.map_err(Into::into))
            }
            Self::V0_2(plugin) => {
                let codec = plugin.runner_plugin_backend().codec();
                Ok(codec.call_open(store, &from.config)?.map_err(Into::into))
            }
            Self::V0_3(plugin) => {
                let codec = plugin.runner_plugin_backend().codec();
                codec.call_open(store, &from.config)
            }
        }
    }
}

/// The calls of `codec`, as in the contract.
impl BackendWorld {
    pub(super) fn default_url(
        &self,
        store: &mut Store<Guest>,
        codec: ResourceAny,
    ) -> wasmtime::Result<String> {
        match self {
            Self::V0_1(plugin) => {
                let interface = plugin.runner_plugin_backend().codec();
                interface.call_default_url(store, codec)
            }
            Self::V0_2(plugin) => {
                let interface = plugin.runner_plugin_backend().codec();
                interface.call_default_url(store, codec)
            }
            Self::V0_3(plugin) => {
                let interface = plugin.runner_plugin_backend().codec();
                interface.call_default_url(store, codec)
            }
        }
    }

    pub(super) fn control(
        &self,
        store: &mut Store<Guest>,
        codec: ResourceAny,
        what: Control,
    ) -> wasmtime::Result<Option<Request>> {
        match (self, what) {
            (Self::V0_1(plugin), Control::ListModels) => {
                let interface = plugin.runner_plugin_backend().codec();
                Ok(interface.call_list_models(store, codec)?.map(Into::into))
            }
            (Self::V0_1(_), Control::Health | Control::FlushCache | Control::Metrics) => Ok(None),
            (Self::V0_2(plugin), what) => {
                let interface = plugin.runner_plugin_backend().codec();
                let said = interface.call_control(store, codec, what.into())?;
                Ok(said.map(Into::into))
            }
            (Self::V0_3(plugin), what) => {
                let interface = plugin.runner_plugin_backend().codec();
                interface.call_control(store, codec, what)
            }
        }
    }

    pub(super) fn read_models(
        &self,
        store: &mut Store<Guest>,
        codec: ResourceAny,
        body: &[u8],
    ) -> Located<Vec<ServedModel>> {
        let named = |names: Vec<String>| names.into_iter().map(older::served).collect();
        match self {
            Self::V0_1(plugin) => {
                let interface = plugin.runner_plugin_backend().codec();
                let said = interface.call_read_models(store, codec, body)?;
                Ok(said.map(named).map_err(Into::into))
            }
            Self::V0_2(plugin) => {
                let interface = plugin.runner_plugin_backend().codec();
                let said = interface.call_read_models(store, codec, body)?;
                Ok(said.map(named).map_err(Into::into))
            }
            Self::V0_3(plugin) => {
                let interface = plugin.runner_plugin_backend().codec();
                interface.call_read_models(store, codec, body)
            }
        }
    }

    pub(super) fn read_metrics(
        &self,
        store: &mut Store<Guest>,
        codec: ResourceAny,
        body: &[u8],
    ) -> Located<Vec<Reading>> {
        match self {
            Self::V0_1(_) => Ok(Ok(Vec::new())),
            Self::V0_2(plugin) => {
                let interface = plugin.runner_plugin_backend().codec();
                let said = interface.call_read_metrics(store, codec, body)?;
                let readings = said.map_err(types::Error::from);
                Ok(readings.map(|readings| readings.into_iter().map(Into::into).collect()))
            }
            Self::V0_3(plugin) => {
                let interface = plugin.runner_plugin_backend().codec();
                interface.call_read_metrics(store, codec, body)
            }
        }
    }

    pub(super) fn encode(
        &self,
        store: &mut Store<Guest>,
        codec: ResourceAny,
        sample: &types::Sample,
        settings: &types::Settings,
        earlier: Option<&Earlier>,
    ) -> Located<Request> {
        match self {
            Self::V0_1(plugin) => {
                let translated = oldest::sample(sample, settings)
                    .and_then(|older| Ok((older, oldest::settings(settings, sample)?)));
                let (sample, settings) = match translated {
                    Ok(translated) => translated,
                    Err(error) => return Ok(Err(error)),
                };
                let interface = plugin.runner_plugin_backend().codec();
                let said = interface.call_encode(store, codec, &sample, &settings)?;
                Ok(said.map(Into::into).map_err(Into::into))
            }
            Self::V0_2(plugin) => {
                let sample = match older::sample(sample) {
                    Ok(sample) => sample,
                    Err(error) => return Ok(Err(error)),
                };
                let interface = plugin.runner_plugin_backend().codec();
                let said = interface.call_encode(store, codec, &sample, &settings.into())?;
                Ok(said.map(Into::into).map_err(Into::into))
            }
            Self::V0_3(plugin) => {
                let interface = plugin.runner_plugin_backend().codec();
                interface.call_encode(store, codec, sample, settings, earlier)
            }
        }
    }

    /// The state before the first frame; empty from a backend that is older than this call.
    pub(super) fn begin(
        &self,
        store: &mut Store<Guest>,
        codec: ResourceAny,
        head: &Head,
    ) -> Located<Vec<u8>> {
        match self {
            Self::V0_1(_) | Self::V0_2(_) => Ok(Ok(Vec::new())),
            Self::V0_3(plugin) => {
                let interface = plugin.runner_plugin_backend().codec();
                interface.call_begin(store, codec, head)
            }
        }
    }

    pub(super) fn credentials(
        &self,
        store: &mut Store<Guest>,
        codec: ResourceAny,
    ) -> wasmtime::Result<Credentials> {
        match self {
            Self::V0_1(_) | Self::V0_2(_) => Ok(older::credentials()),
            Self::V0_3(plugin) => {
                let interface = plugin.runner_plugin_backend().codec();
                interface.call_credentials(store, codec)
            }
        }
    }

    pub(super) fn framing(
        &self,
        store: &mut Store<Guest>,
        codec: ResourceAny,
        streaming: bool,
    ) -> wasmtime::Result<Framing> {
        match self {
            Self::V0_1(plugin) => {
                let interface = plugin.runner_plugin_backend().codec();
                Ok(interface.call_framing(store, codec, streaming)?.into())
            }
            Self::V0_2(plugin) => {
                let interface = plugin.runner_plugin_backend().codec();
                Ok(interface.call_framing(store, codec, streaming)?.into())
            }
            Self::V0_3(plugin) => {
                let interface = plugin.runner_plugin_backend().codec();
                interface.call_framing(store, codec, streaming)
            }
        }
    }

    pub(super) fn decode(
        &self,
        store: &mut Store<Guest>,
        codec: ResourceAny,
        state: &[u8],
        frames: &Frames,
    ) -> Located<Decoded> {
        match self {
            Self::V0_1(plugin) => {
                let frames = oldest::frames(frames);
                let interface = plugin.runner_plugin_backend().codec();
                let said = interface.call_decode(store, codec, state, &frames)?;
                Ok(said.map(Into::into).map_err(Into::into))
            }
            Self::V0_2(plugin) => {
                let frames = older::frames(frames);
                let interface = plugin.runner_plugin_backend().codec();
                let said = interface.call_decode(store, codec, state, &frames)?;
                Ok(said.map(Into::into).map_err(Into::into))
            }
            Self::V0_3(plugin) => {
                let interface = plugin.runner_plugin_backend().codec();
                interface.call_decode(store, codec, state, frames)
            }
        }
    }

    pub(super) fn explain(
        &self,
        store: &mut Store<Guest>,
        codec: ResourceAny,
        status: u16,
        body: &[u8],
    ) -> wasmtime::Result<Refusal> {
        match self {
            Self::V0_1(plugin) => {
                let interface = plugin.runner_plugin_backend().codec();
                Ok(oldest::refusal(
                    interface.call_explain(store, codec, status, body)?,
                ))
            }
            Self::V0_2(plugin) => {
                let interface = plugin.runner_plugin_backend().codec();
                Ok(interface.call_explain(store, codec, status, body)?.into())
            }
            Self::V0_3(plugin) => {
                let interface = plugin.runner_plugin_backend().codec();
                interface.call_explain(store, codec, status, body)
            }
        }
    }
}
