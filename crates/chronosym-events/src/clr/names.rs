//! Names of the runtime's events that have no typed decoder, as its manifest has them.

use crate::Provider;

/// The published name of an event that has no typed decoder.
pub(crate) fn name_only(provider: &Provider, id: u32) -> Option<&'static str> {
    let names = names_of(provider);
    let at = names.binary_search_by_key(&id, |(id, _)| *id).ok()?;
    names.get(at).map(|(_, name)| *name)
}

/// The id of an event that has no typed decoder, by its published name.
pub(crate) fn id_only(provider: &Provider, name: &str) -> Option<u32> {
    let found = names_of(provider).iter().find(|(_, own)| *own == name);
    found.map(|(id, _)| *id)
}

fn names_of(provider: &Provider) -> Names {
    match provider.canonical() {
        Provider::Runtime => RUNTIME,
        Provider::Rundown => RUNDOWN,
        Provider::Private => PRIVATE,
        Provider::Stress => STRESS,
        Provider::SampleProfiler => SAMPLE_PROFILER,
        _ => &[],
    }
}

type Names = &'static [(u32, &'static str)];

#[rustfmt::skip]
static RUNDOWN: Names = &[
    (10, "GCSettingsRundown"), (155, "AssemblyDCStart"), (156, "AssemblyDCEnd"), (159, "ThreadDC"), (160, "ModuleRangeDCStart"),
    (161, "ModuleRangeDCEnd"), (280, "TieredCompilationSettingsDCStart"), (300, "ExecutionCheckpointDCEnd"),
];

static STRESS: Names = &[(0, "StressLogEvent"), (1, "CLRStackWalkStress")];

static SAMPLE_PROFILER: Names = &[(1, "ThreadStackWalk")];

