import { BpfAttr, callBpf } from '../../../bpf/bpf-call.ts';
import { ForeignMemory } from '../../../bpf/foreign-memory.ts';

const BPF_PROG_TEST_RUN = 10;
/** sizeof(struct __sk_buff) in uapi/linux/bpf.h 6.1. */
const SKB_BYTES = 192;
const MAX_PACKET = 4096;

/** Fields of struct __sk_buff that a test run may set. */
export type TestSkb = {
  readonly mark?: number;
  readonly priority?: number;
  readonly ingressIfindex?: number;
  readonly ifindex?: number;
  readonly gsoSize?: number;
};

/** What a program made of a packet. */
export type RunResult = {
  readonly action: number;
  readonly packet: Buffer;
  readonly priority: number;
  readonly mark: number;
};

/** Runs a program of type BPF_PROG_TYPE_SCHED_CLS on one packet, without a link. @see Documentation/bpf/bpf_prog_run.rst */
export function runProgram(fd: number, packet: Uint8Array, skb: TestSkb = {}): RunResult {
  using memory = new ForeignMemory(2 * MAX_PACKET + 3 * SKB_BYTES);
  const context = new BpfAttr(SKB_BYTES)
    .u32(8, skb.mark ?? 0)
    .u32(32, skb.priority ?? 0, skb.ingressIfindex ?? 0, skb.ifindex ?? 0)
    .u32(176, skb.gsoSize ?? 0);
  const [out, contextOut] = [memory.reserve(MAX_PACKET), memory.reserve(SKB_BYTES)];
  const attr = new BpfAttr(80)
    .u32(0, fd, 0, packet.byteLength, MAX_PACKET)
    .u64(16, memory.put(packet))
    .u64(24, out)
    .u32(32, 1)
    .u32(40, SKB_BYTES, SKB_BYTES)
    .u64(48, memory.put(context.bytes))
    .u64(56, contextOut);
  callBpf(BPF_PROG_TEST_RUN, attr, 'run the program');
  const view = new DataView(attr.bytes.buffer);
  const changed = new DataView(memory.get(contextOut, SKB_BYTES).buffer);
  return {
    action: view.getInt32(4, true),
    packet: Buffer.from(memory.get(out, view.getUint32(12, true))),
    priority: changed.getUint32(32, true),
    mark: changed.getUint32(8, true),
  };
}
