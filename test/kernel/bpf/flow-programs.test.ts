import test, { type ExecutionContext } from 'ava';
import { assemble } from '../../../bpf/assemble.ts';
import { BpfError } from '../../../bpf/bpf-error.ts';
import { loadProgram } from '../../../bpf/bpf-program.ts';
import { exit, load, move } from '../../../bpf/source.ts';
import { FlowMapError, readFlows } from '../../../dataplane/fast-path/flow-maps.ts';
import { openFlowPrograms } from '../../../dataplane/fast-path/flow-programs.ts';
import { FAST_PATH_MARK } from '../../../dataplane/numbers.ts';
import { ACK, type FrameSpec, frame, ipv4Fault, TCP } from './frame.ts';
import { NEXT, ProgramBench, TC_ACT_REDIRECT, TC_ACT_UNSPEC, V4, V6 } from './program-bench.ts';
import type { TestSkb } from './run-program.ts';

// The two programs on one packet at a time, in the kernel and without a link: what they learn, follow and leave alone.

test('fast: a packet of a learned flow leaves with the next hop’s MAC, one hop less and a right checksum', (t) => {
  using bench = new ProgramBench();
  for (const spec of [V4, V6, { ...V4, protocol: TCP }, { ...V6, protocol: TCP }, { ...V4, ttl: 2 }]) {
    t.is(bench.learn({ ...spec, ttl: 63 }, { priority: 6 }).action, TC_ACT_UNSPEC);
    const { action, packet, priority } = bench.arrive(spec);
    t.is(action, TC_ACT_REDIRECT);
    const ttl = (spec.ttl ?? 64) - 1;
    t.deepEqual(packet, frame({ ...spec, ...NEXT, ttl }));
    t.is(priority, 6);
    if (spec.src === V4.src) t.is(ipv4Fault(packet), 0);
  }
});

test('fast: the checksum is right for each TTL and any address', (t) => {
  using bench = new ProgramBench();
  bench.learn(V4);
  for (let ttl = 2; ttl < 256; ttl++) t.is(ipv4Fault(bench.arrive({ ...V4, ttl }).packet), 0, `ttl ${ttl}`);
  // Sums that carry: with one of these a header before has the checksum 0xfffe or 0xffff.
  for (let last = 0; last < 256; last += 5) {
    const spec = { ...V4, dst: `255.254.${255 - last}.${last}` };
    bench.learn(spec);
    t.is(ipv4Fault(bench.arrive(spec).packet), 0, spec.dst);
  }
});

test('fast: a packet that differs from the learned flow in one thing goes the slow way, untouched', (t) => {
  using bench = new ProgramBench();
  const tcp: FrameSpec = { ...V4, protocol: TCP };
  for (const spec of [V4, V6, tcp]) bench.learn(spec);
  const others: readonly (readonly [string, FrameSpec, TestSkb?])[] = [
    ['another source', { ...V4, src: '10.0.5.8' }],
    ['another destination', { ...V4, dst: '203.0.113.11' }],
    ['another source port', { ...V4, sport: 1001 }],
    ['another destination port', { ...V4, dport: 54 }],
    ['another protocol', { ...V4, protocol: TCP, dport: 53 }],
    ['another link', { ...V4, to: '00:00:00:00:00:00' }, { ifindex: 1 }],
    ['another source, IPv6', { ...V6, src: '2001:db8::8' }],
    ['the last half of the destination, IPv6', { ...V6, dst: '2001:db8:ff::11' }],
    ['to another station', { ...V4, to: '02:00:00:00:00:77' }],
    ['to all stations', { ...V4, to: 'ff:ff:ff:ff:ff:ff' }],
    ['a hop limit that ends here', { ...V4, ttl: 1 }],
    ['a hop limit of 0', { ...V4, ttl: 0 }],
    ['a hop limit that ends here, IPv6', { ...V6, ttl: 1 }],
    ['IPv4 options', { ...V4, version: 0x46 }],
    ['the first fragment', { ...V4, fragment: 0x2000 }],
    ['a later fragment', { ...V4, fragment: 0x0010 }],
    ['ICMP', { ...V4, protocol: 1 }],
    ['a fragment header, IPv6', { ...V6, protocol: 44 }],
    ['SYN', { ...tcp, tcpFlags: 0x02 }],
    ['FIN', { ...tcp, tcpFlags: 0x11 }],
    ['RST', { ...tcp, tcpFlags: 0x04 }],
    ['longer than the MTU', { ...V4, payloadBytes: 1500 }],
    ['segments of which each is longer than the MTU', { ...tcp, payloadBytes: 3000 }, { gsoSize: 1461 }],
  ];
  for (const [what, spec, skb] of others) {
    const { action, packet } = bench.arrive(spec, skb);
    t.is(action, TC_ACT_UNSPEC, what);
    if (spec.to === undefined) t.is(packet.subarray(14).compare(frame(spec).subarray(14)), 0, what);
  }
  for (const spec of [V4, V6, tcp]) t.is(bench.arrive(spec).action, TC_ACT_REDIRECT);
});

