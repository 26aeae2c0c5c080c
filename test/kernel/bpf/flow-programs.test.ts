import test, { type ExecutionContext } from 'ava';
import { assemble } from '../../../bpf/assemble.ts';
import { BpfError } from '../../../bpf/bpf-error.ts';
import { loadProgram } from '../../../bpf/bpf-program.ts';
import { exit, load, move } from '../../../bpf/source.ts';
import { FlowMapError, readFlows } from '../../../dataplane/fast-path/flow-maps.ts';
import { openFlowPrograms } from '../../../dataplane/fast-path/flow-programs.ts';
import { closingFaults } from './closing-table.ts';
import { frame, ipv4Fault } from './frame.ts';
import { packetFaults } from './packet-table.ts';
import { ProgramBench, TC_ACT_REDIRECT, TC_ACT_UNSPEC, V4, V6 } from './program-bench.ts';

// The two programs on one packet at a time, in the kernel and without a link: what they learn, follow and leave alone.

test('fast: the checksum is right for each TTL', (t) => {
  using bench = new ProgramBench();
  bench.learn(V4);
  for (let ttl = 2; ttl < 256; ttl++) t.is(ipv4Fault(bench.arrive({ ...V4, ttl }).packet), 0, `ttl ${ttl}`);
});

test('packets of learned flows leave at once, changed as a router does; all others go on, untouched', (t) => {
  using bench = new ProgramBench();
  t.deepEqual(packetFaults(bench), []);
});

test('what ends a connection ends its flows, and connection tracking gets a copy ahead of a RST', (t) => {
  using bench = new ProgramBench();
  t.deepEqual(closingFaults(bench), []);
});

test('fast: notes what came in and goes on the slow way, each with a number of its own', (t) => {
  using bench = new ProgramBench();
  for (const spec of [V4, V6, { ...V4, sport: 1001 }]) {
    const before = bench.noted(frame(spec)).numbers;
    bench.arrive(spec);
    t.deepEqual(bench.noted(frame(spec)), { numbers: before + 1, isLast: true });
  }
  bench.learn(V4);
  const { numbers } = bench.noted(frame(V4));
  bench.arrive(V4);
  t.is(bench.noted(frame(V4)).numbers, numbers, 'what leaves at once is not noted');
});

test('learn: what is known of a flow', (t) => {
  using bench = new ProgramBench();
  bench.learn({ ...V4, protocol: 1 });
  bench.learn(V4, { ingressIfindex: 0 });
  t.deepEqual(bench.programs.flows(), []);
  bench.learn(V4);
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

test('forgetFlows: every flow takes the slow way until it is learned again', (t) => {
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
  bench.learn(V4);
  bench.programs.forgetFlows();
  t.deepEqual(again.flows(), [], 'the other one ended flows in between');
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
