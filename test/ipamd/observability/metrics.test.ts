import test from 'ava';
import fc from 'fast-check';
import { decodeNec, type NecEntry } from '../../../ipamd/cache/decode-nec.ts';
import { createIpamdMetrics } from '../../../ipamd/observability/metrics.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { ProblemRegistry } from '../../../observability/problem-registry.ts';
import { RateMeter } from '../../../observability/rate-meter.ts';
import { assertLaw } from '../../support/law.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const START_MS = Date.UTC(2026, 0, 1);

function nec(name: string, status: Readonly<Record<string, unknown>> | string): KubeObject {
  return {
    apiVersion: 'networking.tke.cloud.tencent.com/v1',
    kind: 'NodeENIConfig',
    metadata: { name, uid: `uid-${name}`, creationTimestamp: new Date(START_MS).toISOString() },
    status,
  };
}

function ready(status: 'True' | 'False', reason: string) {
  const lastTransitionTime = new Date(START_MS).toISOString();
  return { conditions: [{ type: 'Ready', status, reason, lastTransitionTime }] };
}

const ENI = {
  eniID: 'eni-1',
  mac: '52:54:00:00:00:01',
  state: 'Attached',
  primaryIP: '10.0.8.2',
  gateway: '10.0.8.1',
  subnetID: 'subnet-a',
  subnetCIDR: '10.0.8.0/24',
  addresses: [
    { ip: '10.0.8.17', assignmentID: 'a1', state: 'Assigned' },
    { ip: '10.0.8.18', assignmentID: 'a2', state: 'Assigned' },
    { ip: '10.0.8.19', assignmentID: 'a3', state: 'Releasing' },
  ],
};

function make() {
  const clock = new VirtualClock(START_MS);
  const metrics = createIpamdMetrics(clock, { release: '1.2.3' });
  /** The values of a metric, by its labels as they are written. */
  const valuesOf = async (name: string): Promise<Readonly<Record<string, number>>> => {
    const lines = (await metrics.registry.metrics()).split('\n').filter((line) => !line.startsWith('#'));
    const found = lines.map((line) => new RegExp(`^tke_eni_ipamd_${name}(\\{.*\\})? (\\S+)$`).exec(line));
    return Object.fromEntries(found.flatMap((match) => (match === null ? [] : [[match[1] ?? '', Number(match[2])]])));
  };
  return { clock, metrics, valuesOf };
}

test('createIpamdMetrics: counts addresses, ENIs, nodes and intents of all nodes', async (t) => {
  const { metrics, valuesOf } = make();
  const intent = {
    id: 'i1',
    action: 'AttachNetworkInterface',
    phase: 'Accepted',
    leaderEpoch: 1,
    requestTimeoutSeconds: 60,
    recordedAt: new Date(START_MS - 30_000).toISOString(),
  };
  const necs = [
    decodeNec(nec('n1', { ...ready('True', 'Supplied'), eniInfos: [ENI], intents: [intent] })),
    decodeNec(nec('n2', { ...ready('False', 'ENILimit'), eniInfos: [{ ...ENI, draining: true }] })),
    decodeNec(nec('n3', 'nonsense')),
    decodeNec(nec('n4', {})),
  ];
  for (const after of necs) metrics.necChanged({ key: after.name, after });
  t.deepEqual(await valuesOf('addresses'), {
    '{subnet="subnet-a",state="Assigned"}': 4,
    '{subnet="subnet-a",state="Releasing"}': 2,
  });
  t.deepEqual(await valuesOf('enis'), {
    '{subnet="subnet-a",state="Attached"}': 1,
    '{subnet="subnet-a",state="Draining"}': 1,
  });
  t.deepEqual(await valuesOf('nodes'), {
    '{ready="True",reason="Supplied"}': 1,
    '{ready="False",reason="ENILimit"}': 1,
    '{ready="Unknown",reason="ObjectInvalid"}': 1,
    '{ready="Unknown",reason=""}': 1,
  });
  t.deepEqual(await valuesOf('intents'), { '{action="AttachNetworkInterface",phase="Accepted"}': 1 });
  t.deepEqual(await valuesOf('intent_oldest_seconds'), { '{action="AttachNetworkInterface"}': 30 });
  for (const before of necs) metrics.necChanged({ key: before.name, before });
  for (const name of ['addresses', 'enis', 'nodes', 'intents', 'intent_oldest_seconds'])
    t.deepEqual(await valuesOf(name), {}, name);
});

