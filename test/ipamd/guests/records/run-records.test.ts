import test from 'ava';
import { RESOURCE_KINDS } from '../../../../crd/kinds.ts';
import { decodeNec } from '../../../../ipamd/cache/decode-nec.ts';
import { createPodDecoder, POD_INDEXES } from '../../../../ipamd/cache/pod-facts.ts';
import { CLAIM_INDEXES, decodeClaim, decodeVip, VIP_INDEXES } from '../../../../ipamd/cache/record-facts.ts';
import { installDefinitions } from '../../../../ipamd/crds/install-definitions.ts';
import { runRecords } from '../../../../ipamd/guests/records/run-records.ts';
import { createIpamdMetrics } from '../../../../ipamd/observability/metrics.ts';
import { openInformer } from '../../../../kube/informer.ts';
import type { KubeObject } from '../../../../kube/kube-client.ts';
import { NODE_ENI_CONFIGS, PODS, VPC_IP_CLAIMS, VPC_IPS } from '../../../../kube/resource-types.ts';
import { silentLogger } from '../../../../runtime/log.ts';
import { ADMIN, serviceAccountUser } from '../../../../sim/kube-api/auth/tokens.ts';
import { startInProcessApi } from '../../../../sim/kube-api/in-process.ts';
import { seedClusterRole } from '../../../../sim/kube-api/seed-roles.ts';
import { dispatch } from '../../../../sim/kube-api/verbs/dispatch.ts';
import { seededRandom } from '../../../../sim/support/seeded-random.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { sampleStatus } from './records-world.ts';

const API_VERSION = 'networking.tke.cloud.tencent.com/v1';
const BIND = { group: 'rbac.authorization.k8s.io', version: 'v1', isNamespaced: false };

/** An API server with our kinds, and ipamd's records kept with the rights of its published role. */
async function scene(collectsGarbage = true, hasClaims = true) {
  const clock = new VirtualClock();
  const server = startInProcessApi({
    clock,
    random: seededRandom(2),
    collectsGarbage,
    authorization: 'rbac',
    latencyMs: 5,
  });
  const kube = server.client();
  const never = new AbortController().signal;
  await clock.run(installDefinitions({ client: kube, clock, log: silentLogger, kinds: RESOURCE_KINDS }, never));
  // A role of the seeds, read from YAML: an object of the API.
  const role = seedClusterRole('tke-eni-ipamd') as KubeObject;
  await clock.run(kube.create({ ...BIND, plural: 'clusterroles', kind: 'ClusterRole' }, role));
  await clock.run(
    kube.create(
      { ...BIND, plural: 'clusterrolebindings', kind: 'ClusterRoleBinding' },
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRoleBinding',
        metadata: { name: 'ipamd' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'tke-eni-ipamd' },
        subjects: [{ kind: 'ServiceAccount', namespace: 'kube-system', name: 'tke-eni-ipamd' }],
      },
    ),
  );
  const client = server.client({ user: serviceAccountUser('kube-system', 'tke-eni-ipamd'), userAgent: 'ipamd' });
  const writes: string[] = [];
  /** Starts keeping records; the returned function stops it. */
  const start = (): (() => Promise<void>) => {
    const controller = new AbortController();
    const deps = { client, clock, log: silentLogger, random: seededRandom(1) };
    const informers = {
      pods: openInformer({ ...deps, type: PODS, decode: createPodDecoder(), indexes: POD_INDEXES }),
      necs: openInformer({ ...deps, type: NODE_ENI_CONFIGS, decode: decodeNec }),
      vips: openInformer({ ...deps, type: VPC_IPS, decode: decodeVip, indexes: VIP_INDEXES }),
      claims: openInformer({ ...deps, type: VPC_IP_CLAIMS, decode: decodeClaim, indexes: CLAIM_INDEXES }),
    };
    const metrics = createIpamdMetrics(clock, { release: 'test' });
    metrics.recordWrites.inc = ({ kind, result }) => writes.push(`${kind} ${result}`);
    const runs = [
      ...Object.values(informers).map((informer) => informer.start(controller.signal)),
      runRecords(
        {
          ...deps,
          ...informers,
          kube: client,
          hasClaims,
          config: { kubeClientQps: 200, recordDelayMs: 500 },
          observer: {},
          metrics,
        },
        controller.signal,
      ),
    ];
    return async () => {
      controller.abort(new Error('the term is over'));
      await clock.run(Promise.allSettled(runs));
    };
  };
  const addNode = (name: string, ips: readonly string[]) =>
    clock.run(
      kube.create(NODE_ENI_CONFIGS, {
        apiVersion: API_VERSION,
        kind: 'NodeENIConfig',
        metadata: { name },
        status: { supplyEpoch: 1, ...withHome(sampleStatus(ips)) },
      }),
    );
  const addPod = async (name: string, nodeName: string, ip: string, namespace = 'default') => {
    const spec = { nodeName, containers: [{ name: 'c', image: 'i' }] };
    await clock.run(kube.create(PODS, { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace }, spec }));
    const body = { status: { phase: 'Running', podIP: ip, podIPs: [{ ip }] } };
    await clock.run(kube.patch(PODS, { name, namespace }, { kind: 'merge', body, subresource: 'status' }));
  };
  /** As a kubelet does when the containers have ended. */
  const removePod = async (name: string): Promise<void> => {
    const resource = server.api.registry.find('', 'v1', 'pods');
    if (resource === undefined) throw new Error('no Pods');
    const target = { resource, namespace: 'default', name, subresource: '' };
    const query = new URLSearchParams('gracePeriodSeconds=0');
    dispatch(server.api, 'delete', { ...target, query, user: ADMIN, userAgent: 'kubelet', contentType: '', body: {} });
    await clock.advance(1);
  };
  const names = (plural: string) => server.objects(plural, 'networking.tke.cloud.tencent.com').map(nameOf).toSorted();
  return { clock, server, kube, writes, start, addNode, addPod, removePod, names };
}

