import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { NODE_ENI_CONFIGS, NODES } from '../../kube/resource-types.ts';
import { longTest } from '../support/suite-part.ts';
import { waitUntil } from '../support/wait-until.ts';
import { auditThreeWays } from '../system/audit-three-ways.ts';
import { countAssigned, createSystem, type SeenNec, type System } from '../system/system.ts';

const WARM = 5;

let system: System;

test.before(async () => {
  system = await createSystem({ nodes: [{ name: 'n1' }, { name: 'n2' }], agentFlags: { 'release-interval': '2s' } });
  for (const { name } of system.nodes) await system.awaitNec(name, 'warm', (nec) => countAssigned(nec) >= WARM);
});
test.after.always(() => system?.close());

/** Follows what a node offers: how many addresses were offered again in each write of its object. */
async function followOffers(name: string): Promise<{ readonly steps: readonly number[]; stop(): void }> {
  const { admin } = system.cluster;
  const stopping = new AbortController();
  const { resourceVersion } = await admin.listPage(NODE_ENI_CONFIGS, { fieldSelector: `metadata.name=${name}` });
  const steps: number[] = [];
  let before = new Set<string>();
  const follow = async (): Promise<void> => {
    const query = { fieldSelector: `metadata.name=${name}`, resourceVersion };
    for await (const event of admin.watch(NODE_ENI_CONFIGS, query, stopping.signal)) {
      if (event.kind === 'bookmark') continue;
      const { spec }: SeenNec = event.object;
      const offered = (spec?.releasableIPs ?? []).map(({ assignmentID }) => assignmentID);
      const fresh = offered.filter((id) => !before.has(id)).length;
      if (fresh > 0) steps.push(fresh);
      before = new Set(offered);
    }
  };
  // Ends with the test, by its own signal.
  void follow().catch(() => undefined);
  return { steps, stop: () => stopping.abort() };
}

async function growAndShrink(name: string): Promise<{ readonly steps: readonly number[]; readonly grown: SeenNec }> {
  const node = system.node(name);
  const names = Array.from({ length: 8 }, (_, index) => `${name}-p${index}`);
  await Promise.all(names.map((pod) => node.runPod(pod)));
  const grown = await system.awaitNec(name, 'a second ENI', (nec) => countAssigned(nec) >= names.length + WARM);
  const offers = await followOffers(name);
  await Promise.all(names.map((pod) => node.removePod(pod)));
  await system.awaitNec(name, 'only the warm ones', (nec) => countAssigned(nec) === WARM, 60_000);
  offers.stop();
  return { steps: offers.steps, grown };
}

longTest.serial('slow release: one address at a time, the emptier ENI goes with its last', async (t) => {
  const { steps, grown } = await growAndShrink('n1');
  t.is(grown.status?.eniInfos?.length, 2);
  t.deepEqual(new Set(steps), new Set([1]));
  const nec = await system.awaitNec('n1', 'one ENI', (one) => one.status?.eniInfos?.length === 1);
  t.is(countAssigned(nec), WARM);
  t.deepEqual(await auditThreeWays(system), []);
});

test.serial('quick release: all surplus at a time', async (t) => {
  await system.patchNec('n2', { spec: { enableQuickRelease: true } });
  const { steps, grown } = await growAndShrink('n2');
  t.is(grown.status?.eniInfos?.length, 2);
  t.true(Math.max(...steps) > 1, `offered at a time: ${steps.join(', ')}`);
  await system.awaitNec('n2', 'one ENI', (one) => one.status?.eniInfos?.length === 1);
  t.deepEqual(await auditThreeWays(system), []);
});

longTest.serial('lists without Nodes: nothing is drained or released after the grace', async (t) => {
  const { server } = system.cluster;
  const enis = () => [...system.cloud.host.model.state.enis.values()].filter((eni) => !eni.isPrimary);
  const before = enis().map((eni) => [eni.eniId, [...eni.ips.keys()].sort()]);
  const held = () => server.objects('events').filter((event) => event['reason'] === 'NodeReleaseHeld');
  const heal = server.faults.add({
    resources: ['nodes'],
    userAgent: 'tke-eni-ipamd',
    action: { kind: 'empty-list' },
  });
  server.disconnectWatches();
  await waitUntil(() => held().length >= 2, {
    what: 'both nodes held',
    timeoutMs: 20_000,
    everyMs: 100,
    explain: () => system.logs().slice(-3_000),
  });
  // Twice the grace; that something does not happen cannot be awaited.
  await sleep(4_000);
  for (const { name } of system.nodes)
    for (const eni of (await system.nec(name))?.status?.eniInfos ?? []) t.not(eni.draining, true, eni.eniID);
  t.deepEqual(
    enis().map((eni) => [eni.eniId, [...eni.ips.keys()].sort()]),
    before,
  );
  heal();
  server.disconnectWatches();
  t.deepEqual(await auditThreeWays(system), []);
});

test.serial('a node that is deleted gives everything back, its object last', async (t) => {
  const node = system.node('n2');
  const pod = await node.runPod('last');
  await system.cluster.admin.delete(NODES, { name: 'n2' });
  // What a cluster does with a node's Pods when the node is gone.
  await node.removePod(pod.name);
  await system.awaitGone('n2');
  t.is([...system.cloud.host.model.state.enis.values()].filter((eni) => !eni.isPrimary).length, 1);
  await node.killAgent();
  t.deepEqual(await auditThreeWays(system, { withoutAgent: ['n2'] }), []);
});