test('fast: what does not matter to a flow does not slow it', (t) => {
  using bench = new ProgramBench();
  const tcp: FrameSpec = { ...V4, protocol: TCP };
  for (const spec of [V4, tcp]) bench.learn(spec);
  const same: readonly (readonly [string, FrameSpec, TestSkb?])[] = [
    ['exactly the MTU', { ...V4, payloadBytes: 1472 }],
    ['may not be fragmented', { ...V4, fragment: 0x4000 }],
    ['PSH and URG', { ...tcp, tcpFlags: ACK | 0x28 }],
    ['segments that fit exactly', { ...tcp, payloadBytes: 3000 }, { gsoSize: 1460 }],
    ['segments that fit exactly, with a timestamp', { ...tcp, tcpWords: 8, payloadBytes: 3000 }, { gsoSize: 1448 }],
  ];
  for (const [what, spec, skb] of same) t.is(bench.arrive(spec, skb).action, TC_ACT_REDIRECT, what);
});

test('learn: only from what was forwarded and has the mark', (t) => {
  using bench = new ProgramBench();
  const refused: readonly (readonly [string, FrameSpec, TestSkb])[] = [
    ['without the mark', V4, { mark: 0xff80 & ~FAST_PATH_MARK }],
    ['sent by the node itself', V4, { ingressIfindex: 0 }],
    ['a fragment', { ...V4, fragment: 0x2000 }, {}],
    ['SYN', { ...V4, protocol: TCP, tcpFlags: 2 }, {}],
    ['ICMP', { ...V4, protocol: 1 }, {}],
  ];
  for (const [what, spec, skb] of refused) {
    t.is(bench.learn(spec, skb).action, TC_ACT_UNSPEC, what);
    t.deepEqual(bench.programs.flows(), [], what);
  }
  bench.learn(V4, { mark: 0xffffffff });
  bench.learn(V6);
  const [v4, v6] = bench.programs.flows();
  const { iif, oif } = bench;
  t.like(v4, { family: 4, protocol: 'udp', src: V4.src, dst: V4.dst, sport: 1000, dport: 53, iif, oif, epoch: 0 });
  t.like(v6, { family: 6, protocol: 'udp', src: V6.src, dst: V6.dst, sport: 1000, dport: 53, iif, oif });
});

test('learn: a smaller MTU of the link holds for what is learned after it', (t) => {
  using bench = new ProgramBench();
  bench.host.ip('link set v1 mtu 1300');
  bench.learn(V4);
  t.is(bench.arrive({ ...V4, payloadBytes: 1272 }).action, TC_ACT_REDIRECT);
  t.is(bench.arrive({ ...V4, payloadBytes: 1273 }).action, TC_ACT_UNSPEC);
});

test('forgetFlows: every flow takes the slow way until it is learned anew', (t) => {
  using bench = new ProgramBench();
  for (const spec of [V4, V6]) bench.learn(spec);
  bench.programs.forgetFlows();
  for (const spec of [V4, V6]) t.is(bench.arrive(spec).action, TC_ACT_UNSPEC);
  bench.learn(V4);
  t.is(bench.arrive(V4).action, TC_ACT_REDIRECT);
  t.is(bench.programs.epoch(), 1);
});

test('a flow ends by itself after a second', async (t) => {
  using bench = new ProgramBench();
  bench.learn(V4);
  const started = performance.now();
  await new Promise((resolve) => setTimeout(resolve, 1_020));
  t.is(bench.arrive(V4).action, TC_ACT_UNSPEC, `after ${performance.now() - started} ms`);
});

test('openFlowPrograms: uses attached programs on with what they learned, unless they are others', (t) => {
  using bench = new ProgramBench();
  bench.learn(V4);
  bench.programs.forgetFlows();
  const attached = { fastId: bench.programs.fast.id, learnId: bench.programs.learn.id };
  using again = openFlowPrograms(attached);
  t.like(again, { isReused: true, fast: { id: attached.fastId }, learn: { id: attached.learnId } });
  bench.learn(V4);
  t.is(again.flows().length, 1);
  again.forgetFlows();
  t.deepEqual(again.flows(), []);
  t.is(bench.programs.epoch(), 2);
  using other = openFlowPrograms({ fastId: attached.learnId, learnId: attached.fastId });
  t.false(other.isReused);
  using gone = openFlowPrograms({ fastId: 2 ** 31 - 1, learnId: attached.learnId });
  t.false(gone.isReused);
});

test('readFlows: reads by the number of a program what it follows, and says when it is gone', (t) => {
  using bench = new ProgramBench();
  bench.learn(V4);
  const [flow] = readFlows(bench.programs.fast.id);
  t.like(flow, { src: V4.src, dst: V4.dst, iif: bench.iif, oif: bench.oif });
  t.is(t.throws(() => readFlows(2 ** 31 - 1), { instanceOf: FlowMapError })?.code, 'ENOENT');
  using other = loadProgram('other', assemble([move('r0', 0), exit()], {}), 'GPL');
  t.is(t.throws(() => readFlows(other.info.id), { instanceOf: FlowMapError })?.code, 'OTHER_SHAPE');
});

test('loadProgram: names the instruction that the verifier refuses', (t) => {
  const error = refusalOf(t, () => loadProgram('wrong', assemble([load(32, 'r0', 'r5', 0), exit()], {}), 'GPL'));
  t.is(error?.code, 'EACCES');
  t.regex(
    error?.message ?? '',
    /^cannot load the program wrong: .*\n[\s\S]*R5 !read_ok[\s\S]*as written: 0: r0 = \*\(u32 \*\)\(r5 \+ 0\)$/,
  );
  t.is(refusalOf(t, () => loadProgram('endless', assemble([move('r0', 0)], {}), 'GPL'))?.code, 'EINVAL');
});

function refusalOf(t: ExecutionContext, run: () => unknown): BpfError | undefined {
  return t.throws(run, { instanceOf: BpfError });
}
