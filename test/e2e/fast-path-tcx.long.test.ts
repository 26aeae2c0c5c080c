// Long: it opens a VPC and waits two seconds for UDP to be learned.
import test from 'ava';
import { assemble, type SourceLine } from '../../bpf/assemble.ts';
import { BpfAttr, callBpf } from '../../bpf/bpf-call.ts';
import { loadProgram } from '../../bpf/bpf-program.ts';
import { exit, jumpIf, label, load, move } from '../../bpf/source.ts';
import { TC_ACT_UNSPEC } from '../../bpf/uapi/bpf.ts';
import { SKB } from '../../dataplane/fast-path/flow-source.ts';
import { openNetns, withNetns } from '../../netlink/netns.ts';
import { learnedTraffic, PORT, withWorld } from './packets/fast-world.ts';
import { sendDatagrams, watchForward, watchInput } from './packets/watch.ts';

// TCX programs of others (kernel 6.6) do not show among the filters of a link. They run before these, so that what they
// decide holds for each packet of a learned flow.

const BPF_PROG_ATTACH = 8;
const BPF_PROG_DETACH = 9;
const ATTACH_TYPES = { ingress: 46, egress: 47 } as const;
const TC_ACT_SHOT = 2;

const COUNT = 200;
const BYTES = 300;
/** Ethernet, IPv4, UDP. */
const FRAME_BYTES = 14 + 20 + 8 + BYTES;

/** Drops frames of one length. TC_ACT_UNSPEC is TCX_NEXT. */
const DROP_LENGTH: readonly SourceLine[] = [
  load(32, 'r2', 'r1', SKB.len),
  move('r0', TC_ACT_UNSPEC),
  jumpIf('r2', '!=', FRAME_BYTES, 'out'),
  move('r0', TC_ACT_SHOT),
  label('out'),
  exit(),
];

test('fast path: a TCX program of others holds for learned flows at once, and is not passed over', async (t) => {
  await withWorld(async (world) => {
    const { netns, enis } = world.node('n1');
    await (await learnedTraffic(t, world, 'a1', 'c1')).finish();
    const [a1, c1] = [world.pod('a1'), world.pod('c1')];
    using node = openNetns(netns.path);
    using program = loadProgram('others_drop', assemble(DROP_LENGTH, {}), 'GPL');
    const send = async (): Promise<{ arrived: number; slow: number }> => {
      const slow = await watchForward(netns, `udp length ${BYTES + 8}`);
      const arrived = await watchInput(c1.netns, PORT, BYTES);
      await sendDatagrams(a1.netns, { from: a1.ips[4], to: c1.ips[4], port: PORT, bytes: BYTES, count: COUNT });
      return { arrived: await arrived(), slow: await slow() };
    };
    const places = [
      [a1.network.hostVeth.ifindex ?? 0, 'ingress'],
      [enis[0]?.ifindex ?? 0, 'egress'],
    ] as const;
    for (const [ifindex, direction] of places) {
      const before = await send();
      t.is(before.arrived, COUNT, `before, ${direction}`);
      t.true(before.slow < COUNT / 2, 'the flow is learned');
      const call = (command: number, what: string): number =>
        withNetns(node, () =>
          callBpf(command, new BpfAttr(32).u32(0, ifindex, program.fd, ATTACH_TYPES[direction]), what),
        );
      call(BPF_PROG_ATTACH, 'attach a TCX program');
      t.is((await send()).arrived, 0, `with the program at ${direction}`);
      call(BPF_PROG_DETACH, 'detach a TCX program');
      t.is((await send()).arrived, COUNT, `after, ${direction}`);
    }
  });
});
