//! Events without a typed decoder whose fields are published: hand-made bytes, a version each.

use chronosym_events::kernel::classes;
use chronosym_events::{EventKey, EventSchema, Guid, PointerSize, Provider, RawEvent};

/// A payload under construction.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn u16s(mut self, values: &[u16]) -> Self {
        self.0.extend(values.iter().flat_map(|v| v.to_le_bytes()));
        self
    }
    fn u32s(mut self, values: &[u32]) -> Self {
        self.0.extend(values.iter().flat_map(|v| v.to_le_bytes()));
        self
    }
    fn u64s(mut self, values: &[u64]) -> Self {
        self.0.extend(values.iter().flat_map(|v| v.to_le_bytes()));
        self
    }
    fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }
    fn text(self, text: &str) -> Self {
        let units: Vec<u16> = text.encode_utf16().chain([0]).collect();
        self.u16s(&units)
    }
    fn text_in(self, text: &str, units: usize) -> Self {
        let mut all: Vec<u16> = text.encode_utf16().collect();
        all.resize(units, 0);
        self.u16s(&all)
    }
}

fn bytes() -> Bytes {
    Bytes::default()
}

/// The fields as text; a byte less must leave something over, a byte more a `Rest`.
fn show(key: EventKey, pointer_size: PointerSize, payload: &[u8]) -> String {
    let schema = EventSchema::new(key);
    assert!(!schema.is_typed(), "{schema:?}");
    let fields = |payload: &[u8]| {
        let raw = RawEvent {
            time_ns: 0,
            process_id: None,
            thread_id: None,
            processor: None,
            pointer_size,
            schema: &schema,
            payload,
        };
        raw.fields().unwrap().expect("described").to_string()
    };
    let whole = fields(payload);
    assert!(!whole.contains("Rest="), "{whole}");
    assert!(fields(&[payload, &[0xee]].concat()).ends_with("Rest=ee"));
    let cut = fields(&payload[..payload.len() - 1]);
    assert!(!cut.starts_with(&whole), "{cut}");
    whole
}

fn kernel(class: Guid, opcode: u8, version: u16, payload: &Bytes) -> String {
    let key = EventKey::Classic {
        class,
        opcode,
        version,
    };
    show(key, PointerSize::Eight, &payload.0)
}

fn clr(provider: Provider, id: u32, version: u32, payload: &Bytes) -> String {
    let key = EventKey::Manifest {
        provider,
        id,
        version,
    };
    show(key, PointerSize::Eight, &payload.0)
}

#[test]
fn disk_io() {
    let io = || bytes().u32s(&[1, 0x43, 4096, 0]).u64s(&[512, 0xa, 0xb, 99]);
    let v2 = "DiskNumber=1, IrpFlags=0x43, TransferSize=4096, Reserved=0, ByteOffset=512, FileObject=0xa, Irp=0xb, \
              HighResResponseTime=99";
    assert_eq!(kernel(classes::DISK_IO, 10, 2, &io()), v2);
    assert_eq!(
        kernel(classes::DISK_IO, 11, 3, &io().u32s(&[7])),
        format!("{v2}, IssuingThreadId=7")
    );
    assert_eq!(
        kernel(classes::DISK_IO, 12, 2, &bytes().u64s(&[0xb])),
        "Irp=0xb"
    );
    assert_eq!(
        kernel(classes::DISK_IO, 15, 3, &bytes().u64s(&[0xb]).u32s(&[7])),
        "Irp=0xb, IssuingThreadId=7"
    );
    let flush = || bytes().u32s(&[1, 2]).u64s(&[3, 4]);
    let v2 = "DiskNumber=1, IrpFlags=0x2, HighResResponseTime=3, Irp=0x4";
    assert_eq!(kernel(classes::DISK_IO, 14, 2, &flush()), v2);
    assert_eq!(
        kernel(classes::DISK_IO, 14, 4, &flush().u32s(&[7])),
        format!("{v2}, IssuingThreadId=7")
    );
}

