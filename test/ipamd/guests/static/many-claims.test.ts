import test from 'ava';
import fc from 'fast-check';
import { isInCidr } from '../../../../crd/ip-text.ts';
import { POD_ANNOTATION } from '../../../../crd/names.ts';
import type { StaticIpConfig } from '../../../../crd/static-ip-config.ts';
import { VPC_ENI_KIND } from '../../../../crd/vpc-eni.ts';
import { VPC_IP_KIND } from '../../../../crd/vpc-ip.ts';
import { VPC_IP_CLAIM_KIND } from '../../../../crd/vpc-ip-claim.ts';
import { type DeploymentFacts, decodeDeployment } from '../../../../ipamd/cache/find-workload.ts';
import type { PodFacts } from '../../../../ipamd/cache/pod-facts.ts';
import { decodeClaim, decodeVip, type StaticObject } from '../../../../ipamd/cache/record-facts.ts';
import { decodeVpcEni } from '../../../../ipamd/cache/vpc-eni-entry.ts';
import { withClaims } from '../../../../ipamd/decide/with-claims.ts';
import { decodeEipClaim } from '../../../../ipamd/guests/eip/eip-claim-cache.ts';
import { ClaimViewBuilder } from '../../../../ipamd/guests/static/build-claim-view.ts';
import type { ClaimsTerm } from '../../../../ipamd/guests/static/claims-term.ts';
import { findSubnet } from '../../../../ipamd/guests/static/find-subnet.ts';
import { followRules } from '../../../../ipamd/guests/static/run-claims.ts';
import { ClaimRequests } from '../../../../ipamd/nodes/claim-requests.ts';
import type { ObjectChange } from '../../../../kube/object-cache.ts';
import { assertLaw } from '../../../support/law.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { NecWorld } from '../../support/nec-world.ts';

