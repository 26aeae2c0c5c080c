import test from 'ava';
import { CliError } from '../../../cli/command/cli-error.ts';
import { findPod, podAddresses, podTitle } from '../../../cli/node/find-pod.ts';
import { ifKnown, known } from '../../../cli/node/known.ts';
import type { NodeFacts } from '../../../cli/node/node-facts.ts';
import { nodeFixture } from '../commands/graph/node-fixture.ts';

const NODE = nodeFixture({ enis: 2, podsPerEni: 3, families: [4, 6] });
const [POD] = NODE.pods;
const LEASE = POD === undefined ? undefined : ifKnown(POD.lease);
const VETH = NODE.host.links.find(({ ifindex }) => ifindex === POD?.hostIfindex)?.ifname ?? '';

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
    t.is(findPod(NODE, word).key, POD?.key ?? '');
  });
}

test('findPod: finds a Pod by address and veth without a journal', (t) => {
  const facts = nodeFixture({ enis: 1, podsPerEni: 2, hasAgent: false });
  const [pod] = facts.pods;
  const ips = podAddresses(facts, pod ?? t.fail());
  t.is(ips.length, 1);
  t.is(findPod(facts, ips[0] ?? '').key, pod?.key ?? '');
  t.regex(podTitle(pod ?? t.fail()), /^[0-9a-f]{13}$/);
});

test('findPod: knows the addresses that the host routes to a Pod whose inside is not known', (t) => {
  const facts = nodeFixture({ enis: 1, podsPerEni: 2, hasAgent: false });
  const blind: NodeFacts = { ...facts, pods: facts.pods.map((pod) => ({ ...pod, inside: pod.lease as never })) };
  t.deepEqual(
    blind.pods.map((pod) => podAddresses(blind, pod)),
    facts.pods.map((pod) => podAddresses(facts, pod)),
  );
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
  t.is(findPod(facts, `${lease.podNamespace}/${lease.podName}`).key, old.key);
});

test('findPod: names all that fit, and what would tell them apart', (t) => {
  const error = t.throws(() => findPod(NODE, '0000'), { instanceOf: CliError });
  t.is(error?.code, 'USAGE');
  for (const pod of NODE.pods) t.true(error?.message.includes(podTitle(pod)));
  t.regex(error?.next ?? '', /container id/);
});

test('findPod: says what to do when there is none, and why names are not known', (t) => {
  const error = t.throws(() => findPod(NODE, 'nobody'), { instanceOf: CliError });
  t.is(error?.code, 'NOT_FOUND');
  t.regex(error?.next ?? '', /tke-eni pods/);
  const blind = nodeFixture({ enis: 1, podsPerEni: 1, hasAgent: false });
  t.regex(t.throws(() => findPod(blind, 'default/web-0'))?.message ?? '', /journal/);
});