#[test]
fn addresses_and_ports_of_the_network() {
    let ends = |v6: bool| {
        let (to, from) = (&[10, 0, 0, 1], &[10, 0, 0, 2]);
        let local = 1u128.to_be_bytes();
        let both = bytes().u32s(&[4, 100]);
        let both = match v6 {
            false => both.raw(to).raw(from),
            true => both.raw(&local).raw(&local),
        };
        both.raw(&[1, 0xbd, 0xfa, 0x19])
    };
    let v4 = "PID=4, size=100, daddr=10.0.0.1, saddr=10.0.0.2, dport=445, sport=64025";
    let v6 = "PID=4, size=100, daddr=::1, saddr=::1, dport=445, sport=64025";
    for (class, opcode) in [(classes::TCP_IP, 11), (classes::UDP_IP, 10)] {
        assert_eq!(
            kernel(class, opcode, 2, &ends(false).u32s(&[9]).u64s(&[8])),
            format!("{v4}, seqnum=9, connid=0x8")
        );
        assert_eq!(
            kernel(class, 27, 2, &ends(true).u32s(&[9]).u64s(&[8])),
            format!("{v6}, seqnum=9, connid=0x8")
        );
    }
    assert_eq!(
        kernel(
            classes::TCP_IP,
            26,
            2,
            &ends(true).u32s(&[1, 2, 9]).u64s(&[8])
        ),
        format!("{v6}, startime=1, endtime=2, seqnum=9, connid=0x8")
    );
    let connect = ends(false).u16s(&[1, 2, 3, 4]).u32s(&[5]).u16s(&[6, 7]);
    assert_eq!(
        kernel(classes::TCP_IP, 12, 2, &connect.u32s(&[9]).u64s(&[8])),
        format!(
            "{v4}, mss=1, sackopt=2, tsopt=3, wsopt=4, rcvwin=5, rcvwinscale=6, sndwinscale=7, seqnum=9, connid=0x8"
        )
    );
    assert_eq!(
        kernel(classes::UDP_IP, 17, 2, &bytes().u16s(&[1, 2])),
        "Proto=1, FailureCode=2"
    );
}

#[test]
fn files_faults_and_processes() {
    let class = classes::FILE_IO;
    assert_eq!(
        kernel(class, 36, 2, &bytes().u64s(&[0xa]).text("\\F")),
        "FileObject=0xa, FileName=\\F"
    );
    assert_eq!(
        kernel(
            class,
            64,
            2,
            &bytes().u64s(&[1, 2, 3]).u32s(&[4, 5, 6]).text("p")
        ),
        "IrpPtr=0x1, TTID=0x2, FileObject=0x3, CreateOptions=0x4, FileAttributes=0x5, ShareAccess=0x6, OpenPath=p"
    );
    assert_eq!(
        kernel(
            class,
            64,
            3,
            &bytes().u64s(&[1, 3]).u32s(&[2, 4, 5, 6]).text("p")
        ),
        "IrpPtr=0x1, FileObject=0x3, TTID=2, CreateOptions=0x4, FileAttributes=0x5, ShareAccess=0x6, OpenPath=p"
    );
    assert_eq!(
        kernel(class, 67, 3, &bytes().u64s(&[1, 2, 3, 4]).u32s(&[5, 6, 7])),
        "Offset=1, IrpPtr=0x2, FileObject=0x3, FileKey=0x4, TTID=5, IoSize=6, IoFlags=0x7"
    );
    assert_eq!(
        kernel(class, 76, 2, &bytes().u64s(&[1, 2]).u32s(&[3])),
        "IrpPtr=0x1, ExtraInfo=0x2, NtStatus=0x3"
    );
    assert_eq!(
        kernel(
            classes::PAGE_FAULT,
            32,
            2,
            &bytes().u64s(&[1, 2, 3, 4]).u32s(&[5, 6])
        ),
        "InitialTime=1, ReadOffset=2, VirtualAddress=0x3, FileObject=0x4, TThreadId=5, ByteCount=6"
    );
    assert_eq!(
        kernel(classes::PROCESS, 11, 2, &bytes().u32s(&[5])),
        "ProcessId=5"
    );
    // Narrow pointers.
    let key = EventKey::Classic {
        class: classes::PROCESS,
        opcode: 33,
        version: 2,
    };
    let counters = bytes().u32s(&(1..=15).collect::<Vec<_>>());
    let text = show(key, PointerSize::Four, &counters.0);
    assert!(text.starts_with("ProcessId=1, PageFaultCount=2, HandleCount=3, Reserved=4"));
    assert!(text.ends_with("PrivatePageCount=0xf"), "{text}");
}