test('createIpamdMetrics: a scrape reads no NodeENIConfig', async (t) => {
  const { metrics } = make();
  const entry = decodeNec(nec('n1', { ...ready('True', 'Supplied'), eniInfos: [ENI] }));
  let reads = 0;
  const counting: NecEntry = {
    ...entry,
    get decoded() {
      reads += 1;
      return entry.decoded;
    },
  };
  metrics.sources.openSubnets = [{ zone: '100003', freeIps: 12, isBlocked: false }];
  metrics.necChanged({ key: 'n1', after: counting });
  t.true(reads > 0);
  reads = 0;
  t.true((await metrics.registry.metrics()).includes('tke_eni_ipamd_addresses{subnet="subnet-a",state="Assigned"} 2'));
  t.is(reads, 0);
});

const oneStatus = fc.record({
  zone: fc.constantFrom('100001', '100002'),
  conditions: fc.constantFrom(ready('True', 'Supplied').conditions, ready('False', 'ENILimit').conditions, []),
  eniInfos: fc.constantFrom([], [ENI], [{ ...ENI, draining: true }], [{ ...ENI, addresses: ENI.addresses.slice(1) }]),
  intents: fc.uniqueArray(
    fc.record({
      id: fc.constantFrom('i1', 'i2'),
      action: fc.constantFrom('AttachNetworkInterface', 'CreateNetworkInterface'),
      phase: fc.constantFrom('Recorded', 'Accepted'),
      leaderEpoch: fc.constant(1),
      requestTimeoutSeconds: fc.constant(60),
      recordedAt: fc.constantFrom(0, 30_000).map((agoMs) => new Date(START_MS - agoMs).toISOString()),
    }),
    { selector: ({ id }) => id },
  ),
});
const oneChange = fc.record({
  name: fc.constantFrom('n1', 'n2', 'n3'),
  /** Undefined: the object is deleted. */
  status: fc.option(fc.oneof(oneStatus, fc.constant('nonsense')), { nil: undefined }),
});

test('createIpamdMetrics: after any changes the counts are those of the objects that are there', async (t) => {
  await assertLaw(t, (t) =>
    fc.asyncProperty(fc.array(oneChange, { maxLength: 12 }), async (changes) => {
      const { metrics } = make();
      const present = new Map<string, NecEntry>();
      for (const { name, status } of changes) {
        const before = present.get(name);
        if (status === undefined) present.delete(name);
        else present.set(name, decodeNec(nec(name, status)));
        const after = present.get(name);
        metrics.necChanged({ key: name, ...(before && { before }), ...(after && { after }) });
      }
      const fresh = make();
      for (const [key, after] of present) fresh.metrics.necChanged({ key, after });
      for (const each of [metrics, fresh.metrics])
        each.sources.openSubnets = [{ zone: '100003', freeIps: 12, isBlocked: false }];
      t.deepEqual(await linesOf(metrics), await linesOf(fresh.metrics));
    }),
  );
});

/** The lines of the metrics that are counted of NodeENIConfigs, in order. */
async function linesOf({ registry }: ReturnType<typeof createIpamdMetrics>): Promise<readonly string[]> {
  const lines = (await registry.metrics()).split('\n');
  return lines
    .filter((line) => /^tke_eni_ipamd_(addresses|enis|nodes|intents|intent_oldest|zone_nodes)/.test(line))
    .sort();
}

test('createIpamdMetrics: counts attempts, repetitions and what is left of the allowed rate', async (t) => {
  const { clock, metrics, valuesOf } = make();
  const attempt = { action: 'CreateNetworkInterface', waitedMs: 200, tookMs: 100 } as const;
  metrics.cloud.onAttempt({ ...attempt, attempt: 1, code: 'RequestLimitExceeded' });
  for (let count = 0; count < 19; count++) metrics.cloud.onAttempt({ ...attempt, attempt: 2, code: undefined });
  const rates = () => [
    { product: 'vpc', perSecond: 50, waiting: 7 },
    { product: 'vpc', action: attempt.action, perSecond: 10, waiting: 7 },
  ];
  metrics.sources.pacing = { rates };
  t.deepEqual(await valuesOf('cloud_calls_total'), {
    '{action="CreateNetworkInterface",code="RequestLimitExceeded"}': 1,
    '{action="CreateNetworkInterface",code="ok"}': 19,
  });
  t.deepEqual(await valuesOf('cloud_retries_total'), { '{action="CreateNetworkInterface"}': 19 });
  t.deepEqual(await valuesOf('cloud_budget_left'), {
    '{product="vpc",action=""}': 48,
    '{product="vpc",action="CreateNetworkInterface"}': 8,
  });
  t.like(await valuesOf('cloud_calls_waiting'), { '{product="vpc",action=""}': 7 });
  await clock.advance(11_000);
  t.like(await valuesOf('cloud_budget_left'), { '{product="vpc",action="CreateNetworkInterface"}': 10 });
});

