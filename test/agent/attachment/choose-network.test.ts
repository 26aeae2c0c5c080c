import test, { type ExecutionContext } from 'ava';
import { CniFailureError } from '../../../agent/api/cni-failure.ts';
import { chooseNetwork, OtherNetworkError } from '../../../agent/attachment/choose-network.ts';
import type { Lease } from '../../../agent/journal/lease.ts';
import { kubePodOf } from '../../../agent/pods/kube-pod.ts';
import type { NetworkMode, NetworkModeLookup } from '../../../agent/pods/network-mode-lookup.ts';
import { openNetworkModeLookup } from '../../../agent/pods/network-mode-lookup.ts';
import type { KubeClient, KubeObject } from '../../../kube/kube-client.ts';
import { sampleLease } from '../pool/supply-sample.ts';
import { addOf, createTestNode } from '../use-cases/fixtures.ts';

const DIRECT = { enis: [], warm: { min: 1, max: 1, limit: 2 } };
const NO_SIGNAL = new AbortController().signal;

type Given = {
  readonly known?: NetworkMode;
  readonly asked?: NetworkMode | { readonly why: string };
  readonly plugin?: 'route-eni' | 'direct-eni' | 'ipam';
  readonly hasDirect?: boolean;
  readonly isBridgeDefault?: boolean;
  readonly held?: Lease;
  readonly delegateConfDir?: string;
  /** What chains cilium-cni. */
  readonly chain?: string;
  readonly isCiliumPool?: boolean;
  readonly ifName?: string;
};

async function choose(
  t: ExecutionContext,
  {
    known,
    asked,
    plugin = 'route-eni',
    hasDirect = true,
    isBridgeDefault = false,
    held,
    delegateConfDir = '',
    chain,
    isCiliumPool = false,
    ifName = 'eth0',
  }: Given,
) {
  const node = createTestNode(1);
  t.teardown(() => node.close());
  const word: NetworkModeLookup = { cached: () => known, fetch: async () => asked ?? { why: 'nobody answers' } };
  node.state.networkModeLookup = word;
  if (hasDirect && node.state.supply !== undefined) node.state.supply = { ...node.state.supply, direct: DIRECT };
  node.state.isBridgeDefault = isBridgeDefault;
  if (held !== undefined) node.state.leases.set('c1/eth0', held);
  const deps = {
    ...node.deps,
    settings: { ...node.deps.settings, delegateConfDir, isCiliumPool },
    ciliumChain: () => chain,
  };
  const deadlineAtBootMs = Number.POSITIVE_INFINITY;
  const command = {
    ...addOf(1),
    ifName,
    deadlineAtBootMs,
    plugin,
    podNamespace: 'default',
    podName: 'web-0',
    podUid: 'u',
  };
  const { command: chosen, needsClaim } = await chooseNetwork(deps, command, NO_SIGNAL);
  return `${chosen.plugin}${needsClaim ? ', its own' : ''}`;
}

test('chooseNetwork: what the Pod asks for goes before the configuration by which it came', async (t) => {
  t.is(await choose(t, { known: { network: 'direct-eni', needsClaim: false } }), 'direct-eni');
  t.is(await choose(t, { known: { network: 'direct-eni', needsClaim: true } }), 'direct-eni, its own');
  t.is(await choose(t, { known: { network: undefined, needsClaim: false } }), 'route-eni');
  t.is(
    await choose(t, { known: { network: undefined, needsClaim: true }, plugin: 'direct-eni' }),
    'direct-eni, its own',
  );
});

test('chooseNetwork: held lease, annotation, configuration, default: in this order', async (t) => {
  const none: NetworkMode = { network: undefined, needsClaim: false };
  const named = (network: NetworkMode['network']): NetworkMode => ({ network, needsClaim: false });
  const held = (plugin: Lease['plugin']): Lease =>
    sampleLease('c1', 'eni-1', ['10.0.0.10'], { plugin, state: 'active' });
  t.is(await choose(t, { known: named('bridge') }), 'bridge');
  t.is(await choose(t, { known: none, isBridgeDefault: true }), 'bridge');
  t.is(await choose(t, { known: named('route-eni'), isBridgeDefault: true }), 'route-eni');
  t.is(await choose(t, { known: named('direct-eni'), isBridgeDefault: true }), 'direct-eni');
  t.is(await choose(t, { known: none, isBridgeDefault: true, plugin: 'direct-eni' }), 'direct-eni');
  t.is(await choose(t, { known: named('bridge'), held: held('route-eni') }), 'route-eni');
  t.is(await choose(t, { known: none, held: held('bridge') }), 'bridge');
  await t.throwsAsync(choose(t, { isBridgeDefault: true, hasDirect: false }), {
    message: /not known yet which network/,
  });
});