function withHome(status: ReturnType<typeof sampleStatus>) {
  const home = { primaryIP: '10.0.0.2', gateway: '10.0.0.1', subnetCIDR: '10.0.0.0/16' };
  return { ...status, eniInfos: (status.eniInfos ?? []).map((eni) => ({ ...eni, ...home })) };
}

const nameOf = (object: Pick<KubeObject, 'metadata'>): string => object.metadata.name;
const ipOf = (index: number): string => `10.0.1.${index}`;

test('runRecords: forty Pods cost three writes each, none in vain, with the rights of the published role', async (t) => {
  const { clock, writes, start, addNode, addPod, removePod, names } = await scene();
  const indexes = Array.from({ length: 40 }, (_, index) => index);
  await addNode('n1', indexes.map(ipOf));
  const stop = start();
  await clock.advance(1_000);
  for (const index of indexes) await addPod(`p-${index}`, 'n1', ipOf(index));
  await clock.advance(20_000);
  t.is(names('vpcips').length, 40);
  t.is(names('vpcipclaims').length, 40);
  for (const index of indexes) await removePod(`p-${index}`);
  await clock.advance(120_000);
  t.deepEqual([...names('vpcips'), ...names('vpcipclaims')], []);
  const counts = Object.fromEntries(
    [...new Set(writes)].map((one) => [one, writes.filter((other) => other === one).length]),
  );
  t.deepEqual(counts, { 'create-claim written': 40, 'create-vip written': 40, 'delete-vip written': 40 });
  await stop();
});

