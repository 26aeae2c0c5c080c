import type { ExecutionContext } from 'ava';
import { ALLOW_RELEASE_ANNOTATION } from '../../../crd/names.ts';
import type { NodeEniConfigStatus } from '../../../crd/node-eni-config-fields.ts';
import type { RunningIpamd } from '../../../ipamd/ipamd.ts';
import { NODE_ENI_CONFIGS, NODES } from '../../../kube/resource-types.ts';
import { longTest, shortTest } from '../../support/suite-part.ts';
import { type ShellScene, shellScene } from './shell-scene.ts';

const HOUR_MS = 3_600_000;
const GRACE_MS = 300_000;

type Cluster = { readonly scene: ShellScene; readonly names: readonly string[]; ipamd: RunningIpamd };

/** Starts ipamd with nodes that all have their ENI. */
async function clusterOf(count: number, flags: readonly string[] = []): Promise<Cluster> {
  const scene = await shellScene();
  const ipamd = await scene.start({ flags });
  await scene.until(() => ipamd.isLeading);
  const names = Array.from({ length: count }, (_, index) => `n${index}`);
  for (const name of names) await scene.join(name);
  await scene.until(() => names.every((name) => isReady(scene, name)));
  return { scene, names, ipamd };
}

function isReady(scene: ShellScene, name: string): boolean {
  // Checked against its schema by the server.
  const status = (scene.nec(name)?.['status'] ?? {}) as NodeEniConfigStatus;
  return status.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') === true;
}

function eniCount({ host }: ShellScene): number {
  return [...host.model.state.enis.values()].filter((eni) => eni.tags['tke-created-eni'] === 'true').length;
}

async function deleteNodes({ scene }: Cluster, names: readonly string[]): Promise<void> {
  for (const name of names) await scene.clock.run(scene.kube.delete(NODES, { name }));
}

