import test from 'ava';
import { EIP_CLAIM_KIND } from '../../crd/eip-claim.ts';
import { VPC_IP_CLAIM_KIND } from '../../crd/vpc-ip-claim.ts';
import { resourceTypeOf, VPC_ENIS } from '../../kube/resource-types.ts';
import { waitUntil } from '../support/wait-until.ts';
import { auditCluster, keyOf, listAll } from './audit.ts';
import { clusterOfFile } from './cluster-of-file.ts';
import { awaitPods, pingFrom, type SeenPod } from './pods.ts';
import { startRealCluster } from './real-cluster.ts';
import { POD_KINDS, SETTINGS_OF_ALL_KINDS, workloadName, workloadOfKind } from './workloads/kinds.ts';

// Pods of every kind side by side: all reach each other, and the audit of the cluster has a place for each.

/** Pods of each kind. */
const REPLICAS = 2;

const running = clusterOfFile(
  () => startRealCluster({ nodes: ['node1', 'node2'].map((name) => ({ name, cores: 8 })) }),
  (cluster) => cluster.deploy({ ipamdSettings: SETTINGS_OF_ALL_KINDS }),
);

let pods: readonly SeenPod[] = [];

test.serial('Pods of every kind: each has its address, and they reach each other', async (t) => {
  const cluster = running();
  for (const kind of POD_KINDS) await cluster.apply(workloadOfKind(kind, kind, REPLICAS));
  const lists = await Promise.all(
    POD_KINDS.map((kind) => awaitPods(cluster, `app=${kind}`, REPLICAS, { timeoutMs: 120_000 })),
  );
  pods = lists.flat();
  for (const [index, pod] of pods.entries()) {
    const next = pods[(index + 1) % pods.length] ?? pod;
    t.true(await pingFrom(cluster, pod, next.ip), `${pod.name} on ${pod.node} reaches ${next.name} on ${next.node}`);
  }
});

test.serial('auditCluster: finds nothing where Pods of every kind run', async (t) => {
  t.deepEqual(await auditCluster(running(), { withinMs: 90_000 }), []);
});

test.serial('auditCluster: finds an EIP that the cloud bound to another address, and says whose it is', async (t) => {
  const { state } = running().cloud.host.model;
  const [eip] = state.eips.values();
  const [other] = pods.filter(({ name }) => name.startsWith('static-0'));
  if (eip?.binding === undefined || other === undefined) return t.fail('no EIP is bound');
  const { binding } = eip;
  eip.binding = { ...binding, ip: other.ip };
  const found = await auditCluster(running(), { withinMs: 0 });
  eip.binding = binding;
  t.true(
    found.some((line) => line.includes(eip.eipId) && line.includes(other.ip)),
    found.join('\n'),
  );
});

test.serial('auditCluster: finds nothing after a rolling restart of every kind', async (t) => {
  const cluster = running();
  const before = new Map(pods.map(({ name, ip }) => [name, ip]));
  for (const kind of POD_KINDS) await cluster.kubectl('rollout', 'restart', workloadName(kind, kind));
  for (const kind of POD_KINDS)
    await cluster.awaitKubectl(['rollout', 'status', workloadName(kind, kind), '--timeout=50s'], kind, 180_000);
  for (const kind of ['static', 'static-exclusive'] as const)
    for (const { name, ip } of await awaitPods(cluster, `app=${kind}`, REPLICAS)) t.is(before.get(name), ip, name);
  t.deepEqual(await auditCluster(cluster, { withinMs: 90_000 }), []);
});

test.serial('auditCluster: finds nothing when the workloads are gone, and no claim is left', async (t) => {
  const cluster = running();
  for (const kind of POD_KINDS)
    await cluster.kubectl('delete', workloadName(kind, kind), '--cascade=foreground', '--wait=true');
  let left: readonly string[] = [];
  await waitUntil(
    async () => {
      const kinds = [VPC_IP_CLAIM_KIND, EIP_CLAIM_KIND].map(resourceTypeOf);
      left = (await Promise.all(kinds.map(async (kind) => (await listAll(cluster, kind)).map(keyOf)))).flat();
      return left.length === 0;
    },
    // A kept address rests on its node for `--ip-cooldown`, two minutes, before it goes.
    { what: 'no claims', timeoutMs: 240_000, everyMs: 500, explain: () => left.join() },
  );
  t.deepEqual(await auditCluster(cluster, { withinMs: 90_000 }), []);
  t.is(cluster.cloud.host.model.state.eips.size, 0);
  const kept = (await listAll(cluster, VPC_ENIS)).filter(({ spec }) => JSON.stringify(spec).includes('claimRef'));
  t.deepEqual(kept, []);
});