test('chooseNetwork: refuses exclusive ENIs and GlobalRoute behind a main plugin of others, and nothing else', async (t) => {
  const none: NetworkMode = { network: undefined, needsClaim: false };
  for (const [network, what] of [
    ['direct-eni', 'an exclusive ENI (tke-direct-eni)'],
    ['bridge', 'GlobalRoute (tke-bridge)'],
  ] as const) {
    const error = await t.throwsAsync(choose(t, { known: { ...none, network }, plugin: 'ipam' }), {
      instanceOf: CniFailureError,
    });
    t.is(error?.code, 7);
    t.true(
      error?.message.startsWith(`default/web-0 asks for ${what}, which its network net cannot give`),
      error?.message,
    );
  }
  t.is(await choose(t, { known: none, plugin: 'ipam' }), 'ipam');
  t.is(await choose(t, { known: { ...none, network: 'route-eni' }, plugin: 'ipam' }), 'ipam');
  t.is(await choose(t, { known: none, plugin: 'ipam', isBridgeDefault: true }), 'ipam', 'its conf says so');
  t.is(await choose(t, { known: { ...none, fault: 'other-net' }, plugin: 'ipam' }), 'ipam', "the main plugin's name");
  t.is(
    await choose(t, { known: { ...none, network: 'bridge' }, plugin: 'ipam', ifName: 'net1' }),
    'ipam',
    'a further link',
  );
  const held = sampleLease('c1', 'eni-1', ['10.0.0.10'], { plugin: 'ipam', state: 'active' });
  t.is(await choose(t, { known: { ...none, network: 'direct-eni' }, plugin: 'ipam', held }), 'ipam', 'asked for later');
});

test('chooseNetwork: refuses exclusive ENIs and GlobalRoute where cilium-cni is chained, but not an ADD that is repeated', async (t) => {
  const none: NetworkMode = { network: undefined, needsClaim: false };
  const chain = '/etc/cni/net.d/05-cilium.conflist';
  for (const [given, what] of [
    [{ known: { ...none, network: 'direct-eni' } }, 'an exclusive ENI (tke-direct-eni)'],
    [{ known: none, plugin: 'direct-eni' }, 'an exclusive ENI (tke-direct-eni)'],
    [{ known: { ...none, network: 'bridge' } }, 'GlobalRoute (tke-bridge)'],
    [{ known: none, isBridgeDefault: true }, 'GlobalRoute (tke-bridge)'],
  ] as const) {
    const error = await t.throwsAsync(choose(t, { ...given, chain }), { instanceOf: CniFailureError });
    t.is(error?.code, 7);
    t.true(error?.message.startsWith(`default/web-0 gets ${what}, and ${chain} chains cilium-cni`), error?.message);
  }
  t.is(await choose(t, { known: none, chain }), 'route-eni');
  t.is(await choose(t, { known: none, plugin: 'ipam', chain }), 'ipam');
  const held = sampleLease('c1', 'eni-1', ['10.0.0.10'], { plugin: 'direct-eni', state: 'active' });
  t.is(await choose(t, { known: none, held, chain }), 'direct-eni');
});

test('chooseNetwork: a node with the pool of a CiliumNode has addresses alone', async (t) => {
  const none: NetworkMode = { network: undefined, needsClaim: false };
  for (const network of ['direct-eni', 'bridge'] as const) {
    const error = await t.throwsAsync(choose(t, { known: { ...none, network }, isCiliumPool: true }));
    t.regex(error?.message ?? '', /has the addresses of its CiliumNode alone/);
  }
  t.is(await choose(t, { known: none, isCiliumPool: true }), 'route-eni');
});

test('chooseNetwork: behind a main plugin too a Pod that is not known is asked for, where there is a choice', async (t) => {
  const asked = { network: 'direct-eni', needsClaim: false } as const;
  await t.throwsAsync(choose(t, { asked, plugin: 'ipam' }), { message: /asks for an exclusive ENI/ });
  t.is(await choose(t, { plugin: 'ipam' }), 'ipam', 'the API server does not answer');
  t.is(await choose(t, { plugin: 'ipam', hasDirect: false }), 'ipam');
});