#[test]
fn the_system_s_configuration() {
    let config =
        |opcode, version, payload: Bytes| kernel(classes::SYSTEM_CONFIG, opcode, version, &payload);
    let cpu = bytes()
        .u32s(&[3592, 8, 4096, 4096, 65536])
        .text_in("HOST", 256)
        .text_in("", 134)
        .u64s(&[1, 0xffff])
        .u16s(&[9, 6, 7])
        .raw(&[1, 0])
        .u32s(&[2]);
    assert_eq!(
        config(10, 3, cpu),
        "MHz=3592, NumberOfProcessors=8, MemSize=4096, PageSize=4096, AllocationGranularity=65536, ComputerName=HOST, \
         DomainName=, HyperThreadingFlag=0x1, HighestUserAddress=0xffff, ProcessorArchitecture=9, ProcessorLevel=6, \
         ProcessorRevision=7, PaeEnabled=1, NxEnabled=0, MemorySpeed=2"
    );
    let names = |bytes: Bytes| bytes.text("S").text("Service").text("s.exe");
    assert_eq!(
        config(
            15,
            3,
            names(bytes().u32s(&[7, 4, 1])).text("").text("netsvcs")
        ),
        "ProcessId=7, ServiceState=4, SubProcessTag=1, ServiceName=S, DisplayName=Service, ProcessName=s.exe, \
         LoadOrderGroup=, SvchostGroup=netsvcs"
    );
    assert_eq!(
        config(
            15,
            2,
            bytes()
                .text_in("S", 34)
                .text_in("Service", 256)
                .text_in("s.exe", 34)
                .u32s(&[7])
        ),
        "ServiceName=S, DisplayName=Service, ProcessName=s.exe, ProcessId=7"
    );
    let device = |bytes: Bytes| bytes.text("ID").text("D").text("F").text("P").text("S");
    let shown = "DeviceID=ID, DeviceDescription=D, FriendlyName=F, PdoName=P, ServiceName=S";
    let filters = |bytes: Bytes| device(bytes).text("u").text("l").text("m");
    assert_eq!(
        config(22, 3, device(bytes().u32s(&[3, 2, 2, 2, 2]))),
        format!(
            "IDLength=3, DescriptionLength=2, FriendlyNameLength=2, PdoNameLength=2, ServiceNameLength=2, {shown}"
        )
    );
    let class = "00000000-0000-0000-0000-000000000000";
    assert_eq!(
        config(22, 4, filters(bytes().raw(&[0; 16]).u32s(&[1, 2]))),
        format!(
            "ClassGuid={class}, UpperFiltersCount=1, LowerFiltersCount=2, {shown}, UpperFilters=[u], LowerFilters=[l, m]"
        )
    );
    assert_eq!(
        config(22, 5, filters(bytes().raw(&[0; 16]).u32s(&[1, 2, 3, 4]))),
        format!(
            "ClassGuid={class}, UpperFiltersCount=1, LowerFiltersCount=2, DevStatus=0x3, DevProblem=4, {shown}, \
             UpperFilters=[u], LowerFilters=[l, m]"
        )
    );
    assert_eq!(
        config(16, 2, bytes().raw(&[0, 0, 0, 0, 1, 0, 0, 0])),
        "S1=0, S2=0, S3=0, S4=0, S5=1, Pad=000000"
    );
    assert_eq!(
        config(21, 2, bytes().u64s(&[3]).u32s(&[1, 4]).text("dev")),
        "IRQAffinity=0x3, IRQNum=1, DeviceDescriptionLen=4, DeviceDescription=dev"
    );
    assert_eq!(
        config(
            21,
            3,
            bytes().u64s(&[3]).u16s(&[1, 0]).u32s(&[1, 4]).text("dev")
        ),
        "IRQAffinity=0x3, IRQGroup=1, Reserved=0, IRQNum=1, DeviceDescriptionLen=4, DeviceDescription=dev"
    );
    assert_eq!(
        config(24, 2, bytes().u32s(&[2]).u64s(&[0xf, 0xf0])),
        "NodeCount=2, NodeMap=[0xf, 0xf0]"
    );
}

