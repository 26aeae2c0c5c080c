import test from 'ava';
import fc from 'fast-check';
import { POD_ANNOTATION } from '../../../../crd/names.ts';
import { type VpcIp, vpcIp } from '../../../../crd/vpc-ip.ts';
import { type VpcIpClaim, vpcIpClaim } from '../../../../crd/vpc-ip-claim.ts';
import { decodeDeployment, findWorkload } from '../../../../ipamd/cache/find-workload.ts';
import { createPodDecoder, type PodFacts } from '../../../../ipamd/cache/pod-facts.ts';
import { decodeClaim } from '../../../../ipamd/cache/record-facts.ts';
import type { ClaimRequest } from '../../../../ipamd/decide/claim-request.ts';
import { AddressConflicts } from '../../../../ipamd/guests/static/address-conflicts.ts';
import { ClaimReconciler } from '../../../../ipamd/guests/static/claim-reconciler.ts';
import { ClaimWaits } from '../../../../ipamd/guests/static/claim-waits.ts';
import { type AuditedCluster, compareClaims } from '../../../../ipamd/guests/static/compare-claims.ts';
import { decideExpiry } from '../../../../ipamd/guests/static/decide-expiry.ts';
import { selectReservedIps } from '../../../../ipamd/guests/static/decide-requests.ts';
import { readClaimPod, renderDurationMs } from '../../../../ipamd/guests/static/read-claim-pod.ts';
import { ClaimRequests } from '../../../../ipamd/nodes/claim-requests.ts';
import { createIpamdMetrics } from '../../../../ipamd/observability/metrics.ts';
import { decodeOrThrow } from '../../../../runtime/decode.ts';
import { silentLogger } from '../../../../runtime/log.ts';
import { startInProcessApi } from '../../../../sim/kube-api/in-process.ts';
import { assertLaw } from '../../../support/law.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const HEAD = { apiVersion: 'networking.tke.cloud.tencent.com/v1' };

function claimOf(spec: object, status: object): VpcIpClaim {
  const metadata = { name: 'web-0', namespace: 'default' };
  const object = { ...HEAD, kind: 'VpcIPClaim', metadata, spec: { mode: 'route-eni', ...spec }, status };
  return decodeOrThrow(vpcIpClaim, object, 'claim');
}

function vipOf(annotations: Readonly<Record<string, string>>): VpcIp {
  const metadata = { name: '10.1.0.9', annotations };
  return decodeOrThrow(vpcIp, { ...HEAD, kind: 'VpcIP', metadata, spec: { type: 'Pod', ip: '10.1.0.9' } }, 'vip');
}

function podOf(annotations: Readonly<Record<string, string>>, owner?: object, labels?: object): PodFacts {
  const references = owner === undefined ? {} : { ownerReferences: [{ controller: true, ...owner }] };
  const metadata = { name: 'web-0', namespace: 'default', uid: 'u1', labels: labels ?? { app: 'web' }, annotations };
  const object = { apiVersion: 'v1', kind: 'Pod', metadata: { ...metadata, ...references }, spec: { nodeName: 'a' } };
  const pod = createPodDecoder()(object as never);
  if (pod === undefined) throw new Error('the Pod is not kept');
  return pod;
}

const SINCE = '2026-01-01T00:00:00Z';
const EXPIRES = 'tke.cloud.tencent.com/claim-expired-duration';

const expires = test.macro((t, said: { vip?: string; claim?: string; flagMs: number }, afterMs: number | undefined) => {
  const spec = said.claim === undefined ? {} : { claimExpiredDuration: said.claim };
  const claim = claimOf(spec, { retainedSince: SINCE });
  const vips = said.vip === undefined ? [] : [vipOf({ [EXPIRES]: said.vip })];
  const expiry = decideExpiry({ claim, vips, retainedForMs: 60_000, defaultExpiredMs: said.flagMs });
  t.deepEqual(expiry, afterMs === undefined ? { kind: 'never' } : { kind: 'in', leftMs: afterMs - 60_000 });
});
test('decideExpiry: the flag says, where nobody else does', expires, { flagMs: 600_000 }, 600_000);
test('decideExpiry: 0 is forever', expires, { flagMs: 0 }, undefined);
test('decideExpiry: the claim goes before the flag', expires, { claim: '10m', flagMs: 300_000 }, 600_000);
test('decideExpiry: 0s of the claim goes before the flag', expires, { claim: '0s', flagMs: 300_000 }, undefined);
test('decideExpiry: the VpcIP goes before the claim', expires, { vip: '1h', claim: '10m', flagMs: 0 }, 3_600_000);
test('decideExpiry: less than 5m counts as nothing', expires, { vip: '4m', claim: '1m', flagMs: 300_000 }, 300_000);
test('decideExpiry: nonsense counts as nothing', expires, { vip: 'soon', claim: '10m', flagMs: 0 }, 600_000);

