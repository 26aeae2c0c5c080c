import test, { type ExecutionContext } from 'ava';
import { chooseNetwork } from '../../../agent/direct/choose-network.ts';
import type { NetworkMode, NetworkModeLookup } from '../../../agent/pods/network-mode-lookup.ts';
import { openNetworkModeLookup } from '../../../agent/pods/network-mode-lookup.ts';
import { podRecordOf } from '../../../agent/pods/pod-record.ts';
import type { KubeClient, KubeObject } from '../../../kube/kube-client.ts';
import { addOf, createTestNode } from '../use-cases/fixtures.ts';

const DIRECT = { enis: [], warm: { min: 1, max: 1, limit: 2 } };
const NO_SIGNAL = new AbortController().signal;

type Given = {
  readonly known?: NetworkMode;
  readonly asked?: NetworkMode | { readonly why: string };
  readonly plugin?: 'route-eni' | 'direct-eni';
  readonly hasDirect?: boolean;
};

async function choose(t: ExecutionContext, { known, asked, plugin = 'route-eni', hasDirect = true }: Given) {
  const node = createTestNode(1);
  t.teardown(() => node.close());
  const word: NetworkModeLookup = { cached: () => known, fetch: async () => asked ?? { why: 'nobody answers' } };
  node.state.networkModeLookup = word;
  if (hasDirect && node.state.supply !== undefined) node.state.supply = { ...node.state.supply, direct: DIRECT };
  const deadlineAtBootMs = Number.POSITIVE_INFINITY;
  const command = { ...addOf(1), deadlineAtBootMs, plugin, podNamespace: 'default', podName: 'web-0', podUid: 'u' };
  const { command: chosen, needsClaim } = await chooseNetwork(node.deps, command, NO_SIGNAL);
  return `${chosen.plugin}${needsClaim ? ', its own' : ''}`;
}

test('chooseNetwork: what the Pod asks for goes before the configuration by which it came', async (t) => {
  t.is(await choose(t, { known: { isDirect: true, needsClaim: false } }), 'direct-eni');
  t.is(await choose(t, { known: { isDirect: true, needsClaim: true } }), 'direct-eni, its own');
  t.is(await choose(t, { known: { isDirect: undefined, needsClaim: false } }), 'route-eni');
  t.is(
    await choose(t, { known: { isDirect: undefined, needsClaim: true }, plugin: 'direct-eni' }),
    'direct-eni, its own',
  );
});

test('chooseNetwork: asks for a Pod that is not known, where whole ENIs are served, and only there', async (t) => {
  t.is(await choose(t, { asked: { isDirect: true, needsClaim: true } }), 'direct-eni, its own');
  t.is(await choose(t, { hasDirect: false }), 'route-eni');
  await t.throwsAsync(choose(t, {}), { message: /it is not known yet whether default\/web-0 needs an ENI of its own/ });
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
      { find: () => (inView === undefined ? undefined : podRecordOf(inView)) },
      clock,
    );
  const id = { namespace: 'default', name: 'web-0', uid: 'u1' };
  const direct = { 'tke.cloud.tencent.com/networks': 'tke-direct-eni' };
  t.deepEqual(await word(pod('u1', direct)).fetch(id, NO_SIGNAL), { isDirect: true, needsClaim: false });
  t.deepEqual(await word(pod('u1', {})).fetch(id, NO_SIGNAL), { isDirect: undefined, needsClaim: false });
  t.like(await word(pod('u2', direct)).fetch(id, NO_SIGNAL), { why: 'the API server knows another Pod of its name' });
  t.like(await word(undefined).fetch(id, NO_SIGNAL), { why: 'the API server knows no such Pod' });
  t.deepEqual(word(undefined, pod('u1', direct)).cached(id), { isDirect: true, needsClaim: false });
  t.is(word(undefined, pod('u2', direct)).cached(id), undefined);
});
