//! The functions of NVML: the only module with unsafe code. Names, types and numbers are from
//! `nvml.h`.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::path::Path;

/// `NVML_SUCCESS`.
const SUCCESS: c_int = 0;

/// `NVML_ERROR_NOT_SUPPORTED`, `NVML_ERROR_NO_PERMISSION` and `NVML_ERROR_FUNCTION_NOT_FOUND`: the
/// device, or the driver, does not have it.
const ABSENT: [c_int; 3] = [3, 4, 13];

/// Room for any text: `NVML_DEVICE_NAME_V2_BUFFER_SIZE` and the UUID's.
const TEXT: usize = 96;

/// `NVML_TEMPERATURE_GPU`.
const TEMPERATURE_GPU: c_int = 0;

/// The reason why devices cannot be read through NVML.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NvmlError {
    #[error("NVML cannot be loaded ({0}); is NVIDIA's driver installed?")]
    NoLibrary(String),
    /// The program is linked with nothing, and can load nothing.
    #[error(
        "NVML cannot be loaded by this program, which is static so that it runs on every Linux; \
         give --device-metrics the URL of DCGM's exporter, or install the program for glibc \
         (see \"Installing\" in the guide)"
    )]
    Static,
    /// The library is not NVML, or of an unknown version.
    #[error("the library for NVML has no function `{0}`")]
    NoFunction(&'static str),
    #[error("NVML's `{function}` failed: {message}")]
    Failed { function: &'static str, message: String },
    #[error("NVML knows {count} devices, and none of them is chosen")]
    NoDevice { count: u32 },
}

/// `nvmlDevice_t`: an opaque pointer, which stays valid until NVML is shut down.
#[derive(Clone, Copy)]
pub(super) struct Handle(*mut c_void);

// SAFETY: NVML's functions may be called from any thread at any time, and the pointer is nothing
// but their argument.
unsafe impl Send for Handle {}

/// `nvmlClockType_t`.
#[derive(Clone, Copy)]
pub(super) enum Clock {
    Sm = 1,
    Memory = 2,
}

/// `nvmlMemory_t`.
#[repr(C)]
#[derive(Default)]
struct Memory {
    total: c_ulonglong,
    free: c_ulonglong,
    used: c_ulonglong,
}

/// `nvmlUtilization_t`, in percent.
#[repr(C)]
#[derive(Default)]
struct Utilization {
    gpu: c_uint,
    memory: c_uint,
}

type Init = unsafe extern "C" fn() -> c_int;
type ErrorString = unsafe extern "C" fn(c_int) -> *const c_char;
type SystemText = unsafe extern "C" fn(*mut c_char, c_uint) -> c_int;
type Count = unsafe extern "C" fn(*mut c_uint) -> c_int;
type ByIndex = unsafe extern "C" fn(c_uint, *mut *mut c_void) -> c_int;
type DeviceText = unsafe extern "C" fn(*mut c_void, *mut c_char, c_uint) -> c_int;
type DeviceValue<T> = unsafe extern "C" fn(*mut c_void, *mut T) -> c_int;
type DeviceNumberOf = unsafe extern "C" fn(*mut c_void, c_int, *mut c_uint) -> c_int;

/// NVML, from its initialisation to its end. Of the functions, only the first are in every version.
pub(super) struct Library {
    shutdown: Option<Init>,
    error_string: Option<ErrorString>,
    count: Count,
    by_index: ByIndex,
    driver_version: Option<SystemText>,
    name: Option<DeviceText>,
    uuid: Option<DeviceText>,
    power: Option<DeviceValue<c_uint>>,
    power_limit: Option<DeviceValue<c_uint>>,
    energy: Option<DeviceValue<c_ulonglong>>,
    temperature: Option<DeviceNumberOf>,
    clock: Option<DeviceNumberOf>,
    memory: Option<DeviceValue<Memory>>,
    utilization: Option<DeviceValue<Utilization>>,
    throttle: Option<DeviceValue<c_ulonglong>>,
    /// The functions live as long as this.
    _library: libloading::Library,
}

impl Library {
    pub fn open(path: &Path) -> Result<Self, NvmlError> {
        if cfg!(all(target_env = "musl", target_feature = "crt-static")) {
            return Err(NvmlError::Static);
        }
        // SAFETY: loading a library runs its initialisers. The path is the NVIDIA driver's, or the
        // caller answers for it.
        let library = unsafe { libloading::Library::new(path) };
        let library = library.map_err(|error| NvmlError::NoLibrary(error.to_string()))?;
        /// A function of the library, if it is there.
        ///
        /// # Safety
        /// `F` must be the type that `nvml.h` gives the function, and it must not be called after
        /// the library is closed.
        unsafe fn function<F: Copy>(library: &libloading::Library, name: &str) -> Option<F> {
            // SAFETY: the type is right, as the caller promises.
            let found = unsafe { library.get::<F>(name) };
            found.ok().map(|symbol| *symbol)
        }
        // SAFETY: the types are from `nvml.h`, and the functions are kept beside the library.
        let (init, loaded) = unsafe {
            let get = &library;
            let needed = NvmlError::NoFunction;
            let init: Init = function(get, "nvmlInit_v2").ok_or(needed("nvmlInit_v2"))?;
            let loaded = Library {
                shutdown: function(get, "nvmlShutdown"),
                error_string: function(get, "nvmlErrorString"),
                count: function(get, "nvmlDeviceGetCount_v2")
                    .ok_or(needed("nvmlDeviceGetCount_v2"))?,
                by_index: function(get, "nvmlDeviceGetHandleByIndex_v2")
                    .ok_or(needed("nvmlDeviceGetHandleByIndex_v2"))?,
                driver_version: function(get, "nvmlSystemGetDriverVersion"),
                name: function(get, "nvmlDeviceGetName"),
                uuid: function(get, "nvmlDeviceGetUUID"),
                power: function(get, "nvmlDeviceGetPowerUsage"),
                power_limit: function(get, "nvmlDeviceGetEnforcedPowerLimit"),
                energy: function(get, "nvmlDeviceGetTotalEnergyConsumption"),
                temperature: function(get, "nvmlDeviceGetTemperature"),
                clock: function(get, "nvmlDeviceGetClockInfo"),
                memory: function(get, "nvmlDeviceGetMemoryInfo"),
                utilization: function(get, "nvmlDeviceGetUtilizationRates"),
                // The second is the name until driver 535.
                throttle: function(get, "nvmlDeviceGetCurrentClocksEventReasons")
                    .or_else(|| function(get, "nvmlDeviceGetCurrentClocksThrottleReasons")),
                _library: library,
            };
            (init, loaded)
        };
        // SAFETY: it takes nothing, and may be called at any time.
        let code = unsafe { init() };
        match loaded.check("nvmlInit_v2", code) {
            Ok(()) => Ok(loaded),
            Err(error) => {
                // A library that was not initialised must not be shut down.
                let mut loaded = loaded;
                loaded.shutdown = None;
                Err(error)
            }
        }
    }

    pub fn count(&self) -> Result<u32, NvmlError> {
        let mut count = 0;
        // SAFETY: the pointer is valid for one number.
        let code = unsafe { (self.count)(&mut count) };
        self.check("nvmlDeviceGetCount_v2", code)?;
        Ok(count)
    }

    pub fn device(&self, index: u32) -> Result<Handle, NvmlError> {
        let mut device = std::ptr::null_mut();
        // SAFETY: the pointer is valid for one handle.
        let code = unsafe { (self.by_index)(index, &mut device) };
        self.check("nvmlDeviceGetHandleByIndex_v2", code)?;
        Ok(Handle(device))
    }

    pub fn driver_version(&self) -> Option<String> {
        let function = self.driver_version?;
        // SAFETY: the buffer has the length that is given with it.
        text(|buffer, length| unsafe { function(buffer, length) })
    }

    pub fn name(&self, device: Handle) -> Option<String> {
        let function = self.name?;
        // SAFETY: the buffer has the length that is given with it, and the handle is NVML's own.
        text(|buffer, length| unsafe { function(device.0, buffer, length) })
    }

    pub fn uuid(&self, device: Handle) -> Option<String> {
        let function = self.uuid?;
        // SAFETY: as for the name.
        text(|buffer, length| unsafe { function(device.0, buffer, length) })
    }

    /// Reads the power that it draws, in milliwatts.
    pub fn power(&self, device: Handle) -> Result<Option<u64>, NvmlError> {
        let power = self.value("nvmlDeviceGetPowerUsage", self.power, device)?;
        Ok(power.map(u64::from))
    }

    /// Reads its power limit, in milliwatts.
    pub fn power_limit(&self, device: Handle) -> Result<Option<u64>, NvmlError> {
        let limit = self.value("nvmlDeviceGetEnforcedPowerLimit", self.power_limit, device)?;
        Ok(limit.map(u64::from))
    }

    /// Reads the energy that it has drawn since the driver was loaded, in millijoules.
    pub fn energy(&self, device: Handle) -> Result<Option<u64>, NvmlError> {
        self.value("nvmlDeviceGetTotalEnergyConsumption", self.energy, device)
    }

    /// The bits of `nvmlClocksEventReasons`.
    pub fn throttle(&self, device: Handle) -> Result<Option<u64>, NvmlError> {
        self.value("nvmlDeviceGetCurrentClocksEventReasons", self.throttle, device)
    }

    /// Its temperature, in degrees Celsius.
    pub fn temperature(&self, device: Handle) -> Result<Option<u64>, NvmlError> {
        let function = self.temperature;
        self.number_of("nvmlDeviceGetTemperature", function, device, TEMPERATURE_GPU)
    }

    pub fn clock(&self, device: Handle, clock: Clock) -> Result<Option<u64>, NvmlError> {
        self.number_of("nvmlDeviceGetClockInfo", self.clock, device, clock as c_int)
    }

    /// Its memory in use and its whole memory, in bytes.
    pub fn memory(&self, device: Handle) -> Result<Option<(u64, u64)>, NvmlError> {
        let memory = self.value("nvmlDeviceGetMemoryInfo", self.memory, device)?;
        Ok(memory.map(|memory| (memory.used, memory.total)))
    }

    /// The share of the time in which anything ran, in percent.
    pub fn utilization(&self, device: Handle) -> Result<Option<u64>, NvmlError> {
        let utilization = self.value("nvmlDeviceGetUtilizationRates", self.utilization, device)?;
        Ok(utilization.map(|utilization| utilization.gpu.into()))
    }

    fn value<T: Default>(
        &self,
        name: &'static str,
        function: Option<DeviceValue<T>>,
        device: Handle,
    ) -> Result<Option<T>, NvmlError> {
        let Some(function) = function else {
            return Ok(None);
        };
        let mut value = T::default();
        // SAFETY: the pointer is valid for the value, whose type is laid out as in `nvml.h`, and
        // the handle is NVML's own.
        let code = unsafe { function(device.0, &mut value) };
        Ok(self.known(name, code)?.then_some(value))
    }

    fn number_of(
        &self,
        name: &'static str,
        function: Option<DeviceNumberOf>,
        device: Handle,
        kind: c_int,
    ) -> Result<Option<u64>, NvmlError> {
        let Some(function) = function else {
            return Ok(None);
        };
        let mut number = 0;
        // SAFETY: as for a number; NVML refuses kinds that it does not know.
        let code = unsafe { function(device.0, kind, &mut number) };
        Ok(self.known(name, code)?.then_some(number.into()))
    }

    /// True if a function gave a value; false if its device does not support it.
    fn known(&self, function: &'static str, code: c_int) -> Result<bool, NvmlError> {
        if ABSENT.contains(&code) { Ok(false) } else { self.check(function, code).map(|()| true) }
    }

    fn check(&self, function: &'static str, code: c_int) -> Result<(), NvmlError> {
        if code == SUCCESS {
            return Ok(());
        }
        let message = self.error_string.and_then(|error_string| {
            // SAFETY: it may be called with any number at any time, initialised or not.
            let text = unsafe { error_string(code) };
            // SAFETY: it gives a text that is never freed, or nothing.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
        });
        let message = match message {
            Some(text) => format!("{} (error {code})", clean(text)),
            None => format!("error {code}"),
        };
        Err(NvmlError::Failed { function, message })
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        if let Some(shutdown) = self.shutdown {
            // SAFETY: it was initialised, and nothing calls it any more.
            unsafe { shutdown() };
        }
    }
}

/// The text that a function writes into a buffer; none if it fails.
fn text(write: impl FnOnce(*mut c_char, c_uint) -> c_int) -> Option<String> {
    // One byte more than the function may write, so that the text always ends.
    let mut buffer = [0u8; TEXT + 1];
    let code = write(buffer.as_mut_ptr().cast(), TEXT as c_uint);
    let text = CStr::from_bytes_until_nul(&buffer).ok()?;
    (code == SUCCESS && !text.is_empty()).then(|| clean(text))
}

fn clean(text: &CStr) -> String {
    model::clean::line(&text.to_string_lossy()).into_owned()
}