test('decideExpiry: a claim that never lost a Pod does not expire', (t) => {
  t.deepEqual(decideExpiry({ claim: claimOf({}, {}), vips: [], retainedForMs: 0, defaultExpiredMs: 1 }), {
    kind: 'never',
  });
  t.deepEqual(decideExpiry({ claim: undefined, vips: [], retainedForMs: 0, defaultExpiredMs: 1 }), { kind: 'never' });
});

test('readClaimPod: annotations go before the StaticIPConfig, which gives the rest', (t) => {
  const config = {
    metadata: { name: 'c' },
    object: {},
    spec: { claimExpiredDuration: '10m', subnetIDs: ['subnet-a'], ips: ['10.1.0.1'] },
  };
  const never = { [POD_ANNOTATION.deletePolicy]: 'Never' };
  t.like(readClaimPod(podOf(never), config, undefined), {
    uid: 'u1',
    nodeName: 'a',
    rule: { mode: 'route-eni', isStatic: true, expiredMs: 600_000, subnetIds: ['subnet-a'], pool: ['10.1.0.1'] },
  });
  const own = readClaimPod(
    podOf({
      ...never,
      [POD_ANNOTATION.claimExpiredDuration]: '0s',
      [POD_ANNOTATION.nominatedSubnets]: 'subnet-b',
      [POD_ANNOTATION.nominatedVpcIp]: '10.1.0.7',
    }),
    config,
    undefined,
  );
  t.like(own, { rule: { expiredMs: 0, subnetIds: ['subnet-b'], nominatedIp: '10.1.0.7' } });
  t.is(own?.rule.pool, undefined);
});

test('readClaimPod: a claim is for Pods that keep an address, and for exclusive ENIs with security groups', (t) => {
  const groups = { [POD_ANNOTATION.securityGroups]: 'sg-a1b2c3d4' };
  t.is(readClaimPod(podOf(groups), undefined, undefined), undefined);
  const direct = podOf({ ...groups, [POD_ANNOTATION.networks]: 'tke-direct-eni' });
  t.like(readClaimPod(direct, undefined, undefined), { rule: { mode: 'direct-eni', isStatic: false } });
  const faulty = readClaimPod(podOf({ [POD_ANNOTATION.deletePolicy]: 'never' }), undefined, undefined);
  t.true(faulty?.rule.isStatic);
  t.is(faulty?.rule.faults.length, 1);
});

test('renderDurationMs: what is written is read as the same time', (t) => {
  t.is(renderDurationMs(600_000), '600s');
  t.is(renderDurationMs(300_500), '300500ms');
});

const deployment = (name: string, selector: object, namespace = 'default') =>
  decodeDeployment({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace, uid: name },
    spec: { selector },
  });

test('findWorkload: a StatefulSet directly, of a ReplicaSet the only Deployment whose selector takes the Pod', (t) => {
  const never = { [POD_ANNOTATION.deletePolicy]: 'Never' };
  const set = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'web', uid: 's' };
  t.deepEqual(findWorkload(podOf(never, set), []), set);
  const ofReplicas = podOf(never, { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-5', uid: 'r' });
  const web = deployment('web', { matchLabels: { app: 'web' } });
  const away = deployment('web', { matchLabels: { app: 'web' } }, 'other');
  const expressed = deployment('x', { matchExpressions: [{ key: 'app', operator: 'In', values: ['web'] }] });
  const none = deployment('none', {});
  t.is(findWorkload(ofReplicas, [web, away, none])?.uid, 'web');
  t.is(findWorkload(ofReplicas, [expressed])?.uid, 'x');
  t.is(findWorkload(ofReplicas, [web, expressed]), undefined);
  t.is(
    findWorkload(ofReplicas, [
      deployment('y', { matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['web'] }] }),
    ]),
    undefined,
  );
  t.is(findWorkload(podOf(never), [web]), undefined);
});

