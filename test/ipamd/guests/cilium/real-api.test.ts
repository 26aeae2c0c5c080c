import test, { type ExecutionContext } from 'ava';
import { type CiliumNodeEntry, decodeCiliumNode } from '../../../../ipamd/guests/cilium/cilium-node-entry.ts';
import { writePool, writeReleases } from '../../../../ipamd/guests/cilium/cilium-node-writer.ts';
import type { KubeClient, KubeObject } from '../../../../kube/kube-client.ts';
import { isKubeError } from '../../../../kube/kube-error.ts';
import { CILIUM_NODES, CUSTOM_RESOURCE_DEFINITIONS } from '../../../../kube/resource-types.ts';
import { startKubeApi } from '../../../../sim/kube-api/start-kube-api.ts';
import { openTestClient } from '../../../kube/kube-scene.ts';
import { startRealApi } from '../../../kube-api/real-api.ts';
import { CILIUM_NODE_DEFINITION } from '../../../support/cilium-node-definition.ts';
import { waitUntil } from '../../../support/wait-until.ts';

const NODE = 'n1';
const { signal } = new AbortController();
const assets = process.env['KUBE_ASSETS'];

/** Makes the definition and a CiliumNode as Cilium's agent makes it. */
async function makeNode(kube: KubeClient): Promise<CiliumNodeEntry> {
  await kube.create(CUSTOM_RESOURCE_DEFINITIONS, CILIUM_NODE_DEFINITION);
  const object: KubeObject = { apiVersion: 'cilium.io/v2', kind: 'CiliumNode', metadata: { name: NODE }, spec: {} };
  let made: KubeObject | undefined;
  const isServed = async (): Promise<boolean> => {
    made = await kube.create(CILIUM_NODES, object).catch((error: unknown) => {
      if (isKubeError(error, 'NOT_FOUND')) return undefined;
      throw error;
    });
    return made !== undefined;
  };
  await waitUntil(isServed, { what: 'the definition of CiliumNodes is served', timeoutMs: 30_000, everyMs: 200 });
  return decodeCiliumNode(made ?? object);
}

async function testWrites(t: ExecutionContext, kube: KubeClient): Promise<void> {
  const empty = await makeNode(kube);
  const read = async () => decodeCiliumNode((await kube.get(CILIUM_NODES, { name: NODE })) ?? t.fail('it is gone'));
  const pool = new Map([
    ['10.0.0.1', { resource: 'eni-1' }],
    ['10.0.0.2', { resource: 'eni-1', owner: 'shop/db-0' }],
  ]);
  const filled = await writePool(kube, empty, pool, signal);
  t.is(filled.kind, 'written');
  t.deepEqual([...(await read()).ipam.pool], [...pool]);
  t.is((await writePool(kube, empty, new Map(), signal)).kind, 'lost', 'decided on an older object');

  // As Cilium's agent writes: the status alone, by its subresource.
  const used = { status: { ipam: { used: { '10.0.0.1': { owner: 'router' } } } } };
  await kube.patch(CILIUM_NODES, { name: NODE }, { kind: 'merge', body: used, subresource: 'status' });
  const entries = new Map([['10.0.0.2', 'marked-for-release' as const]]);
  const before = filled.kind === 'written' ? filled.entry : empty;
  t.is((await writeReleases(kube, before, { entries, error: '' }, signal)).kind, 'lost', 'the agent wrote meanwhile');
  t.is((await writeReleases(kube, await read(), { entries, error: 'no free address' }, signal)).kind, 'written');
  const marked = await read();
  t.deepEqual([...marked.ipam.releases], [['10.0.0.2', 'marked-for-release']]);
  t.deepEqual([...marked.ipam.used], [['10.0.0.1', { owner: 'router' }]]);
  t.is(marked.ipam.operatorError, 'no free address');

  // An owner goes, an entry goes, a state goes.
  const left = new Map([['10.0.0.2', { resource: 'eni-1' }]]);
  t.is((await writePool(kube, marked, left, signal)).kind, 'written');
  const none = { entries: new Map([['10.0.0.2', undefined]]), error: '' };
  t.is((await writeReleases(kube, await read(), none, signal)).kind, 'written');
  const { ipam } = await read();
  t.deepEqual([...ipam.pool], [...left]);
  t.deepEqual([[...ipam.releases], ipam.operatorError], [[], '']);
}

test('the API server of the tests: writes of a CiliumNode', async (t) => {
  const server = await startKubeApi();
  t.teardown(() => server.close());
  const { client, close } = openTestClient({ url: server.url });
  t.teardown(close);
  await testWrites(t, client);
});

if (assets === undefined)
  test.skip('a real kube-apiserver: writes of a CiliumNode (set KUBE_ASSETS to a folder with one)', () => {});
else
  test('a real kube-apiserver: writes of a CiliumNode', async (t) => {
    t.timeout(180_000);
    const api = await startRealApi(assets);
    t.teardown(() => api.close());
    const { client, close } = openTestClient({ url: api.url, token: api.token, ca: api.ca });
    t.teardown(close);
    await testWrites(t, client);
  });
