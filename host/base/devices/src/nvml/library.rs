//! The functions of NVML: the only module with unsafe code. Names, types and numbers are from
//! `nvml.h`.
#![allow(unsafe_code)]

use std::cell::OnceCell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::path::Path;

use crate::reading::Reading;

/// `NVML_SUCCESS`.
const SUCCESS: c_int = 0;

/// `NVML_ERROR_NOT_SUPPORTED`, `NVML_ERROR_NO_PERMISSION` and `NVML_ERROR_FUNCTION_NOT_FOUND`: the
/// device, or the driver, does not have it.
const ABSENT: [c_int; 3] = [3, 4, 13];

/// Room for any text: `NVML_DEVICE_NAME_V2_BUFFER_SIZE` and the UUID's.
const TEXT: usize = 96;

/// `NVML_TEMPERATURE_GPU`, `NVML_CLOCK_SM` and `NVML_CLOCK_MEM`.
const TEMPERATURE_GPU: c_int = 0;
const CLOCK_SM: c_int = 1;
const CLOCK_MEMORY: c_int = 2;

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

type NoArguments = unsafe extern "C" fn() -> c_int;
type ErrorString = unsafe extern "C" fn(c_int) -> *const c_char;
type SystemText = unsafe extern "C" fn(*mut c_char, c_uint) -> c_int;
type Count = unsafe extern "C" fn(*mut c_uint) -> c_int;
type ByIndex = unsafe extern "C" fn(c_uint, *mut *mut c_void) -> c_int;
type DeviceText = unsafe extern "C" fn(*mut c_void, *mut c_char, c_uint) -> c_int;
type DeviceValue<T> = unsafe extern "C" fn(*mut c_void, *mut T) -> c_int;
type DeviceNumberOf = unsafe extern "C" fn(*mut c_void, c_int, *mut c_uint) -> c_int;