const AGREED: AuditedCluster = {
  pods: ['d/a'],
  claims: [{ key: 'd/a', vpcIps: ['10.1.0.1'], isEnding: false }],
  vips: [{ name: '10.1.0.1', key: 'd/a', nodeName: 'n', eniId: 'eni-1' }],
  marks: [{ key: 'd/a', nodeName: 'n' }],
  enisOf: (node) => (node === 'n' ? new Set(['eni-1']) : undefined),
};
const differs = test.macro((t, change: Partial<AuditedCluster>, kinds: readonly string[]) => {
  const found = compareClaims({ ...AGREED, ...change });
  t.deepEqual(
    found.map(({ kind }) => kind),
    kinds,
  );
  t.true(found.every(({ key }) => key.startsWith('d/')));
});
test('compareClaims: nothing where all agree', differs, {}, []);
test('compareClaims: a Pod without a claim', differs, { pods: ['d/a', 'd/b'] }, ['pod-without-claim']);
test('compareClaims: a claim without its VpcIP', differs, { vips: [] }, ['claim-without-vip']);
test('compareClaims: a VpcIP and a mark without their claim', differs, { pods: [], claims: [] }, [
  'vip-without-claim',
  'mark-without-claim',
]);
test('compareClaims: a VpcIP of a node that is gone', differs, { enisOf: () => undefined }, ['vip-of-vanished-node']);

const keep = (key: string): ClaimRequest => ({ key, mode: 'route-eni', goal: 'keep' });

test('ClaimBook: says nothing before it is complete, and tells which nodes have something else to do', (t) => {
  const book = new ClaimRequests();
  t.deepEqual(book.set('d/a', new Map([['n', keep('d/a')]]), ['10.1.0.1']), ['n']);
  t.is(book.requestsOf('n'), undefined);
  book.complete();
  const before = book.requestsOf('n');
  t.deepEqual([...(before?.keys() ?? [])], ['d/a']);
  t.deepEqual(book.set('d/a', new Map([['n', keep('d/a')]]), ['10.1.0.1']), []);
  t.deepEqual(book.set('d/a', new Map([['m', keep('d/a')]]), []), ['n', 'm']);
  t.deepEqual([...(before?.keys() ?? [])], ['d/a'], 'what was handed out does not change');
  t.deepEqual([...(book.requestsOf('n')?.keys() ?? [])], []);
  t.deepEqual([...book.reservedIps()], []);
});

test('ClaimBook: has what was put in last, of each claim, after any changes', async (t) => {
  const change = fc.record({
    key: fc.constantFrom('a', 'b'),
    node: fc.constantFrom('n', 'm', undefined),
    ips: fc.subarray(['1', '2']),
  });
  await assertLaw(t, (t) =>
    fc.property(fc.array(change), (changes) => {
      const book = new ClaimRequests();
      book.complete();
      const last = new Map<string, { readonly node: string | undefined }>();
      for (const { key, node, ips } of changes) {
        book.set(key, new Map(node === undefined ? [] : [[node, keep(key)]]), ips);
        last.set(key, { node });
      }
      for (const node of ['n', 'm']) {
        const wanted = [...last].filter(([, one]) => one.node === node).map(([key]) => key);
        t.deepEqual([...(book.requestsOf(node)?.keys() ?? [])].toSorted(), wanted.toSorted());
      }
    }),
  );
});

const PLACE = {
  nodeName: 'a',
  eniId: 'eni-1',
  mode: 'route-eni',
  subnetId: undefined,
  isAttached: true,
  ip: '10.1.0.8',
  assignmentId: undefined,
  isReleasing: false,
  podUid: undefined,
} as const;

const reserves = test.macro(
  (t, goal: ClaimRequest['goal'], phase: 'Retained' | 'Releasing', ips: readonly string[]) => {
    const view = { vips: [vipOf({})], locations: [PLACE] };
    const none = { spec: {} as never, reason: 'AddressRetained', conflict: undefined } as const;
    const claim = { kind: 'put', desired: { ...none, status: { phase } as never } } as const;
    const requests = new Map([['a', { key: 'default/web-0', mode: 'route-eni', goal } as const]]);
    t.deepEqual(selectReservedIps(view, { claim, vips: [], requests }), ips);
    t.deepEqual(selectReservedIps(view, { claim: undefined, vips: [], requests }), ips);
  },
);
test('selectReservedIps: of a claim that is kept all that it has', reserves, 'keep', 'Retained', [
  '10.1.0.8',
  '10.1.0.9',
]);
test(
  'selectReservedIps: of a claim that ends nothing, while it goes off its ENI too',
  reserves,
  'free',
  'Releasing',
  [],
);

