use std::sync::Arc;

use crate::Guid;

macro_rules! providers {
    ($($(#[$meta:meta])* $provider:ident $name:literal $guid:literal,)*) => {
        /// The provider of an event: a built-in one, or another one by the GUID or name in the
        /// trace.
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        pub enum Provider {
            $($(#[$meta])* $provider,)*
            /// Another provider by its GUID (ETW).
            Guid(Guid),
            /// Another provider by its name (EventPipe).
            Name(Arc<str>),
        }

        static BUILT_IN: &[BuiltIn] = &[$(BuiltIn {
            provider: Provider::$provider,
            name: $name,
            guid: Guid::from_u128($guid),
        }),*];
    };
}

/// A provider whose name and GUID are both known.
struct BuiltIn {
    provider: Provider,
    name: &'static str,
    guid: Guid,
}

providers! {
    /// `Microsoft-Windows-DotNETRuntime`.
    Runtime "Microsoft-Windows-DotNETRuntime" 0xe13c0d23_ccbc_4e12_931b_d9cc2eee27e4,
    /// `Microsoft-Windows-DotNETRuntimeRundown`: what is alive when a session starts or ends.
    Rundown "Microsoft-Windows-DotNETRuntimeRundown" 0xa669021c_c450_4609_a035_5af59af4df18,
    /// `Microsoft-Windows-DotNETRuntimePrivate`.
    Private "Microsoft-Windows-DotNETRuntimePrivate" 0x763fd754_7086_4dfe_95eb_c01a46faf4ca,
    /// `Microsoft-Windows-DotNETRuntimeStress`.
    Stress "Microsoft-Windows-DotNETRuntimeStress" 0xcc2bcbba_16b6_4cf3_8990_d74c2e8af500,
    /// .NET Native's twin of the runtime provider, with the same event ids.
    NativeRuntime "Microsoft-Windows-DotNETRuntimeNative" 0x47c3ba0c_77f1_4eb0_8d4d_aef447f16a85,
    /// `Microsoft-DotNETCore-SampleProfiler`.
    SampleProfiler "Microsoft-DotNETCore-SampleProfiler" 0x3c530d44_97ae_513a_1e6d_783e8f8e03a9,
    /// `Microsoft-DotNETCore-EventPipe`.
    EventPipe "Microsoft-DotNETCore-EventPipe" 0x92f528a6_f5b8_5160_a7ee_b33da7739e29,
    /// `Universal.System`: processes, mappings and symbols of nettrace V6 recorders.
    UniversalSystem "Universal.System" 0x8c107b6c_79f8_5231_4de6_2a0e20a3f562,
    /// `Universal.Events`: samples of nettrace V6 recorders.
    UniversalEvents "Universal.Events" 0xbc5e5d63_9799_5873_33d9_fba8316cef71,
    /// The Windows provider `Microsoft-Windows-Kernel-EventTracing`, which logs user stacks on
    /// leaving the kernel.
    EventTracing "Microsoft-Windows-Kernel-EventTracing" 0xb675ec37_bdb6_4648_bc92_f3fdc74d3ca2,
    /// The Windows provider of processes, threads and images, for sessions without the kernel
    /// logger.
    KernelProcess "Microsoft-Windows-Kernel-Process" 0x22fb2cd6_0e7a_422b_a0c7_2fad1fd0e716,
    /// The Windows provider of TCP and UDP transfers.
    KernelNetwork "Microsoft-Windows-Kernel-Network" 0x7dd42a49_5329_4832_8dfd_43d979153a88,
    /// The Windows provider of HTTP.sys: requests, connections, TLS.
    HttpService "Microsoft-Windows-HttpService" 0xdd5ef90a_6398_47a4_ad34_4dcecdef795f,
    /// .NET 11's `System.Runtime.CompilerServices.AsyncProfilerEventSource`: buffers of async calls,
    /// which are not decoded.
    AsyncProfiler "System.Runtime.CompilerServices.AsyncProfilerEventSource" 0x7892f2f8_f81d_50d6_aea7_594d846c2274,
}

impl Provider {
    /// Returns the provider with a GUID.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_events::Provider;
    ///
    /// let provider = Provider::from_name("Microsoft-Windows-DotNETRuntime");
    /// assert_eq!(provider, Provider::Runtime);
    /// assert_eq!(Provider::from_guid(provider.guid().unwrap()), Provider::Runtime);
    /// ```
    pub fn from_guid(guid: Guid) -> Self {
        BUILT_IN
            .iter()
            .find(|b| b.guid == guid)
            .map_or(Self::Guid(guid), |b| b.provider.clone())
    }

    /// Returns the provider with a name. Built-in names match in any letter case.
    pub fn from_name(name: &str) -> Self {
        BUILT_IN
            .iter()
            .find(|b| b.name.eq_ignore_ascii_case(name))
            .map_or_else(|| Self::Name(name.into()), |b| b.provider.clone())
    }

    /// Returns the provider's name, unless only its GUID is known.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Guid(_) => None,
            Self::Name(name) => Some(name),
            _ => self.built_in().map(|b| b.name),
        }
    }

    /// Returns the provider's GUID, unless only its name is known.
    pub fn guid(&self) -> Option<Guid> {
        match self {
            Self::Guid(guid) => Some(*guid),
            Self::Name(_) => None,
            _ => self.built_in().map(|b| b.guid),
        }
    }

    /// Returns the provider that defines the ids and layouts: the runtime's for .NET Native's
    /// provider.
    pub(crate) fn canonical(&self) -> &Self {
        match self {
            Self::NativeRuntime => &Self::Runtime,
            other => other,
        }
    }

    fn built_in(&self) -> Option<&'static BuiltIn> {
        BUILT_IN.iter().find(|b| b.provider == *self)
    }
}

impl std::fmt::Display for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Guid(guid) => guid.fmt(f),
            _ => f.write_str(self.name().unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_providers_have_a_name_and_a_guid() {
        for b in BUILT_IN {
            assert_eq!(Provider::from_guid(b.guid), b.provider);
            assert_eq!(Provider::from_name(&b.name.to_lowercase()), b.provider);
            assert_eq!(b.provider.name(), Some(b.name));
            assert_eq!(b.provider.guid(), Some(b.guid));
        }
        let other = Guid::from_u128(1);
        assert_eq!(Provider::from_guid(other), Provider::Guid(other));
        assert_eq!(Provider::from_name("Mine"), Provider::Name("Mine".into()));
    }
}
