import test from 'ava';
import { findPod } from '../../../inspection/node/find-pod.ts';
import { joinPods, type NodePod } from '../../../inspection/node/join-pods.ts';
import { ifKnown, known } from '../../../inspection/node/known.ts';
import type { NodeFacts } from '../../../inspection/node/node-facts.ts';
import { UserError } from '../../../runtime/user-error.ts';
import { nodeFixture } from '../../cli/commands/graph/node-fixture.ts';

const NODE = nodeFixture({ enis: 2, podsPerEni: 3, families: [4, 6] });
const [POD] = NODE.pods;
const LEASE = POD === undefined ? undefined : ifKnown(POD.lease);
const VETH = NODE.host.links.find(({ ifindex }) => ifindex === POD?.hostIfindex)?.ifname ?? '';

function find(facts: NodeFacts, word: string): NodePod {
  return findPod(joinPods(facts), facts.agent, word);
}

const WORDS: Readonly<Record<string, string>> = {
  'namespace/name': `${LEASE?.podNamespace}/${LEASE?.podName}`,
  'its name alone': LEASE?.podName ?? '',
  'its IPv4 address': LEASE?.addresses[0]?.ip ?? '',
  'its IPv6 address in capitals': LEASE?.addresses[1]?.ip.toUpperCase() ?? '',
  'its container id': LEASE?.containerId ?? '',
  'its key': POD?.key ?? '',
  'its host veth': VETH,
};

for (const [what, word] of Object.entries(WORDS)) {
  test(`findPod: finds a Pod by ${what}`, (t) => {
    t.not(word, '');
    t.is(find(NODE, word).pod.key, POD?.key ?? '');
  });
}

test('findPod: finds a Pod by address and veth without a journal', (t) => {
  const facts = nodeFixture({ enis: 1, podsPerEni: 2, hasAgent: false });
  const [pod] = joinPods(facts);
  t.is(pod?.ips.length, 1);
  t.is(find(facts, pod?.ips[0] ?? '').pod, pod?.pod ?? t.fail());
  t.is(find(facts, pod?.hostLink?.ifname ?? '').pod, pod?.pod ?? t.fail());
});

test('findPod: prefers the sandbox that lives to the one that is taken down', (t) => {
  const [old, ...others] = NODE.pods;
  const lease = ifKnown(old?.lease ?? t.fail());
  if (old === undefined || lease === undefined) return;
  const leaving = {
    ...old,
    key: 'f00d/eth0',
    lease: known({ ...lease, containerId: 'f00d', state: 'releasing' as const }),
  };
  const facts = { ...NODE, pods: [leaving, old, ...others] };
  t.is(find(facts, `${lease.podNamespace}/${lease.podName}`).pod.key, old.key);
});

test('findPod: names all that fit, and what would tell them apart', (t) => {
  const error = t.throws(() => find(NODE, '0000'), { instanceOf: UserError });
  t.is(error?.code, 'USAGE');
  for (const { title } of joinPods(NODE)) t.true(error?.message.includes(title));
  t.regex(error?.next ?? '', /container id/);
});

test('findPod: says what to do when there is none, and why names are not known', (t) => {
  const error = t.throws(() => find(NODE, 'nobody'), { instanceOf: UserError });
  t.is(error?.code, 'NOT_FOUND');
  t.regex(error?.next ?? '', /tke-eni pods/);
  const blind = nodeFixture({ enis: 1, podsPerEni: 1, hasAgent: false });
  t.regex(t.throws(() => find(blind, 'default/web-0'))?.message ?? '', /journal/);
});