test('AddressConflicts: asks once who has an address, waits longer each time, and forgets', async (t) => {
  const clock = new VirtualClock();
  const asked: string[] = [];
  const book = new AddressConflicts(
    clock,
    () => 0,
    async (ips) => {
      asked.push(ips.join());
      return 'ENI eni-9';
    },
  );
  const { signal } = new AbortController();
  book.add('d/a', ['10.1.0.1'], 'ResourceInUse');
  await book.resolveHolder('d/a', signal);
  await book.resolveHolder('d/a', signal);
  t.deepEqual(asked, ['10.1.0.1']);
  t.is(book.of('d/a')?.message, 'ENI eni-9: ResourceInUse');
  const first = book.of('d/a')?.waitMs ?? 0;
  // A step of the wall clock does not change the wait.
  clock.stepWall(-3_600_000);
  t.is(book.of('d/a')?.waitMs, first);
  book.add('d/a', ['10.1.0.1'], 'ResourceInUse');
  t.is(book.of('d/a')?.waitMs, 2 * first);
  book.remove('d/a');
  t.is(book.of('d/a'), undefined);
});

test('ClaimWaits: tells what lasts, and nothing of what is over', async (t) => {
  const wait = { message: 'no room', isNodeFull: false };
  const clock = new VirtualClock();
  const book = new ClaimWaits(clock);
  t.deepEqual(book.note('n', new Map([['d/a', wait]])), ['d/a']);
  t.is(book.of('d/a'), undefined);
  await clock.advance(5_000);
  t.like(book.of('d/a'), wait);
  t.deepEqual(book.note('n', new Map([['d/a', wait]])), []);
  t.deepEqual(book.note('m', new Map()), []);
  t.deepEqual(book.note('n', new Map()), ['d/a']);
  t.is(book.of('d/a'), undefined);
});

test('ClaimReconciler: says of a claim that cannot be read what is wrong, and does nothing else to it or for it', async (t) => {
  const clock = new VirtualClock();
  const kube = startInProcessApi({ clock }).client();
  const object = {
    ...HEAD,
    kind: 'VpcIPClaim',
    metadata: { name: 'web-0', namespace: 'default' },
    spec: { mode: 'none' },
  };
  const facts = decodeClaim(object as never);
  const said: string[] = [];
  const refuse = (): never => t.fail('it is looked at all the same') as never;
  const requests = new ClaimRequests();
  requests.set('default/web-0', new Map([['n', keep('default/web-0')]]), ['10.1.0.1']);
  requests.complete();
  const patches: unknown[] = [];
  const keeper = new ClaimReconciler({
    kube: {
      ...kube,
      create: refuse,
      update: refuse,
      delete: refuse,
      patch: async (_type: unknown, _ref: unknown, { body }: { readonly body: unknown }) => {
        patches.push(body);
        return object as never;
      },
    },
    claims: { get: () => facts },
    definitions: { isOwnDeletion: refuse, wereLostLately: false },
    vips: { get: () => undefined },
    metrics: createIpamdMetrics(clock, { release: 'test' }),
    views: { build: refuse, podOf: () => undefined, unclaimedFaultsOf: () => undefined } as never,
    requests,
    conflicts: new AddressConflicts(
      clock,
      () => 0,
      async () => undefined,
    ),
    enqueueNode: refuse,
    reservations: { run: refuse },
    zoneNames: { resolve: refuse },
    clock,
    log: silentLogger,
    events: {
      record: ({ reason, message }: { readonly reason: string; readonly message: string }) =>
        said.push(`${reason} ${message}`),
    },
  } as unknown as ConstructorParameters<typeof ClaimReconciler>[0]);
  const { signal } = new AbortController();
  await keeper.reconcile('default/web-0', signal);
  await keeper.reconcile('default/web-0', signal);
  t.is(said.length, 1);
  t.regex(said[0] ?? '', /^ClaimInvalid spec\.mode: expected .*route-eni/);
  t.like(patches, [{ status: { conditions: [{ type: 'Ready', status: 'False', reason: 'ClaimInvalid' }] } }]);
  t.is(requests.requestsOf('n')?.size, 1);
});