/// NVML, from its initialisation to its end.
pub(super) struct Library {
    library: libloading::Library,
    is_ready: bool,
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
        let mut library = Library { library, is_ready: false };
        // SAFETY: the type is right, and the function may be called at any time.
        let code = unsafe { library.function::<NoArguments>("nvmlInit_v2")?() };
        library.check("nvmlInit_v2", code)?;
        library.is_ready = true;
        Ok(library)
    }

    /// A function of the library, if it is there. Older drivers lack some.
    ///
    /// # Safety
    /// `F` must be the type that `nvml.h` gives the function, and it must not be called after the
    /// library is closed.
    unsafe fn function<F: Copy>(&self, name: &'static str) -> Result<F, NvmlError> {
        // SAFETY: the type is right, as the caller promises.
        let found = unsafe { self.library.get::<F>(name) };
        found.map(|symbol| *symbol).map_err(|_| NvmlError::NoFunction(name))
    }

    /// The number of devices, and the handles of all devices that are not lost, by number.
    pub fn devices(&self) -> Result<(u32, Vec<(u32, Handle)>), NvmlError> {
        let (name, mut count) = ("nvmlDeviceGetCount_v2", 0);
        // SAFETY: the type is right, and the pointer is valid for one number.
        let code = unsafe { self.function::<Count>(name)?(&mut count) };
        self.check(name, code)?;
        // SAFETY: the type is right.
        let by_index = unsafe { self.function::<ByIndex>("nvmlDeviceGetHandleByIndex_v2")? };
        let handle = |index| {
            let mut device = std::ptr::null_mut();
            // SAFETY: the pointer is valid for one handle.
            let code = unsafe { by_index(index, &mut device) };
            (code == SUCCESS).then_some((index, Handle(device)))
        };
        Ok((count, (0..count).filter_map(handle).collect()))
    }

    pub fn driver_version(&self) -> Option<String> {
        // SAFETY: the type is right.
        let function = unsafe { self.function::<SystemText>("nvmlSystemGetDriverVersion") }.ok()?;
        // SAFETY: the buffer has the length that is given with it.
        text(|buffer, length| unsafe { function(buffer, length) })
    }

    pub fn name(&self, device: Handle) -> Option<String> {
        // SAFETY: the type is right.
        unsafe { self.device_text("nvmlDeviceGetName", device) }
    }

    pub fn uuid(&self, device: Handle) -> Option<String> {
        // SAFETY: the type is right.
        unsafe { self.device_text("nvmlDeviceGetUUID", device) }
    }

    /// # Safety
    /// The function must be a [`DeviceText`].
    unsafe fn device_text(&self, name: &'static str, device: Handle) -> Option<String> {
        // SAFETY: the type is right, as the caller promises.
        let function = unsafe { self.function::<DeviceText>(name) }.ok()?;
        // SAFETY: the buffer has the length that is given with it, and the handle is NVML's own.
        text(|buffer, length| unsafe { function(device.0, buffer, length) })
    }

    /// Reads a device. Values that the device or the driver lacks are absent. Fails with the first
    /// error if there is no value at all.
    pub fn reading(&self, device: Handle) -> Result<Reading, NvmlError> {
        let error = OnceCell::new();
        // SAFETY: these functions give a number of this type.
        let number = |name| unsafe { self.value::<c_uint>(name, device, &error) }.map(f64::from);
        // SAFETY: likewise.
        let long = |name| unsafe { self.value::<c_ulonglong>(name, device, &error) };
        let of_kind = |name, kind: c_int| {
            let mut number: c_uint = 0;
            // SAFETY: these functions have this type, the pointer is valid for one number, and NVML
            // refuses kinds that it does not know.
            let call = |function: DeviceNumberOf| unsafe { function(device.0, kind, &mut number) };
            // SAFETY: likewise.
            unsafe { self.gives(name, &error, call) }.then_some(number.into())
        };
        let milli = |thousandths: f64| thousandths / 1e3;
        let power_w = number("nvmlDeviceGetPowerUsage").map(milli);
        // SAFETY: the type is right.
        let memory = unsafe { self.value::<Memory>("nvmlDeviceGetMemoryInfo", device, &error) };
        let name = "nvmlDeviceGetUtilizationRates";
        // SAFETY: likewise.
        let utilization = unsafe { self.value::<Utilization>(name, device, &error) };
        let energy = long("nvmlDeviceGetTotalEnergyConsumption");
        let reading = Reading {
            power_w,
            power_limit_w: number("nvmlDeviceGetEnforcedPowerLimit").map(milli),
            energy_j: energy.map(|energy| milli(energy as f64)),
            temperature_c: of_kind("nvmlDeviceGetTemperature", TEMPERATURE_GPU),
            sm_clock_mhz: of_kind("nvmlDeviceGetClockInfo", CLOCK_SM),
            memory_clock_mhz: of_kind("nvmlDeviceGetClockInfo", CLOCK_MEMORY),
            memory_used: memory.as_ref().map(|memory| memory.used),
            memory_total: memory.map(|memory| memory.total),
            utilization: utilization.map(|percent| f64::from(percent.gpu) / 100.0),
            // The second is the name until driver 535.
            throttle: long("nvmlDeviceGetCurrentClocksEventReasons")
                .or_else(|| long("nvmlDeviceGetCurrentClocksThrottleReasons")),
        };
        match error.into_inner() {
            Some(error) if reading == Reading::default() => Err(error),
            _ => Ok(reading),
        }
    }

    /// # Safety
    /// The function must be a [`DeviceValue`] of this type.
    unsafe fn value<T: Default>(
        &self,
        name: &'static str,
        device: Handle,
        error: &OnceCell<NvmlError>,
    ) -> Option<T> {
        let mut value = T::default();
        // SAFETY: the pointer is valid for the value, whose type is laid out as in `nvml.h`, and
        // the handle is NVML's own.
        let call = |function: DeviceValue<T>| unsafe { function(device.0, &mut value) };
        // SAFETY: the type is right, as the caller promises.
        unsafe { self.gives(name, error, call) }.then_some(value)
    }

    /// True if a function exists and its call gives a value. Keeps the first error.
    ///
    /// # Safety
    /// `F` must be the type that `nvml.h` gives the function.
    unsafe fn gives<F: Copy>(
        &self,
        name: &'static str,
        error: &OnceCell<NvmlError>,
        call: impl FnOnce(F) -> c_int,
    ) -> bool {
        // SAFETY: the type is right, as the caller promises.
        let code = unsafe { self.function(name) }.map(call);
        let is_given = |code| self.check(name, code).map_err(|failed| error.set(failed)).is_ok();
        code.is_ok_and(|code| !ABSENT.contains(&code) && is_given(code))
    }

    fn check(&self, function: &'static str, code: c_int) -> Result<(), NvmlError> {
        if code == SUCCESS {
            return Ok(());
        }
        // SAFETY: the type is right.
        let error_string = unsafe { self.function::<ErrorString>("nvmlErrorString") };
        let text = error_string.ok().and_then(|error_string| {
            // SAFETY: it may be called with any number at any time, initialised or not.
            let text = unsafe { error_string(code) };
            // SAFETY: it gives a text that is never freed, or nothing.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
        });
        let message = match text {
            Some(text) => format!("{} (error {code})", clean(text)),
            None => format!("error {code}"),
        };
        Err(NvmlError::Failed { function, message })
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: the type is right.
        let shutdown = unsafe { self.function::<NoArguments>("nvmlShutdown") };
        if let Ok(shutdown) = shutdown
            && self.is_ready
        {
            // SAFETY: NVML was initialised, and nothing calls it any more.
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
