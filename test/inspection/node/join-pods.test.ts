import test from 'ava';
import { joinPods } from '../../../inspection/node/join-pods.ts';
import { ifKnown, known, unknown } from '../../../inspection/node/known.ts';
import type { NodeFacts } from '../../../inspection/node/node-facts.ts';
import { nodeFixture } from '../../cli/commands/graph/node-fixture.ts';

const NOT_READ = unknown('not read', '');

test('joinPods: a Pod has the name and addresses of its lease, and both ends of its pair', (t) => {
  const facts = nodeFixture({ enis: 2, podsPerEni: 2, families: [4, 6] });
  const joined = joinPods(facts);
  t.deepEqual(
    joined.map(({ pod }) => pod.key),
    facts.pods.map(({ key }) => key),
  );
  for (const { pod, title, lease, ips, containerId, ifName, hostLink, podLink, isGr } of joined) {
    const recorded = ifKnown(pod.lease) ?? t.fail();
    t.is(lease, recorded);
    t.is(`${containerId}/${ifName}`, pod.key);
    t.is(title, `${recorded.podNamespace}/${recorded.podName}`);
    t.deepEqual(ips, [recorded.addresses[0]?.ip ?? '', recorded.addresses[1]?.ip ?? '']);
    t.is(hostLink?.ifindex, pod.hostIfindex ?? 0);
    t.is(podLink?.ifname, 'eth0');
    t.false(isGr);
  }
});

test('joinPods: without a lease the addresses are those inside, and else those that the host routes to the veth', (t) => {
  const facts = nodeFixture({ enis: 1, podsPerEni: 2, hasAgent: false });
  const blind: NodeFacts = { ...facts, pods: facts.pods.map((pod) => ({ ...pod, inside: NOT_READ })) };
  for (const { ips, podLink } of joinPods(blind)) {
    t.is(ips.length, 1);
    t.is(podLink, undefined);
  }
  t.deepEqual(
    joinPods(blind).map(({ ips }) => ips),
    joinPods(facts).map(({ ips }) => ips),
  );
});

test('joinPods: the title is the container id without a name, and has the interface unless it is eth0', (t) => {
  const facts = nodeFixture({ enis: 1, podsPerEni: 1 });
  const [pod] = facts.pods;
  const lease = ifKnown(pod?.lease ?? NOT_READ) ?? t.fail();
  const titleOf = (key: string, fact: NodeFacts['pods'][number]['lease']): string | undefined =>
    joinPods({ ...facts, pods: [{ key, lease: fact, hostIfindex: undefined, inside: NOT_READ }] })[0]?.title;
  t.is(titleOf('0123456789abcdef/eth0', NOT_READ), '0123456789abc');
  t.is(titleOf('0123456789abcdef/net1', NOT_READ), '0123456789abc net1');
  t.is(titleOf('0123456789abcdef/net1', known({ ...lease, podName: '' })), '0123456789abc net1');
  t.is(titleOf('0123456789abcdef/net1', known(lease)), `${lease.podNamespace}/${lease.podName} net1`);
});

test('joinPods: a Pod without a lease is a GlobalRoute Pod where its link is a port of a bridge', (t) => {
  const facts = nodeFixture({ enis: 1, podsPerEni: 2, hasAgent: false });
  const [first, second] = facts.pods;
  const veth = facts.host.links.find(({ ifindex }) => ifindex === first?.hostIfindex) ?? t.fail();
  const bridge = { ...veth, ifindex: 9000, ifname: 'cbr0', kind: 'bridge', ifalias: '' };
  const links = [...facts.host.links.map((link) => (link === veth ? { ...link, master: 9000 } : link)), bridge];
  const joined = joinPods({ ...facts, host: { ...facts.host, links } });
  t.true(joined.find(({ pod }) => pod.key === first?.key)?.isGr);
  t.false(joined.find(({ pod }) => pod.key === second?.key)?.isGr);
});