/** What is subscribed to by a test's own hand. */
function told<T>() {
  const listeners = new Set<(change: ObjectChange<T>) => void>();
  return {
    synced: async () => {},
    subscribe: (listener: (change: ObjectChange<T>) => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    tell: (change: ObjectChange<T>) => {
      for (const listener of listeners) listener(change);
    },
  };
}

function podOf(namespace: string, name: string, isLasting = true): PodFacts {
  const claimInfo = { labels: {}, mode: 'route-eni' as const };
  const facts = { namespace, name, uid: name, nodeName: '', ips: [], phase: 'Pending' as const, isLeaving: false };
  return { ...facts, annotations: {}, ...(isLasting ? { claimInfo } : {}) };
}

const SUBNET = { subnetId: '', vpcId: 'vpc', zone: 'z', cidr: '', freeIps: 1, totalIps: 1, isBlocked: false };

const API = { apiVersion: 'networking.tke.cloud.tencent.com/v1' };

/** Tells of whoever goes through all of it. */
class LookedUp extends Map<string, string> {
  walks = 0;

  override [Symbol.iterator]() {
    this.walks++;
    return super[Symbol.iterator]();
  }

  override forEach(visit: (value: string, key: string, map: Map<string, string>) => void): void {
    this.walks++;
    super.forEach(visit);
  }
}

test('ClaimBook: changes its one map of addresses, however many claims there are', (t) => {
  const book = new ClaimRequests();
  const reserved = book.reservedIps();
  for (let index = 0; index < 3; index++) book.set(`d/web-${index}`, new Map(), [`10.1.0.${index}`]);
  t.is(book.reservedIps(), reserved);
  t.is(reserved.get('10.1.0.2'), 'd/web-2');
  book.set('d/web-1', new Map(), ['10.1.0.2']);
  book.set('d/web-2', new Map(), []);
  t.deepEqual(
    [...reserved],
    [
      ['10.1.0.0', 'd/web-0'],
      ['10.1.0.2', 'd/web-1'],
    ],
  );
});

test('withClaims: marks what is reserved without going through the reservations of the whole cluster', (t) => {
  const reservedIps = new LookedUp();
  reservedIps.set('10.0.1.50', 'ns/web-0');
  reservedIps.walks = 0;
  const eni = {
    eniID: 'eni-1',
    mac: '20:90:6f:00:00:01',
    state: 'Attached' as const,
    addresses: ['10.0.1.50', '10.0.1.51'].map((ip) => ({ ip, assignmentID: `of-${ip}`, state: 'Assigned' as const })),
  };
  const { status, ...view } = new NecWorld().view();
  const marked = withClaims({ ...view, status, claims: new Map(), reservedIps }, { ...status, eniInfos: [eni] });
  const [first, second] = marked.eniInfos?.[0]?.addresses ?? [];
  t.deepEqual([first?.claim, second?.claim], [{ namespace: 'ns', name: 'web-0' }, undefined]);
  t.is(reservedIps.walks, 0);
});

test('decoders of what is kept: hold no managedFields, which would be half of the memory', (t) => {
  const metadata = { name: 'web-0', namespace: 'd', uid: 'u', resourceVersion: '1', managedFields: [{ manager: 'x' }] };
  const spec = { mode: 'route-eni', type: 'Pod', ip: '10.0.0.7', claimRef: { namespace: 'd', name: 'web-0' } };
  const claim = decodeClaim({ ...API, kind: VPC_IP_CLAIM_KIND.kind, metadata, spec });
  const vip = decodeVip({ ...API, kind: VPC_IP_KIND.kind, metadata, spec });
  const eni = decodeVpcEni({ ...API, kind: VPC_ENI_KIND.kind, metadata, spec });
  const eip = decodeEipClaim({ ...API, kind: 'EIPClaim', metadata, spec: {} });
  const { managedFields: _, ...rest } = metadata;
  const kept = [claim.staticObject?.decoded?.object, vip.staticObject?.decoded?.object, eni.object, eip.claim?.object];
  t.deepEqual(
    kept.map((object) => object?.['metadata']),
    [rest, rest, rest, rest],
  );
});

test('followRules: has those looked at whose rule is another, once a second, and nobody else', async (t) => {
  const clock = new VirtualClock();
  const [configs, deployments] = [told<StaticObject<StaticIpConfig>>(), told<DeploymentFacts>()];
  const pods = [podOf('a', 'web-0'), podOf('a', 'plain', false), podOf('b', 'web-0')];
  const touched: string[] = [];
  const config = { namespace: 'kube-system' };
  const rules = { config, pods: { values: () => pods }, configs, deployments, clock } as unknown as ClaimsTerm;
  const stop = followRules(rules, (key) => touched.push(key), new AbortController().signal);
  const take = async () => {
    await clock.run(clock.sleep(2_000));
    return touched.splice(0);
  };
  const configOf = (namespace: string, app: string): StaticObject<StaticIpConfig> => {
    const metadata = { name: 'web', namespace };
    return { decoded: { metadata, spec: { podLabels: { app } }, object: {} }, faults: [] };
  };
  for (let index = 0; index < 100; index++) {
    configs.tell({ key: 'a/web', before: configOf('a', `web-${index}`), after: configOf('a', `web-${index + 1}`) });
  }
  t.deepEqual(await take(), ['a/web-0']);
  configs.tell({ key: 'a/web', before: configOf('a', 'web'), after: configOf('a', 'web') });
  const selector = { matchLabels: { app: 'web' } };
  const deployment = (status: object) =>
    decodeDeployment({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { namespace: 'b', name: 'web', uid: 'u' },
      spec: { selector },
      status,
    });
  deployments.tell({ key: 'b/web', before: deployment({ replicas: 1 }), after: deployment({ replicas: 2 }) });
  t.deepEqual(await take(), []);
  deployments.tell({ key: 'b/web', after: deployment({}) });
  t.deepEqual(await take(), ['b/web-0']);
  configs.tell({ key: 'kube-system/all', after: configOf('kube-system', 'web') });
  t.deepEqual(await take(), ['a/web-0', 'b/web-0']);
  stop();
});

test('ClaimViewBuilder: reads the rules of the Pod’s namespace and of ipamd’s, however many others there are', (t) => {
  const rule = (namespace: string): StaticObject<StaticIpConfig> => {
    const spec = { podLabels: { app: 'web' }, subnetIDs: [`subnet-${namespace}`] };
    return { decoded: { metadata: { name: 'web', namespace }, spec, object: {} }, faults: [] };
  };
  const asked: string[] = [];
  const byIndex = (name: string, namespace: string) => {
    asked.push(`${name} ${namespace}`);
    return [rule(namespace)];
  };
  const pod = podOf('a', 'web-0');
  const claimInfo = { labels: { app: 'web' }, mode: 'route-eni' as const };
  const annotations = { [POD_ANNOTATION.deletePolicy]: 'Never' };
  const nothing = { get: () => undefined, values: () => [], keys: () => [], byIndex: () => [] };
  // The rules of a Pod ask nothing else.
  const term = {
    config: { namespace: 'kube-system' },
    pods: { ...nothing, get: () => ({ ...pod, annotations, claimInfo }) },
    configs: { byIndex },
    clock: new VirtualClock(),
  } as unknown as ClaimsTerm;
  const reservations = { isPaused: false, problemOf: () => undefined };
  const eyes = new ClaimViewBuilder(term, reservations, { nameOf: () => undefined });
  t.deepEqual(eyes.podOf('a/web-0')?.rule.subnetIds, ['subnet-a']);
  t.deepEqual(asked, ['namespace a', 'namespace kube-system']);
});

test('ClaimViewBuilder: claims that wait for one exhausted pool look at its addresses once', (t) => {
  const nothing = { get: () => undefined, values: () => [], keys: () => [], byIndex: () => [] };
  const asked: string[] = [];
  const get = (name: string) => {
    asked.push(name);
    return { isRecord: false, podKey: 'other/claim' };
  };
  const subnets = { all: () => [{ ...SUBNET, cidr: '10.0.0.0/16', subnetId: 'subnet-a' }], isOffered: () => true };
  const term = {
    config: { namespace: 'kube-system' },
    ...{ pods: nothing, necs: nothing, vpcEnis: nothing, nodes: nothing, configs: nothing },
    ...{ vips: { ...nothing, get }, subnets, waits: { of: () => undefined }, clock: new VirtualClock() },
  } as unknown as ClaimsTerm;
  const eyes = new ClaimViewBuilder(term, { isPaused: false, problemOf: () => undefined }, { nameOf: () => undefined });
  const pool = Array.from({ length: 1_000 }, (_, at) => `10.0.${at >> 8}.${at & 255}`);
  for (const key of ['a/web-0', 'a/web-1', 'a/web-2']) {
    const view = eyes.build(key, undefined, undefined);
    t.is(view.subnetOf('10.0.0.1'), 'subnet-a');
    t.is(view.findFree?.(view, pool, 'z'), undefined);
  }
  t.is(asked.length, pool.length);
});

test('findSubnet: finds what isInCidr says, of both families, and nothing for what is no network', async (t) => {
  const cidrs = ['10.0.0.0/24', '10.0.1.0/25', '10.0.1.128/25', '0.0.0.0/1', 'fd00::/64', 'nonsense'];
  const subnets = cidrs.map((cidr) => ({ ...SUBNET, cidr, subnetId: cidr }));
  const octet = fc.integer({ min: 0, max: 255 });
  const ips = fc.oneof(
    fc
      .tuple(fc.constantFrom(10, 200, 255), fc.constant(0), fc.constantFrom(0, 1, 2), octet)
      .map((one) => one.join('.')),
    fc.constantFrom('fd00::7', 'fd01::7'),
  );
  await assertLaw(t, (t) =>
    fc.property(ips, (ip) => {
      t.is(
        findSubnet(ip, subnets),
        cidrs.find((cidr) => isInCidr(ip, cidr)),
      );
    }),
  );
});