#[rustfmt::skip]
static RUNTIME: Names = &[
    (1, "GCStart"), (2, "GCEnd"), (3, "GCRestartEEEnd"), (4, "GCHeapStats"), (5, "GCCreateSegment"), (6, "GCFreeSegment"),
    (7, "GCRestartEEBegin"), (8, "GCSuspendEEEnd"), (9, "GCSuspendEEBegin"), (10, "GCAllocationTick"), (11, "GCCreateConcurrentThread"),
    (12, "GCTerminateConcurrentThread"), (13, "GCFinalizersEnd"), (14, "GCFinalizersBegin"), (16, "GCBulkRootEdge"),
    (17, "GCBulkRootConditionalWeakTableElementEdge"), (18, "GCBulkNode"), (19, "GCBulkEdge"), (20, "GCSampledObjectAllocationHigh"),
    (21, "GCBulkSurvivingObjectRanges"), (22, "GCBulkMovedObjectRanges"), (23, "GCGenerationRange"), (25, "GCMarkStackRoots"),
    (26, "GCMarkFinalizeQueueRoots"), (27, "GCMarkHandles"), (28, "GCMarkOlderGenerationRoots"), (29, "FinalizeObject"),
    (30, "SetGCHandle"), (31, "DestroyGCHandle"), (32, "GCSampledObjectAllocationLow"), (33, "PinObjectAtGCTime"), (35, "GCTriggered"),
    (36, "GCBulkRootCCW"), (37, "GCBulkRCW"), (38, "GCBulkRootStaticVar"), (39, "GCDynamicEvent"), (40, "WorkerThreadCreate"),
    (41, "WorkerThreadTerminate"), (42, "WorkerThreadRetire"), (43, "WorkerThreadUnretire"), (44, "IOThreadCreate"),
    (45, "IOThreadTerminate"), (46, "IOThreadRetire"), (47, "IOThreadUnretire"), (48, "ThreadpoolSuspensionSuspendThread"),
    (49, "ThreadpoolSuspensionResumeThread"), (50, "ThreadPoolWorkerThreadStart"), (51, "ThreadPoolWorkerThreadStop"),
    (52, "ThreadPoolWorkerThreadRetirementStart"), (53, "ThreadPoolWorkerThreadRetirementStop"),
    (54, "ThreadPoolWorkerThreadAdjustmentSample"), (55, "ThreadPoolWorkerThreadAdjustmentAdjustment"),
    (56, "ThreadPoolWorkerThreadAdjustmentStats"), (57, "ThreadPoolWorkerThreadWait"), (58, "YieldProcessorMeasurement"),
    (59, "ThreadPoolMinMaxThreads"), (60, "ThreadPoolWorkingThreadCount"), (61, "ThreadPoolEnqueue"), (62, "ThreadPoolDequeue"),
    (63, "ThreadPoolIOEnqueue"), (64, "ThreadPoolIODequeue"), (65, "ThreadPoolIOPack"), (70, "ThreadCreating"), (71, "ThreadRunning"),
    (73, "TypeLoadStart"), (74, "TypeLoadStop"), (80, "ExceptionThrown"), (81, "ContentionStart"), (83, "AppDomainMemAllocated"),
    (84, "AppDomainMemSurvived"), (85, "ThreadCreated"), (86, "ThreadTerminated"), (87, "ThreadDomainEnter"), (90, "ContentionLockCreated"),
    (91, "ContentionStop"), (146, "MemoryAllocatedForJitCode"), (154, "AssemblyLoad"), (155, "AssemblyUnload"), (158, "ModuleRangeLoad"),
    (160, "R2RGetEntryPointStart"), (181, "StrongNameVerificationStart"), (182, "StrongNameVerificationStop"),
    (183, "AuthenticodeVerificationStart"), (184, "AuthenticodeVerificationStop"), (185, "MethodJitInliningSucceeded"),
    (186, "MethodJitInliningFailedAnsi"), (188, "MethodJitTailCallSucceeded"), (189, "MethodJitTailCallFailedAnsi"),
    (191, "MethodJitTailCallFailed"), (192, "MethodJitInliningFailed"), (200, "IncreaseMemoryPressure"), (201, "DecreaseMemoryPressure"),
    (202, "GCMarkWithType"), (203, "GCJoin"), (204, "GCPerHeapHistory"), (205, "GCGlobalHeapHistory"), (206, "GenAwareBegin"),
    (207, "GenAwareEnd"), (208, "GCLOHCompact"), (209, "GCFitBucketInfo"), (240, "DebugIPCEventStart"), (241, "DebugIPCEventEnd"),
    (242, "DebugExceptionProcessingStart"), (243, "DebugExceptionProcessingEnd"), (250, "ExceptionCatchStart"), (251, "ExceptionCatchStop"),
    (252, "ExceptionFinallyStart"), (253, "ExceptionFinallyStop"), (254, "ExceptionFilterStart"), (255, "ExceptionFilterStop"),
    (256, "ExceptionThrownStop"), (270, "EventSource"), (280, "TieredCompilationSettings"), (281, "TieredCompilationPause"),
    (282, "TieredCompilationResume"), (283, "TieredCompilationBackgroundJitStart"), (284, "TieredCompilationBackgroundJitStop"),
    (290, "AssemblyLoadStart"), (291, "AssemblyLoadStop"), (292, "ResolutionAttempted"),
    (293, "AssemblyLoadContextResolvingHandlerInvoked"), (294, "AppDomainAssemblyResolveHandlerInvoked"),
    (295, "AssemblyLoadFromResolveHandlerInvoked"), (296, "KnownPathProbed"), (297, "JitInstrumentationData"),
    (298, "JitInstrumentationDataVerbose"), (299, "ProfilerMessage"), (300, "ExecutionCheckpoint"), (301, "WaitHandleWaitStart"),
    (302, "WaitHandleWaitStop"), (303, "AllocationSampled"),
];

