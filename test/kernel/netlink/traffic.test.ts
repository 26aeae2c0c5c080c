import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import test from 'ava';
import { withNetns } from '../../../netlink/netns.ts';
import { qdiscLimits } from '../../../netlink/qdisc-message.ts';
import { filterEffect } from '../../../netlink/traffic-filter-message.ts';
import { listXfrmPolicies } from '../../../netlink/xfrm.ts';
import { bpfObject } from '../../support/bpf-object.ts';
import { createTempDir } from '../../support/temp-dir.ts';
import { TestNetns } from './support/test-netns.ts';

// What iproute2 and tc made, as our decoders read it.

const INGRESS = 0xfffffff2;
const EGRESS = 0xfffffff3;

/** Runs `tc` in a namespace; it must succeed. */
function tc(host: TestNetns, line: string): void {
  execFileSync('tc', ['-n', host.name, ...line.split(' ')], { stdio: 'pipe', timeout: LONGEST_COMMAND_MS });
}

const LONGEST_COMMAND_MS = 20_000;

test('link.list: has the XDP program of a link', (t) => {
  using host = new TestNetns();
  const v0 = host.addVethPair();
  const dir = createTempDir('xdp');
  try {
    t.is(host.rtnl.link.get({ ifindex: v0 })?.xdp?.attached, 0);
    const path = dir.join('xdp.o');
    writeFileSync(path, bpfObject('xdp', 2));
    host.ip(`link set dev v0 xdpgeneric obj ${path} sec xdp`);
    const { xdp } = host.rtnl.link.get({ ifindex: v0 }) ?? {};
    t.is(xdp?.attached, 2);
    t.true((xdp?.programId ?? 0) > 0);
  } finally {
    dir.close();
  }
});

test('qdisc.list: has each discipline with what limits it', (t) => {
  using host = new TestNetns();
  const v0 = host.addVethPair();
  const v1 = host.rtnl.link.get({ ifname: 'v1' })?.ifindex ?? 0;
  tc(host, 'qdisc add dev v0 root tbf rate 1mbit burst 4000 latency 1ms');
  tc(host, 'qdisc add dev v0 clsact');
  tc(host, 'qdisc add dev v1 root handle 7: bfifo limit 5');
  const found = host.rtnl.qdisc.list().map((qdisc) => ({ ...qdisc, ...qdiscLimits(qdisc) }));
  t.like(
    found.find(({ kind }) => kind === 'tbf'),
    { ifindex: v0, parent: 0xffffffff, rate: 125_000, burst: 4_000 },
  );
  t.like(
    found.find(({ kind }) => kind === 'clsact'),
    { ifindex: v0, handle: 0xffff0000 },
  );
  t.like(
    found.find(({ kind }) => kind === 'bfifo'),
    { ifindex: v1, handle: 0x70000, limit: 5 },
  );
});

test('trafficFilter.list: has programs and actions, by place', (t) => {
  using host = new TestNetns();
  const v0 = host.addVethPair();
  const v1 = host.rtnl.link.get({ ifname: 'v1' })?.ifindex ?? 0;
  const dir = createTempDir('filter');
  try {
    const path = dir.join('tc.o');
    writeFileSync(path, bpfObject('tc', 2));
    tc(host, 'qdisc add dev v0 clsact');
    tc(host, `filter add dev v0 ingress bpf da obj ${path} sec tc`);
    tc(host, 'filter add dev v0 egress protocol all u32 match u32 0 0 action mirred egress redirect dev v1');
    const effectsAt = (parent: number) =>
      host.rtnl.trafficFilter
        .list({ ifindex: v0, parent })
        .map((filter) => ({ kind: filter.kind, ...filterEffect(filter) }));
    t.deepEqual(
      effectsAt(INGRESS).filter(({ program }) => program !== undefined),
      [{ kind: 'bpf', actions: [], program: 'tc.o:[tc]' }],
    );
    t.deepEqual(
      effectsAt(EGRESS).flatMap(({ actions }) => actions),
      [{ kind: 'mirred', control: 4, mirred: { how: 1, ifindex: v1 } }],
    );
    t.deepEqual(host.rtnl.trafficFilter.list({ ifindex: 9_999, parent: INGRESS }), [], 'a link that is gone');
  } finally {
    dir.close();
  }
});

test('listXfrmPolicies: has selector, direction, action and templates', (t) => {
  using host = new TestNetns();
  host.ip('xfrm policy add src 10.0.0.0/8 dst 10.2.0.0/16 proto tcp dport 80 dir fwd action block priority 9');
  host.ip('xfrm policy add dst fd00::/64 dir out tmpl src 10.0.0.1 dst 10.0.0.2 proto esp mode tunnel');
  const policies = withNetns(host.netns, listXfrmPolicies);
  t.is(policies.length, 2);
  t.like(
    policies.find(({ family }) => family === 2),
    { ...{ src: '10.0.0.0/8', dst: '10.2.0.0/16', proto: 6, dportMask: 0xffff }, dir: 2, action: 1, priority: 9 },
  );
  const protecting = policies.find(({ family }) => family === 10);
  t.like(protecting, { src: '::/0', dst: 'fd00::/64', dir: 1, action: 0 });
  t.is(protecting?.templates?.length, 64);
});