test('runRecords: a start mends what happened while nobody looked, and touches nothing of others', async (t) => {
  const { clock, kube, writes, start, addNode, addPod, removePod, names } = await scene();
  await addNode('n1', ['10.0.1.1', '10.0.1.2', '10.0.1.3']);
  await addPod('a', 'n1', '10.0.1.1');
  await addPod('b', 'n1', '10.0.1.2');
  await clock.run(
    kube.create(VPC_IPS, {
      apiVersion: API_VERSION,
      kind: 'VpcIP',
      metadata: { name: '10.0.1.9', labels: { 'tke.cloud.tencent.com/node-name': 'n1' } },
      spec: { type: 'Pod', ip: '10.0.1.9', claimRef: { namespace: 'default', name: 'static-0' } },
    }),
  );
  const stop = start();
  await clock.advance(5_000);
  t.deepEqual(names('vpcips'), ['10.0.1.1', '10.0.1.2', '10.0.1.9']);
  await stop();
  await removePod('a');
  await addPod('c', 'n1', '10.0.1.3');
  // The node goes with its object; its Pods' records go with the Pods.
  await clock.run(kube.delete(NODE_ENI_CONFIGS, { name: 'n1' }));
  await removePod('b');
  await addNode('n1', ['10.0.1.3']);
  writes.length = 0;
  const stopAgain = start();
  await clock.advance(5_000);
  t.deepEqual(names('vpcips'), ['10.0.1.3', '10.0.1.9']);
  t.deepEqual(names('vpcipclaims'), ['c']);
  t.deepEqual(writes.toSorted(), [
    'create-claim written',
    'create-vip written',
    'delete-vip written',
    'delete-vip written',
  ]);
  await stopAgain();
});

test('runRecords: a claim that no collector takes is deleted after a while', async (t) => {
  const { clock, start, addNode, addPod, removePod, names } = await scene(false);
  await addNode('n1', ['10.0.1.1']);
  await addPod('a', 'n1', '10.0.1.1');
  const stop = start();
  await clock.advance(5_000);
  await removePod('a');
  await clock.advance(50_000);
  t.deepEqual(names('vpcipclaims'), ['a']);
  await clock.advance(80_000);
  t.deepEqual([...names('vpcips'), ...names('vpcipclaims')], []);
  await stop();
});

test('runRecords: goes on through refusals, conflicts and lost answers, and ends up right', async (t) => {
  const { clock, server, start, addNode, addPod, removePod, names } = await scene();
  const indexes = Array.from({ length: 12 }, (_, index) => index);
  await addNode('n1', indexes.map(ipOf));
  const stop = start();
  await clock.advance(1_000);
  const about = { userAgent: 'ipamd', resources: ['vpcips'] };
  const ends = [
    server.api.faults.add({ ...about, chance: 0.3, action: { kind: 'drop-after' } }),
    server.api.faults.add({ ...about, chance: 0.2, action: { kind: 'drop-before' } }),
  ];
  for (const index of indexes) await addPod(`p-${index}`, 'n1', ipOf(index));
  await clock.advance(60_000);
  for (const index of indexes.slice(0, 6)) await removePod(`p-${index}`);
  await clock.advance(60_000);
  for (const end of ends) end();
  await clock.advance(400_000);
  t.deepEqual(names('vpcips'), indexes.slice(6).map(ipOf).toSorted());
  t.deepEqual(
    names('vpcipclaims'),
    indexes
      .slice(6)
      .map((index) => `p-${index}`)
      .toSorted(),
  );
  await stop();
});

test('runRecords: without claims forty Pods cost two writes each, and claims of before go with their Pods', async (t) => {
  const { clock, writes, start, addNode, addPod, removePod, names } = await scene(true, false);
  const indexes = Array.from({ length: 40 }, (_, index) => index);
  await addNode('n1', indexes.map(ipOf));
  const stop = start();
  await clock.advance(1_000);
  for (const index of indexes) await addPod(`p-${index}`, 'n1', ipOf(index));
  await clock.advance(20_000);
  t.is(names('vpcips').length, 40);
  for (const index of indexes) await removePod(`p-${index}`);
  await clock.advance(120_000);
  t.deepEqual([...names('vpcips'), ...names('vpcipclaims')], []);
  t.deepEqual(writes.toSorted(), [
    ...indexes.map(() => 'create-vip written'),
    ...indexes.map(() => 'delete-vip written'),
  ]);
  await stop();
});
