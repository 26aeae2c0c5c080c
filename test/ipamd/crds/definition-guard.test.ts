import test from 'ava';
import { customResourceDefinition } from '../../../crd/custom-resource-definition.ts';
import { RESOURCE_KINDS } from '../../../crd/kinds.ts';
import { API_GROUP } from '../../../crd/names.ts';
import { NODE_ENI_CONFIG_KIND } from '../../../crd/node-eni-config-fields.ts';
import { DefinitionGuard } from '../../../ipamd/crds/definition-guard.ts';
import type { KubeClient } from '../../../kube/kube-client.ts';
import { CUSTOM_RESOURCE_DEFINITIONS, NODE_ENI_CONFIGS } from '../../../kube/resource-types.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { type InProcessApi, startInProcessApi } from '../../../sim/kube-api/in-process.ts';
import { installKinds } from '../../../sim/kube-api/install-kinds.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const NEC_DEFINITION = `nodeeniconfigs.${API_GROUP}`;
const FINALIZER = `${API_GROUP}/cloud-resources`;

type World = {
  readonly clock: VirtualClock;
  readonly server: InProcessApi;
  readonly kube: KubeClient;
  readonly guard: DefinitionGuard;
  readonly reports: (string | undefined)[];
  readonly ending: AbortController;
};

/** A guard that runs, and has read the definitions once. */
async function world(): Promise<World> {
  const clock = new VirtualClock();
  const server = startInProcessApi({ clock });
  const kube = server.client({ userAgent: 'people' });
  await clock.run(installKinds(kube));
  const reports: (string | undefined)[] = [];
  const client = server.client({ userAgent: 'ipamd' });
  const report = (problem: string | undefined) => void reports.push(problem);
  const guard = new DefinitionGuard({ client, clock, log: silentLogger, report });
  const ending = new AbortController();
  void guard.run(ending.signal);
  await clock.advance(1_000);
  return { clock, server, kube, guard, reports, ending };
}

function standing({ server }: World): number {
  const all = server.objects('customresourcedefinitions', 'apiextensions.k8s.io');
  return all.filter(({ metadata }) => metadata.deletionTimestamp === undefined).length;
}

async function deleteNecs({ clock, kube }: World): Promise<void> {
  await clock.run(kube.delete(CUSTOM_RESOURCE_DEFINITIONS, { name: NEC_DEFINITION }));
}

test('DefinitionGuard: says nothing while the definitions stand', async (t) => {
  const all = await world();
  await all.clock.advance(60_000);
  t.deepEqual(all.reports, []);
  t.false(all.guard.lost.aborted);
  t.false(all.guard.wereLostLately);
  t.true(await all.clock.run(all.guard.areSame(all.ending.signal)));
  t.true(await all.clock.run(all.guard.isOwnDeletion(NODE_ENI_CONFIG_KIND, 'uid', all.ending.signal)));
  all.ending.abort();
});

test('DefinitionGuard: installs a definition again, takes the finalizer off its objects, and tells both', async (t) => {
  const all = await world();
  const { clock, kube, guard, reports, ending } = all;
  const metadata = { name: 'n1', finalizers: [FINALIZER] };
  await clock.run(
    kube.create(NODE_ENI_CONFIGS, { apiVersion: `${API_GROUP}/v1`, kind: 'NodeENIConfig', metadata, spec: {} }),
  );
  const { lost } = guard;
  await deleteNecs(all);
  t.false(await clock.run(guard.isOwnDeletion(NODE_ENI_CONFIG_KIND, 'uid', ending.signal)));
  t.true(lost.aborted);
  t.regex(reports[0] ?? '', /lost: nodeeniconfigs\..* is terminating/);
  await clock.advance(5_000);
  t.is(standing(all), RESOURCE_KINDS.length);
  t.is(reports.at(-1), undefined);
  t.is(await clock.run(kube.get(NODE_ENI_CONFIGS, { name: 'n1' })), undefined);
  t.false(guard.lost.aborted);
  t.true(guard.wereLostLately);
  // Another process reads from the definition how long ago that was.
  const client = all.server.client({ userAgent: 'ipamd' });
  const next = new DefinitionGuard({ client, clock, log: silentLogger, report: () => undefined });
  void next.run(ending.signal);
  await clock.advance(1_000);
  t.true(next.wereLostLately);
  await clock.advance(3_600_000);
  t.false(guard.wereLostLately);
  t.false(next.wereLostLately);
  ending.abort();
});