#[test]
fn the_configuration_of_windows_10() {
    let config = |opcode, payload: Bytes| kernel(classes::SYSTEM_CONFIG, opcode, 2, &payload);
    assert_eq!(
        config(29, bytes().u32s(&[0x2003])),
        "CodeIntegrityInfo=0x2003"
    );
    assert_eq!(
        config(30, bytes().u32s(&[0xa]).raw(&[0; 12])),
        "MachineId=0000000a-0000-0000-0000-000000000000"
    );
    assert_eq!(
        config(33, bytes().u64s(&[0xa]).u32s(&[3, 2])),
        "UAPInfo=0xa, DeviceFamily=3, DeviceForm=2"
    );
    assert_eq!(
        config(34, bytes().text("U").text("FX:1,FX:2")),
        "UpdateId=U, FlightIdList=FX:1,FX:2"
    );
    let processor = bytes()
        .u32s(&[1, 0x3d, 2304])
        .text_in("CPU", 64)
        .text_in("Vendor", 16)
        .text_in("Family 6", 128);
    assert_eq!(
        config(35, processor),
        "ProcessorIndex=1, FeatureSet=0x3d, ProcessorSpeed=2304, ProcessorName=CPU, VendorIdentifier=Vendor, \
         ProcessorIdentifier=Family 6"
    );
    assert_eq!(
        config(36, bytes().raw(&[1, 0, 1, 0])),
        "VbsEnabled=1, HvciEnabled=0, HyperVisorEnabled=1, Reserved=0"
    );
    assert_eq!(
        config(37, bytes().u64s(&[0x10]).u32s(&[2]).raw(&[1, 1, 0, 0])),
        "BootFlags=0x10, FirmwareType=2, SecureBootEnabled=1, SecureBootCapable=1, Reserved1=0, Reserved2=0"
    );
}

/// `_ETW_PARTITION_INFO_EXTENSION` of the Windows kernel, of 48 bytes as in traces of Windows 10.
#[test]
fn the_partition_of_a_trace() {
    let payload = bytes().u32s(&[2, 1]).u64s(&[u64::MAX]).u32s(&[0xa]);
    let payload = payload.raw(&[0; 12]).u32s(&[0xb]).raw(&[0; 12]);
    assert_eq!(
        kernel(classes::EVENT_TRACE, 80, 2, &payload),
        "EventVersion=2, Reserved=0, PartitionType=1, QpcOffsetFromRoot=-1, \
         PartitionId=0000000a-0000-0000-0000-000000000000, ParentId=0000000b-0000-0000-0000-000000000000"
    );
}

/// The CLR copies C structs into the payload, with their padding.
#[test]
fn structs_of_the_collector_are_aligned() {
    let compact = |size: PointerSize, payload: Bytes| {
        let key = EventKey::Manifest {
            provider: Provider::Runtime,
            id: 208,
            version: 0,
        };
        show(key, size, &payload.u32s(&[2, 3]).0)
    };
    let head = || bytes().u16s(&[9, 1]).u32s(&[5, 6, 7]);
    assert_eq!(
        compact(PointerSize::Four, head()),
        "ClrInstanceID=9, Count=1, Values=[{TimePlan=5, TimeCompact=6, TimeRelocate=7, TotalRefs=0x2, ZeroRefs=0x3}]"
    );
    assert_eq!(
        compact(PointerSize::Eight, head().u32s(&[0xeeee_eeee]).u64s(&[8])),
        "ClrInstanceID=9, Count=1, Values=[{TimePlan=5, TimeCompact=6, TimeRelocate=7, TotalRefs=0x8, ZeroRefs=0x300000002}]"
    );
    let bucket = |bytes: Bytes, n: u16| bytes.u16s(&[n, 0xeeee]).u32s(&[n.into()]).u64s(&[4]);
    let buckets = bytes().u16s(&[9, 1]).u64s(&[8]).u16s(&[2]);
    assert_eq!(
        clr(Provider::Runtime, 209, 0, &bucket(bucket(buckets, 1), 2)),
        "ClrInstanceID=9, BucketKind=1, TotalSize=8, Count=2, \
         Values=[{Index=1, Count=1, Size=0x4}, {Index=2, Count=2, Size=0x4}]"
    );
}