#[rustfmt::skip]
static PRIVATE: Names = &[
    (1, "GCDecision"), (2, "GCSettings"), (3, "GCOptimized"), (4, "GCPerHeapHistory"), (5, "GCGlobalHeapHistory"), (6, "GCJoin"),
    (7, "PrvGCMarkStackRoots"), (8, "PrvGCMarkFinalizeQueueRoots"), (9, "PrvGCMarkHandles"), (10, "PrvGCMarkCards"), (11, "BGCBegin"),
    (12, "BGC1stNonConEnd"), (13, "BGC1stConEnd"), (14, "BGC2ndNonConBegin"), (15, "BGC2ndNonConEnd"), (16, "BGC2ndConBegin"),
    (17, "BGC2ndConEnd"), (18, "BGCPlanEnd"), (19, "BGCSweepEnd"), (20, "BGCDrainMark"), (21, "BGCRevisit"), (22, "BGCOverflow"),
    (23, "BGCAllocWaitBegin"), (24, "BGCAllocWaitEnd"), (25, "GCFullNotify"), (26, "BGC1stSweepEnd"), (80, "EEStartupStart"),
    (81, "EEStartupEnd"), (82, "EEConfigSetup"), (83, "EEConfigSetupEnd"), (84, "LdSysBases"), (85, "LdSysBasesEnd"), (86, "ExecExe"),
    (87, "ExecExeEnd"), (88, "Main"), (89, "MainEnd"), (90, "ApplyPolicyStart"), (91, "ApplyPolicyEnd"), (92, "LdLibShFolder"),
    (93, "LdLibShFolderEnd"), (94, "PrestubWorker"), (95, "PrestubWorkerEnd"), (96, "GetInstallationStart"), (97, "GetInstallationEnd"),
    (98, "OpenHModule"), (99, "OpenHModuleEnd"), (100, "ExplicitBindStart"), (101, "ExplicitBindEnd"), (102, "ParseXml"),
    (103, "ParseXmlEnd"), (104, "InitDefaultDomain"), (105, "InitDefaultDomainEnd"), (106, "InitSecurity"), (107, "InitSecurityEnd"),
    (108, "AllowBindingRedirs"), (109, "AllowBindingRedirsEnd"), (110, "EEConfigSync"), (111, "EEConfigSyncEnd"), (112, "FusionBinding"),
    (113, "FusionBindingEnd"), (114, "LoaderCatchCall"), (115, "LoaderCatchCallEnd"), (116, "FusionInit"), (117, "FusionInitEnd"),
    (118, "FusionAppCtx"), (119, "FusionAppCtxEnd"), (120, "Fusion2EE"), (121, "Fusion2EEEnd"), (122, "SecurityCatchCall"),
    (123, "SecurityCatchCallEnd"), (158, "ModuleRangeLoadPrivate"), (159, "BindingPolicyPhaseStart"), (160, "BindingPolicyPhaseEnd"),
    (161, "BindingNgenPhaseStart"), (162, "BindingNgenPhaseEnd"), (163, "BindingLookupAndProbingPhaseStart"),
    (164, "BindingLookupAndProbingPhaseEnd"), (165, "LoaderPhaseStart"), (166, "LoaderPhaseEnd"), (167, "BindingPhaseStart"),
    (168, "BindingPhaseEnd"), (169, "BindingDownloadPhaseStart"), (170, "BindingDownloadPhaseEnd"), (171, "LoaderAssemblyInitPhaseStart"),
    (172, "LoaderAssemblyInitPhaseEnd"), (173, "LoaderMappingPhaseStart"), (174, "LoaderMappingPhaseEnd"),
    (175, "LoaderDeliverEventsPhaseStart"), (176, "LoaderDeliverEventsPhaseEnd"), (177, "EvidenceGenerated"),
    (178, "ModuleTransparencyComputationStart"), (179, "ModuleTransparencyComputationEnd"), (180, "TypeTransparencyComputationStart"),
    (181, "TypeTransparencyComputationEnd"), (182, "MethodTransparencyComputationStart"), (183, "MethodTransparencyComputationEnd"),
    (184, "FieldTransparencyComputationStart"), (185, "FieldTransparencyComputationEnd"), (186, "TokenTransparencyComputationStart"),
    (187, "TokenTransparencyComputationEnd"), (188, "NgenBindEvent"), (191, "FailFast"), (192, "PrvFinalizeObject"),
    (193, "CCWRefCountChangeAnsi"), (194, "PrvSetGCHandle"), (195, "PrvDestroyGCHandle"), (196, "FusionMessageEvent"),
    (197, "FusionErrorCodeEvent"), (199, "PinPlugAtGCTime"), (200, "CCWRefCountChange"), (201, "MulticoreJit"),
    (202, "MulticoreJitMethodCodeReturned"), (310, "AllocRequest"), (400, "IInspectableRuntimeClassName"), (401, "WinRTUnbox"),
    (402, "CreateRCW"), (403, "RCWVariance"), (404, "RCWIEnumerableCasting"), (405, "CreateCCW"), (406, "CCWVariance"),
    (407, "ObjectVariantMarshallingToNative"), (408, "GetTypeFromGUID"), (409, "GetTypeFromProgID"), (410, "ConvertToCallbackEtw"),
    (411, "BeginCreateManagedReference"), (412, "EndCreateManagedReference"), (413, "ObjectVariantMarshallingToManaged"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted_and_name_only_what_no_decoder_does() {
        let tables = [
            (Provider::Runtime, RUNTIME),
            (Provider::Rundown, RUNDOWN),
            (Provider::Private, PRIVATE),
            (Provider::Stress, STRESS),
            (Provider::SampleProfiler, SAMPLE_PROFILER),
        ];
        for (provider, names) in tables {
            assert!(names.is_sorted_by(|a, b| a.0 < b.0), "{provider}");
            for (id, name) in names {
                assert_eq!(name_only(&provider, *id), Some(*name));
                assert!(
                    crate::rows::manifest(&provider, *id).is_none(),
                    "{provider}/{id} has a decoder"
                );
            }
        }
        assert_eq!(
            name_only(&Provider::NativeRuntime, 80),
            Some("ExceptionThrown")
        );
    }
}