test('DefinitionGuard: a definition that another replica has installed again was lost all the same', async (t) => {
  for (const asks of ['areSame', 'isOwnDeletion'] as const) {
    const all = await world();
    const { clock, kube, guard, ending } = all;
    const { lost } = guard;
    await deleteNecs(all);
    const again = customResourceDefinition(NODE_ENI_CONFIG_KIND);
    await clock.run(kube.create(CUSTOM_RESOURCE_DEFINITIONS, again));
    guard.doubt();
    const answer =
      asks === 'areSame'
        ? guard.areSame(ending.signal)
        : guard.isOwnDeletion(NODE_ENI_CONFIG_KIND, 'uid', ending.signal);
    t.false(await clock.run(answer), asks);
    t.true(lost.aborted, asks);
    t.true(guard.wereLostLately, asks);
    ending.abort();
  }
});

test('DefinitionGuard: ends the work when another program puts its definition in the place of ours, and writes nothing', async (t) => {
  const all = await world();
  const { clock, kube, guard, reports } = all;
  const { lost } = guard;
  const ours = await clock.run(kube.get(CUSTOM_RESOURCE_DEFINITIONS, { name: NEC_DEFINITION }));
  if (ours === undefined) return t.fail('no definition');
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
  const body = {
    spec: { versions: [{ name: 'v1', served: true, storage: true, schema, subresources: { status: {} } }] },
  };
  const theirs = await clock.run(
    kube.patch(CUSTOM_RESOURCE_DEFINITIONS, { name: NEC_DEFINITION }, { kind: 'merge', body }),
  );
  await clock.advance(60_000);
  t.true(lost.aborted);
  t.regex(reports[0] ?? '', /nodeeniconfigs\..* is another program's: its objects may have \.\*/);
  const now = await clock.run(kube.get(CUSTOM_RESOURCE_DEFINITIONS, { name: NEC_DEFINITION }));
  t.is(now?.metadata.resourceVersion, theirs.metadata.resourceVersion);
  await clock.run(
    kube.patch(CUSTOM_RESOURCE_DEFINITIONS, { name: NEC_DEFINITION }, { kind: 'merge', body: { spec: ours['spec'] } }),
  );
  await clock.advance(15_000);
  t.is(reports.at(-1), undefined);
  t.false(guard.lost.aborted);
  all.ending.abort();
});

test('DefinitionGuard: an API server that does not answer has lost nothing', async (t) => {
  const all = await world();
  const { heal } = all.server.partition('ipamd');
  await all.clock.advance(120_000);
  t.false(all.guard.lost.aborted);
  t.false(await all.clock.run(all.guard.isOwnDeletion(NODE_ENI_CONFIG_KIND, 'uid', all.ending.signal)));
  t.false(all.guard.lost.aborted);
  heal();
  t.deepEqual(all.reports, []);
  all.ending.abort();
});

test('DefinitionGuard: the right to read definitions that comes late is no loss', async (t) => {
  const clock = new VirtualClock();
  const server = startInProcessApi({ clock });
  await clock.run(installKinds(server.client()));
  const action = { kind: 'status', code: 403, reason: 'Forbidden' } as const;
  const resources = ['customresourcedefinitions'];
  const grant = server.api.faults.add({ verbs: ['get'], resources, userAgent: 'ipamd', action });
  const reports: (string | undefined)[] = [];
  const client = server.client({ userAgent: 'ipamd' });
  const guard = new DefinitionGuard({
    ...{ client, clock, log: silentLogger },
    report: (problem) => void reports.push(problem),
  });
  const ending = new AbortController();
  void guard.run(ending.signal);
  await clock.advance(60_000);
  grant();
  await clock.advance(60_000);
  t.deepEqual(reports, []);
  t.false(guard.lost.aborted);
  ending.abort();
});

test('DefinitionGuard: goes on trying while it may not create one', async (t) => {
  const all = await world();
  const action = { kind: 'status', code: 403, reason: 'Forbidden' } as const;
  const resources = ['customresourcedefinitions'];
  const grant = all.server.api.faults.add({ verbs: ['create'], resources, userAgent: 'ipamd', action });
  await deleteNecs(all);
  await all.clock.advance(300_000);
  t.is(standing(all), RESOURCE_KINDS.length - 1);
  t.regex(all.reports.at(-1) ?? '', /is absent/);
  t.true(all.guard.lost.aborted);
  grant();
  await all.clock.advance(20_000);
  t.is(standing(all), RESOURCE_KINDS.length);
  t.is(all.reports.at(-1), undefined);
  all.ending.abort();
});