#[test]
fn heaps_of_the_runtime() {
    let runtime = |id, version, payload: Bytes| clr(Provider::Runtime, id, version, &payload);
    let bulk = || bytes().u32s(&[0, 1]).u16s(&[9]);
    let shown = "Index=0, Count=1, ClrInstanceID=9, Values=";
    assert_eq!(
        runtime(16, 0, bulk().u64s(&[1]).raw(&[2]).u32s(&[3]).u64s(&[4])),
        format!("{shown}[{{RootedNodeAddress=0x1, GCRootKind=2, GCRootFlag=0x3, GCRootID=0x4}}]")
    );
    assert_eq!(
        runtime(18, 0, bulk().u64s(&[1, 2, 3, 4])),
        format!("{shown}[{{Address=0x1, Size=2, TypeID=0x3, EdgeCount=4}}]")
    );
    assert_eq!(
        runtime(22, 0, bulk().u64s(&[1, 2, 3])),
        format!("{shown}[{{OldRangeBase=0x1, NewRangeBase=0x2, RangeLength=3}}]")
    );
    assert_eq!(
        runtime(
            38,
            0,
            bytes()
                .u32s(&[1])
                .u64s(&[5])
                .u16s(&[9])
                .u64s(&[1, 2, 3])
                .u32s(&[4])
                .text("f")
        ),
        "Count=1, AppDomainID=0x5, ClrInstanceID=9, Values=[{GCRootID=0x1, ObjectID=0x2, TypeID=0x3, Flags=0x4, FieldName=f}]"
    );
    assert_eq!(
        runtime(
            39,
            0,
            bytes().text("N").u32s(&[2]).raw(&[0xab, 0xcd]).u16s(&[9])
        ),
        "Name=N, DataSize=2, Data=abcd, ClrInstanceID=9"
    );
    assert_eq!(
        runtime(203, 2, bytes().u32s(&[1, 2, 3]).u16s(&[9]).u32s(&[4])),
        "Heap=1, JoinTime=2, JoinType=3, ClrInstanceID=9, JoinID=4"
    );
    let history = bytes()
        .u16s(&[9])
        .u64s(&[1, 2, 3, 4, 5, 6])
        .u32s(&[7, 8, 9, 10, 11, 12])
        .u64s(&[13])
        .u32s(&[1])
        .u64s(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    assert!(
        runtime(204, 3, history)
            .ends_with("Count=1, Values=[{SizeBefore=0x1, FreeListBefore=0x2, FreeObjBefore=0x3, SizeAfter=0x4, \
                        FreeListAfter=0x5, FreeObjAfter=0x6, In=0x7, PinnedSurv=0x8, NonePinnedSurv=0x9, NewAllocation=0xa}]")
    );
    let global = || bytes().u64s(&[1]).u32s(&[2, 3, 4, 5, 6]).u16s(&[9]);
    let v1 = "FinalYoungestDesired=1, NumHeaps=2, CondemnedGeneration=3, Gen0ReductionCount=4, Reason=5, \
              GlobalMechanisms=0x6, ClrInstanceID=9";
    assert_eq!(clr(Provider::Private, 5, 1, &global()), v1);
    let v2 = format!("{v1}, PauseMode=7, MemoryPressure=8");
    assert_eq!(runtime(205, 2, global().u32s(&[7, 8])), v2);
    let v3 = format!("{v2}, CondemnReasons0=9, CondemnReasons1=10");
    assert_eq!(runtime(205, 3, global().u32s(&[7, 8, 9, 10])), v3);
    assert_eq!(
        runtime(205, 4, global().u32s(&[7, 8, 9, 10, 2, 11, 12])),
        format!("{v3}, Count=2, Values=[11, 12]")
    );
}

#[test]
fn the_private_provider() {
    let private = |id, version, payload: Bytes| clr(Provider::Private, id, version, &payload);
    assert_eq!(
        private(2, 0, bytes().u64s(&[1, 2]).u32s(&[1])),
        "SegmentSize=1, LargeObjectSegmentSize=2, ServerGC=true"
    );
    assert_eq!(
        private(2, 1, bytes().u64s(&[1, 2]).u32s(&[0]).u16s(&[9])),
        "SegmentSize=1, LargeObjectSegmentSize=2, ServerGC=false, ClrInstanceID=9"
    );
    assert_eq!(private(9, 0, bytes().u32s(&[1])), "HeapNum=1");
    assert_eq!(
        private(10, 1, bytes().u32s(&[1]).u16s(&[9])),
        "HeapNum=1, ClrInstanceID=9"
    );
    assert_eq!(private(17, 0, bytes().u16s(&[9])), "ClrInstanceID=9");
    assert_eq!(
        private(
            22,
            1,
            bytes().u64s(&[1, 2, 3]).u32s(&[0]).u16s(&[9]).u32s(&[2])
        ),
        "Min=0x1, Max=0x2, Objects=3, IsLarge=0, ClrInstanceID=9, GenNumber=2"
    );
    for id in [159, 165, 176] {
        assert_eq!(
            private(
                id,
                0,
                bytes().u32s(&[1, 4, 0, 0]).text("c").text("a").u16s(&[9])
            ),
            "AppDomainID=1, LoadContextID=4, FromLoaderCache=0, DynamicLoad=0, AssemblyCodebase=c, AssemblyName=a, \
             ClrInstanceID=9"
        );
    }
    assert_eq!(
        private(188, 0, bytes().u16s(&[9]).u64s(&[1]).u32s(&[2]).text("a")),
        "ClrInstanceID=9, BindingID=0x1, ReasonCode=2, AssemblyName=a"
    );
    assert_eq!(
        private(196, 0, bytes().u16s(&[9]).u32s(&[1]).text("m")),
        "ClrInstanceID=9, Prepend=true, Message=m"
    );
}

/// As .NET Framework 4.5.2 writes it: 433 bytes, 233 in processes of 32 bits.
#[test]
fn a_heap_s_history_of_net_framework() {
    let payload = |pointers: Bytes| {
        let tail = pointers.u32s(&[4, 0x30, 31, 0, 0x8000_0001, 0, 0, 2]);
        tail.raw(&[9])
    };
    let counts: Vec<u64> = (0..50).collect();
    let wide = payload(bytes().u64s(&counts));
    assert_eq!(wide.0.len(), 433);
    let text = clr(Provider::Private, 4, 2, &wide);
    assert!(text.contains("In=0x6, Out=0x7, NewAllocation=0x8, SurvRate=0x9"));
    let end = "SurvRate=0x31}], CondemnReasons0=0x4, CondemnReasons1=0x30, MemoryPressure=31, \
               Mechanisms=[0x0, 0x80000001, 0x0, 0x0], HeapIndex=2, ClrInstanceID=9";
    assert!(text.ends_with(end), "{text}");
    let counts: Vec<u32> = (0..50).collect();
    let narrow = payload(bytes().u32s(&counts));
    assert_eq!(narrow.0.len(), 233);
    let key = EventKey::Manifest {
        provider: Provider::Private,
        id: 4,
        version: 2,
    };
    assert_eq!(show(key, PointerSize::Four, &narrow.0), text);
}

#[test]
fn buffers_of_async_calls() {
    let provider = Provider::AsyncProfiler;
    assert_eq!(
        clr(provider.clone(), 1, 1, &bytes().u32s(&[2]).raw(&[1, 0xab])),
        "Length=2, Buffer=01ab"
    );
    let name = "System.Runtime.CompilerServices.AsyncProfilerEventSource";
    assert_eq!(Provider::from_name(name), provider);
    let schema = EventSchema::new(EventKey::Manifest {
        provider,
        id: 1,
        version: 1,
    });
    assert_eq!(schema.name(), "AsyncEvents");
}

#[test]
fn requests_of_http_sys() {
    let http = |id, version, payload: Bytes| clr(Provider::HttpService, id, version, &payload);
    assert_eq!(
        http(1, 0, bytes().u64s(&[1, 2]).u32s(&[3]).raw(&[2, 0, 80])),
        "RequestId=1, ConnectionId=2, RemoteAddrLength=3, RemoteAddr=020050"
    );
    assert_eq!(
        http(2, 0, bytes().u64s(&[0xa]).u32s(&[4]).text("http://a/")),
        "RequestObj=0xa, HttpVerb=4, Url=http://a/"
    );
    let delivered = bytes().u64s(&[0xa, 1]).u32s(&[1]).text("pool").text("/");
    assert_eq!(
        http(3, 0, delivered.u32s(&[0])),
        "RequestObj=0xa, RequestId=1, SiteId=1, RequestQueueName=pool, Url=/, Status=0x0"
    );
    assert_eq!(
        http(12, 0, bytes().u64s(&[1]).u16s(&[200])),
        "RequestId=1, HttpStatus=200"
    );
    let served = || bytes().u64s(&[0xa]).u32s(&[1, 99]);
    let v0 = "RequestObj=0xa, SiteId=1, BytesSent=99";
    assert_eq!(http(16, 0, served()), v0);
    assert_eq!(
        http(17, 1, served().u64s(&[7]).raw(b"gzip\0")),
        format!("{v0}, RequestId=7, Encoding=gzip")
    );
    let schema = EventSchema::new(EventKey::Manifest {
        provider: Provider::HttpService,
        id: 3,
        version: 0,
    });
    assert_eq!(schema.name(), "HTTPRequestTraceTask/Deliver");
}