async function metricsOf({ ipamd, scene }: Cluster, name: string): Promise<number> {
  const text = await scene.clock.run(ipamd.metrics.registry.metrics());
  const lines = text.split('\n').filter((one) => one.startsWith(`tke_eni_ipamd_${name}{`));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

function eventsOf({ scene }: Cluster, reason: string): readonly string[] {
  return scene.server.objects('events').flatMap((event) => {
    const { reason: own, message, note } = event as { reason?: string; message?: string; note?: string };
    return own === reason ? [String(message ?? note)] : [];
  });
}

async function close(t: ExecutionContext, { scene, ipamd }: Cluster): Promise<void> {
  await scene.clock.run(ipamd.close());
  t.pass();
}

shortTest('ipamd: releases nothing when lists of Nodes are empty although each Node can be read', async (t) => {
  const cluster = await clusterOf(6);
  const { scene } = cluster;
  const heal = scene.server.api.faults.add({
    resources: ['nodes'],
    userAgent: 'ipamd',
    action: { kind: 'empty-list' },
  });
  scene.server.cutWatches('ipamd');
  await scene.clock.advance(HOUR_MS / 2);
  t.is(eniCount(scene), 6);
  t.is(await metricsOf(cluster, 'release_held_nodes'), 6);
  t.regex(eventsOf(cluster, 'NodeReleaseHeld').join('\n'), /the API server finds the Node, and its lists lack it/);
  heal();
  scene.server.cutWatches('ipamd');
  await scene.until(() => cluster.names.every((name) => isReady(scene, name)));
  await scene.clock.advance(60_000);
  t.is(await metricsOf(cluster, 'release_held_nodes'), 0);
  await close(t, cluster);
});

shortTest('ipamd: releases nothing when the API server has no Node at all, until a person confirms it', async (t) => {
  const cluster = await clusterOf(30);
  const { scene, names } = cluster;
  await deleteNodes(cluster, names);
  await scene.clock.advance(HOUR_MS);
  t.is(eniCount(scene), 30);
  t.is(await metricsOf(cluster, 'release_held_nodes'), 30);
  t.regex(eventsOf(cluster, 'NodeReleaseHeld').join('\n'), /the API server has no Node at all/);
  const confirmed = names.slice(0, 20);
  const body = { metadata: { annotations: { [ALLOW_RELEASE_ANNOTATION]: 'true' } } };
  for (const name of confirmed)
    await scene.clock.run(scene.kube.patch(NODE_ENI_CONFIGS, { name }, { kind: 'merge', body }));
  await scene.clock.advance(2 * GRACE_MS);
  t.is(eniCount(scene), 10);
  t.deepEqual(
    names.filter((name) => scene.nec(name) !== undefined),
    names.slice(20),
  );
  await close(t, cluster);
});

longTest('ipamd: takes a confirmation away from a node that is there', async (t) => {
  const cluster = await clusterOf(1);
  const { scene } = cluster;
  const body = { metadata: { annotations: { [ALLOW_RELEASE_ANNOTATION]: 'true' } } };
  await scene.clock.run(scene.kube.patch(NODE_ENI_CONFIGS, { name: 'n0' }, { kind: 'merge', body }));
  await scene.clock.advance(60_000);
  t.false(ALLOW_RELEASE_ANNOTATION in (scene.nec('n0')?.metadata.annotations ?? {}));
  await close(t, cluster);
});

shortTest('ipamd: gives back what a deleted Node had, after the grace', async (t) => {
  const cluster = await clusterOf(6);
  const { scene } = cluster;
  await deleteNodes(cluster, ['n3']);
  await scene.clock.advance(GRACE_MS - 60_000);
  t.is(eniCount(scene), 6);
  await scene.clock.advance(3 * 60_000);
  t.is(eniCount(scene), 5);
  t.is(scene.nec('n3'), undefined);
  await close(t, cluster);
});

shortTest('ipamd: releases a share of the nodes per hour, and a restart gives no more', async (t) => {
  const cluster = await clusterOf(40);
  const { scene, names } = cluster;
  await deleteNodes(cluster, names.slice(0, 20));
  await scene.clock.advance(HOUR_MS / 2);
  t.is(eniCount(scene), 36);
  t.is(await metricsOf(cluster, 'release_held_nodes'), 16);
  t.regex(
    eventsOf(cluster, 'NodeReleaseHeld').join('\n'),
    /4 nodes were released within an hour, as many as --node-release-percent allows/,
  );
  await scene.clock.advance(HOUR_MS / 2 + 2 * GRACE_MS);
  t.is(eniCount(scene), 33);
  await close(t, cluster);
});

longTest('ipamd: a new process counts releases under way', async (t) => {
  const cluster = await clusterOf(30);
  const { scene, names } = cluster;
  await deleteNodes(cluster, names.slice(0, 20));
  await scene.clock.advance(60_000);
  await scene.clock.run(cluster.ipamd.close());
  cluster.ipamd = await scene.start({ name: 'second' });
  await scene.clock.advance(3 * GRACE_MS);
  t.is(eniCount(scene), 27);
  await close(t, cluster);
});

longTest('ipamd: releases at once all nodes whose instances are gone too', async (t) => {
  const cluster = await clusterOf(20);
  const { scene, names } = cluster;
  for (const name of names.slice(0, 15)) scene.host.model.state.removeInstance(`ins-shell${name}`);
  await deleteNodes(cluster, names.slice(0, 15));
  await scene.clock.advance(2 * GRACE_MS);
  t.is(eniCount(scene), 5);
  await close(t, cluster);
});

longTest('ipamd: releases a share per hour of nodes whose instances alone are missing', async (t) => {
  const cluster = await clusterOf(20);
  const { scene, names } = cluster;
  for (const name of names.slice(0, 15)) scene.host.model.state.removeInstance(`ins-shell${name}`);
  await scene.clock.advance(HOUR_MS / 2);
  t.is(eniCount(scene), 17);
  t.is(await metricsOf(cluster, 'release_held_nodes'), 12);
  await close(t, cluster);
});