test('chooseNetwork: a wrong annotation fails the ADD with what is accepted', async (t) => {
  const fault = 'tke.cloud.tencent.com/networks: expected one of tke-bridge, got "flannel"';
  const error = await t.throwsAsync(choose(t, { known: { network: undefined, needsClaim: false, fault } }), {
    instanceOf: CniFailureError,
    message: `no network can be chosen for default/web-0: ${fault}`,
  });
  t.is(error?.code, 7);
});

test('chooseNetwork: asks for a Pod that is not known, where whole ENIs are served, and only there', async (t) => {
  t.is(await choose(t, { asked: { network: 'direct-eni', needsClaim: true } }), 'direct-eni, its own');
  t.is(await choose(t, { hasDirect: false }), 'route-eni');
  await t.throwsAsync(choose(t, {}), { message: /it is not known yet which network default\/web-0 needs/ });
  await t.throwsAsync(choose(t, { hasDirect: false, plugin: 'direct-eni' }));
});

test('openNetworkModeLookup: reads a Pod from the API server, and believes no other of its name', async (t) => {
  const pod = (uid: string, annotations: Record<string, string>): KubeObject => ({
    ...{ apiVersion: 'v1', kind: 'Pod' },
    metadata: { name: 'web-0', namespace: 'default', uid, annotations },
  });
  const clock = {
    ...{ nowMs: () => 0, monotonicMs: () => 0, bootMs: () => 0 },
    sleep: () => new Promise<void>(() => {}),
  };
  const word = (found: KubeObject | undefined, inView?: KubeObject) =>
    openNetworkModeLookup(
      { get: async () => found } as unknown as Pick<KubeClient, 'get'>,
      { find: () => (inView === undefined ? undefined : kubePodOf(inView)) },
      { findUnanswered: () => undefined },
      clock,
    );
  const id = { namespace: 'default', name: 'web-0', uid: 'u1' };
  const direct = { 'tke.cloud.tencent.com/networks': 'tke-direct-eni' };
  t.deepEqual(await word(pod('u1', direct)).fetch(id, NO_SIGNAL), { network: 'direct-eni', needsClaim: false });
  t.deepEqual(await word(pod('u1', {})).fetch(id, NO_SIGNAL), { network: undefined, needsClaim: false });
  t.like(await word(pod('u2', direct)).fetch(id, NO_SIGNAL), { why: 'the API server knows another Pod of its name' });
  t.like(await word(undefined).fetch(id, NO_SIGNAL), { why: 'the API server knows no such Pod' });
  t.deepEqual(word(undefined, pod('u1', direct)).cached(id), { network: 'direct-eni', needsClaim: false });
  t.is(word(undefined, pod('u2', direct)).cached(id), undefined);
  const wrong = pod('u1', { 'tke.cloud.tencent.com/networks': 'tke-bridge,tke-route-eni' });
  t.regex(word(undefined, wrong).cached(id)?.fault ?? '', /a list of several networks is not served/);
});

test('chooseNetwork: a network of others goes to the executable with --delegate-conf-dir, and is a fault without', async (t) => {
  const known: NetworkMode = { network: undefined, needsClaim: false, fault: 'expected ours', otherNetwork: 'storage' };
  const text = 'no network can be chosen for default/web-0: expected ours';
  await t.throwsAsync(choose(t, { known }), { instanceOf: CniFailureError, message: text });
  const delegateConfDir = '/etc/cni/net.d/multus';
  const error = await t.throwsAsync(choose(t, { known, delegateConfDir }), {
    instanceOf: OtherNetworkError,
    message: text,
  });
  t.is(error?.network, 'storage');
  const { otherNetwork: _, ...refused } = known;
  await t.throwsAsync(choose(t, { known: refused, delegateConfDir }), { instanceOf: CniFailureError });
  const held = sampleLease('c1', 'eni-1', ['10.0.0.10'], { state: 'active' });
  t.is(await choose(t, { known, held, delegateConfDir }), 'route-eni', 'a Pod that has an address keeps it');
});

test('chooseNetwork: with --delegate-conf-dir an unknown Pod is asked for', async (t) => {
  const given = { hasDirect: false, asked: { network: undefined, needsClaim: false, fault: 'f', otherNetwork: 'a' } };
  t.is(await choose(t, given), 'route-eni');
  await t.throwsAsync(choose(t, { ...given, delegateConfDir: '/x' }), { instanceOf: OtherNetworkError });
});
