use std::sync::Arc;

use crate::Guid;

macro_rules! providers {
    ($($(#[$meta:meta])* $known:ident $name:literal $guid:literal,)*) => {
        /// Who logs an event: the providers this crate knows, and all others by what the trace says of them.
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        pub enum Provider {
            $($(#[$meta])* $known,)*
            /// Any other provider known by its GUID (ETW).
            Guid(Guid),
            /// Any other provider known by its name (EventPipe).
            Name(Arc<str>),
        }

        static KNOWN: &[Known] = &[$(Known {
            provider: Provider::$known,
            name: $name,
            guid: Guid::from_u128($guid),
        }),*];
    };
}

struct Known {
    provider: Provider,
    name: &'static str,
    guid: Guid,
}

providers! {
    /// `Microsoft-Windows-DotNETRuntime`.
    Runtime "Microsoft-Windows-DotNETRuntime" 0xe13c0d23_ccbc_4e12_931b_d9cc2eee27e4,
    /// `Microsoft-Windows-DotNETRuntimeRundown`: what is alive at the begin or the end of a session.
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
    /// The Windows provider `Microsoft-Windows-Kernel-EventTracing`, which logs user stacks on leaving the kernel.
    EventTracing "Microsoft-Windows-Kernel-EventTracing" 0xb675ec37_bdb6_4648_bc92_f3fdc74d3ca2,
}

impl Provider {
    /// The provider with this GUID.
    pub fn from_guid(guid: Guid) -> Self {
        KNOWN
            .iter()
            .find(|k| k.guid == guid)
            .map_or(Self::Guid(guid), |k| k.provider.clone())
    }

    /// The provider with this name; letter case does not matter for the known ones.
    pub fn from_name(name: &str) -> Self {
        KNOWN
            .iter()
            .find(|k| k.name.eq_ignore_ascii_case(name))
            .map_or_else(|| Self::Name(name.into()), |k| k.provider.clone())
    }

    /// The provider's name, where it is known.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Guid(_) => None,
            Self::Name(name) => Some(name),
            _ => self.known().map(|k| k.name),
        }
    }

    /// The provider's GUID, where it is known.
    pub fn guid(&self) -> Option<Guid> {
        match self {
            Self::Guid(guid) => Some(*guid),
            Self::Name(_) => None,
            _ => self.known().map(|k| k.guid),
        }
    }

    /// The provider whose events have the same ids and layouts: .NET Native's for the runtime's.
    pub(crate) fn canonical(&self) -> &Self {
        match self {
            Self::NativeRuntime => &Self::Runtime,
            other => other,
        }
    }

    fn known(&self) -> Option<&'static Known> {
        KNOWN.iter().find(|k| k.provider == *self)
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
    fn known_providers_go_both_ways() {
        for k in KNOWN {
            assert_eq!(Provider::from_guid(k.guid), k.provider);
            assert_eq!(Provider::from_name(&k.name.to_lowercase()), k.provider);
            assert_eq!(k.provider.name(), Some(k.name));
            assert_eq!(k.provider.guid(), Some(k.guid));
        }
        let other = Guid::from_u128(1);
        assert_eq!(Provider::from_guid(other), Provider::Guid(other));
        assert_eq!(Provider::from_name("Mine"), Provider::Name("Mine".into()));
    }
}