test('createIpamdMetrics: measures the time to warm once for each object', async (t) => {
  const { clock, metrics, valuesOf } = make();
  const [cold, warm] = [decodeNec(nec('n1', {})), decodeNec(nec('n1', ready('True', 'Supplied')))];
  metrics.necChanged({ key: 'n1', after: cold });
  await clock.advance(12_000);
  metrics.necChanged({ key: 'n1', before: cold, after: warm });
  metrics.necChanged({ key: 'n1', before: warm, after: cold });
  metrics.necChanged({ key: 'n1', before: cold, after: warm });
  // Ready when first seen: this process does not know since when.
  metrics.necChanged({ key: 'n2', after: decodeNec(nec('n2', ready('True', 'Supplied'))) });
  t.deepEqual(await valuesOf('node_warm_seconds_count'), { '': 1 });
  t.deepEqual(await valuesOf('node_warm_seconds_sum'), { '': 12 });
});

test('createIpamdMetrics: shows problems of nodes until they are over', async (t) => {
  const { metrics, valuesOf } = make();
  metrics.problems.report('supply/n1', [{ kind: 'InstanceTypeUnknown', name: 'n1' }]);
  t.deepEqual(await valuesOf('problem'), { '{kind="InstanceTypeUnknown",name="n1"}': 1 });
  metrics.problems.report('supply/n1', []);
  t.deepEqual(await valuesOf('problem'), {});
});

test('createIpamdMetrics: tells whether it leads, and its release', async (t) => {
  const { metrics, valuesOf } = make();
  t.deepEqual(await valuesOf('leader'), { '': 0 });
  metrics.sources.isLeading = () => true;
  t.deepEqual(await valuesOf('leader'), { '': 1 });
  t.deepEqual(await valuesOf('info'), { '{release="1.2.3"}': 1 });
});

test('ProblemRegistry: names some and counts the rest, however many nodes have one problem', (t) => {
  const book = new ProblemRegistry();
  for (let node = 0; node < 1_000; node++) book.reportOfTerm(`n${node}`, [{ kind: 'ENILimit', name: `n${node}` }]);
  const samples = book.samples();
  t.true(samples.length < 300);
  t.is(
    samples.reduce((sum, { count }) => sum + count, 0),
    1_000,
  );
  book.report('definitions', [{ kind: 'DefinitionsMissing', name: 'all' }]);
  book.clearTerm();
  t.deepEqual(book.samples(), [{ kind: 'DefinitionsMissing', name: 'all', count: 1 }]);
});

test('RateMeter: forgets what is longer ago than its window', (t) => {
  const meter = new RateMeter();
  for (let atMs = 0; atMs < 10_000; atMs += 100) meter.note('a', atMs);
  t.is(meter.perSecond('a', 9_999), 10);
  t.is(meter.perSecond('a', 14_500), 5);
  t.is(meter.perSecond('a', 3_600_000), 0);
  t.is(meter.perSecond('b', 0), 0);
});

test('createIpamdMetrics: shows what only a leader knows while it leads', async (t) => {
  const { metrics, valuesOf } = make();
  metrics.orphanEnis.set(1);
  metrics.subnetFreeIps.replace([[{ subnet: 'subnet-a', zone: '100003' }, 9]]);
  metrics.heldReleases.set('n1', ['NodesMissing']);
  metrics.sources.openSubnets = [{ zone: '100003', freeIps: 12, isBlocked: false }];
  metrics.sources.ciliumNodes.set('n1', { pool: 5, used: 2, free: 3, aliveMs: undefined, oldestReleaseMs: undefined });
  metrics.problems.reportOfTerm('supply/n1', [{ kind: 'ENILimit', name: 'n1' }]);
  const values = async () =>
    await Promise.all(
      [
        'orphan_enis',
        'subnet_free_addresses',
        'release_held_nodes',
        'zone_nodes_left',
        'cilium_addresses',
        'problem',
      ].map(async (name) => Object.values(await valuesOf(name))),
    );
  t.deepEqual(await values(), [[1], [9], [1], [2], [5, 2, 3], [1]]);
  metrics.clearTerm();
  t.deepEqual(await values(), [[0], [], [], [], [], []]);
});
