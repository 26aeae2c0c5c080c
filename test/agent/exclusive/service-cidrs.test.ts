import test from 'ava';
import { followServiceCidrs, readServiceCidrs } from '../../../agent/follow/follow-service-cidrs.ts';
import { NodeState } from '../../../agent/state/node-state.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { KubeError } from '../../../kube/kube-error.ts';
import { CONFIG_MAPS } from '../../../kube/resource-types.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { serviceAccountUser } from '../../../sim/kube-api/auth/tokens.ts';
import { startInProcessApi } from '../../../sim/kube-api/in-process.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const SERVICE_CIDRS = {
  ...{ group: 'networking.k8s.io', version: 'v1', plural: 'servicecidrs', kind: 'ServiceCIDR' },
  isNamespaced: false,
};
/** Interval of two reads, without the random share. */
const POLL_MS = 120_000;
const neverAborted = new AbortController().signal;

const serviceCidr = (name: string, ...cidrs: readonly string[]): KubeObject => ({
  ...{ apiVersion: 'networking.k8s.io/v1', kind: 'ServiceCIDR', metadata: { name } },
  spec: { cidrs },
});

/** The ConfigMap as `kubeadm init` of 1.27 writes it, without certificates and ports. */
const kubeadm = (serviceSubnet: string): KubeObject => ({
  ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kubeadm-config', namespace: 'kube-system' } },
  data: {
    ClusterConfiguration: `apiServer:
  timeoutForControlPlane: 4m0s
apiVersion: kubeadm.k8s.io/v1beta3
clusterName: kubernetes
kind: ClusterConfiguration
networking:
  dnsDomain: cluster.local
  podSubnet: 10.244.0.0/16
  serviceSubnet: ${serviceSubnet}
scheduler: {}
`,
  },
});

function open(authorization: 'all' | 'rbac' = 'all') {
  const clock = new VirtualClock();
  const server = startInProcessApi({ clock, authorization });
  return { clock, server, admin: server.client() };
}

test('readServiceCidrs: all ServiceCIDR objects count, in the form of routes', async (t) => {
  const { admin } = open();
  await admin.create(SERVICE_CIDRS, serviceCidr('kubernetes', '10.96.0.0/12', 'FD00:0::/108'));
  await admin.create(SERVICE_CIDRS, serviceCidr('more', '10.112.3.4/16', '10.96.0.0/12'));
  await admin.create(CONFIG_MAPS, kubeadm('10.1.0.0/16'));
  t.deepEqual(await readServiceCidrs(admin, neverAborted), {
    cidrs: ['10.112.0.0/16', '10.96.0.0/12', 'fd00::/108'],
    source: 'ServiceCIDR v1',
    isComplete: true,
    problems: [],
  });
});

test('readServiceCidrs: a range that would take packets for the VPC, or is none, is refused', async (t) => {
  const { admin } = open();
  await admin.create(SERVICE_CIDRS, serviceCidr('odd', '0.0.0.0/0', '10.0.0.0/7', 'services', '10.96.0.0/16', '::/0'));
  const { cidrs, problems } = await readServiceCidrs(admin, neverAborted);
  t.deepEqual(cidrs, ['10.96.0.0/16']);
  t.is(problems.length, 4);
  t.regex(problems.join('\n'), /ServiceCIDR v1: 0\.0\.0\.0\/0 is refused: a range is \/8 or longer/);
});

test("readServiceCidrs: a server without ServiceCIDRs is asked for kubeadm's ConfigMap", async (t) => {
  const { admin } = open();
  await admin.create(CONFIG_MAPS, kubeadm('10.96.0.0/12,fd00:1::/108'));
  const { cidrs, source, problems } = await readServiceCidrs(admin, neverAborted);
  t.deepEqual(cidrs, ['10.96.0.0/12', 'fd00:1::/108']);
  t.is(source, 'ConfigMap kube-system/kubeadm-config');
  // v1beta1 is not served here, as v1 is not before 1.33.
  t.deepEqual(problems, ['ServiceCIDR v1: no range', 'ServiceCIDR v1beta1: the server does not have it']);
});

for (const [what, object] of [
  ['is no YAML', { ...kubeadm('x'), data: { ClusterConfiguration: '{' } }],
  ['has a number for a range', kubeadm('10')],
  ['has no data', { ...kubeadm('x'), data: undefined }],
] as const) {
  test(`readServiceCidrs: a ConfigMap that ${what} is a reason, and no error`, async (t) => {
    const { admin } = open();
    await admin.create(CONFIG_MAPS, object as KubeObject);
    const { cidrs, problems } = await readServiceCidrs(admin, neverAborted);
    t.deepEqual(cidrs, []);
    t.regex(problems.at(-1) ?? '', /^ConfigMap kube-system\/kubeadm-config: ./);
  });
}

test('readServiceCidrs: a missing right is a reason; a silent server is an error', async (t) => {
  const { server } = open('rbac');
  const agent = server.client({ user: serviceAccountUser('kube-system', 'tke-eni-agent') });
  const { problems } = await readServiceCidrs(agent, neverAborted);
  t.is(problems[0], 'ServiceCIDR v1: the role may not read it');
  const silent = {
    ...agent,
    listPage: () => Promise.reject(new KubeError({ code: 'TIMEOUT', request: 'GET', text: '' })),
  };
  await t.throwsAsync(readServiceCidrs(silent, neverAborted), { code: 'TIMEOUT' });
});

/** An agent that follows the ranges, with all that it tells. */
function follow(
  scene: ReturnType<typeof open>,
  configured: readonly string[] = [],
  hasDirect = true,
  hasPodCidr = false,
) {
  const state = new NodeState(scene.clock);
  const seen = { events: [] as string[], unknown: [] as boolean[], changes: 0, hasDirect };
  const ending = new AbortController();
  const running = followServiceCidrs(
    {
      ...{ state, configured, clock: scene.clock, random: () => 0.5, log: silentLogger },
      kube: scene.server.client({ userAgent: 'agent' }),
      hasExclusive: () => seen.hasDirect,
      hasPodCidr: () => hasPodCidr,
      events: { report: (_type, reason, message) => seen.events.push(`${reason}: ${message}`) },
      metrics: { serviceCidrsUnknown: { set: (value) => seen.unknown.push(value === 1) } },
      changed: () => {
        seen.changes += 1;
      },
    },
    ending.signal,
  );
  return { state, seen, end: () => ending.abort(), running };
}

test('followServiceCidrs: a node with a podCIDR and no exclusive ENI reads the ranges, seldom, and reports nothing', async (t) => {
  const scene = open();
  const { state, seen, end, running } = follow(scene, [], false, true);
  await scene.clock.advance(0);
  t.deepEqual(state.serviceCidrs, []);
  t.deepEqual(seen.events, [], 'its Pods need no range');
  await scene.admin.create(SERVICE_CIDRS, serviceCidr('kubernetes', '10.96.0.0/12'));
  await scene.clock.advance(600_000);
  t.deepEqual(state.serviceCidrs, [], 'it is not asked as often as where Pods need it');
  await scene.clock.advance(1_800_000);
  t.deepEqual(state.serviceCidrs, ['10.96.0.0/12']);
  end();
  await scene.clock.advance(60_000);
  await running;
});

test('followServiceCidrs: follows a change, and keeps the last ranges while the server is away or has none', async (t) => {
  const scene = open();
  await scene.admin.create(SERVICE_CIDRS, serviceCidr('kubernetes', '10.96.0.0/12'));
  const { state, seen, end, running } = follow(scene);
  await scene.clock.advance(0);
  t.deepEqual(state.serviceCidrs, ['10.96.0.0/12']);
  await scene.admin.create(SERVICE_CIDRS, serviceCidr('more', '10.112.0.0/16'));
  await scene.clock.advance(180_000);
  t.deepEqual(state.serviceCidrs, ['10.112.0.0/16', '10.96.0.0/12']);
  const { heal } = scene.server.partition('agent');
  await scene.clock.advance(600_000);
  heal();
  await scene.admin.delete(SERVICE_CIDRS, { name: 'kubernetes' });
  await scene.clock.advance(600_000);
  t.deepEqual(state.serviceCidrs, ['10.112.0.0/16'], 'a range that is gone is led by the VPC again');
  await scene.admin.delete(SERVICE_CIDRS, { name: 'more' });
  await scene.clock.advance(600_000);
  t.deepEqual(state.serviceCidrs, ['10.112.0.0/16'], 'no range at all is no change');
  t.is(seen.changes, 3);
  t.deepEqual(seen.events, []);
  t.true(seen.unknown.every((isUnknown) => !isUnknown));
  end();
  await running;
});

test('followServiceCidrs: keeps a range that one read lacks, or a source that does not follow the cluster', async (t) => {
  const scene = open();
  await scene.admin.create(SERVICE_CIDRS, serviceCidr('kubernetes', '10.96.0.0/12'));
  await scene.admin.create(SERVICE_CIDRS, serviceCidr('more', '10.112.0.0/16'));
  await scene.admin.create(CONFIG_MAPS, kubeadm('10.96.0.0/12'));
  const { state, seen, end, running } = follow(scene);
  await scene.clock.advance(0);
  const both = ['10.112.0.0/16', '10.96.0.0/12'];
  await scene.admin.delete(SERVICE_CIDRS, { name: 'more' });
  await scene.clock.advance(POLL_MS);
  t.deepEqual(state.serviceCidrs, both, 'one read');
  await scene.admin.create(SERVICE_CIDRS, serviceCidr('more', '10.112.0.0/16'));
  await scene.clock.advance(POLL_MS);
  await scene.admin.delete(SERVICE_CIDRS, { name: 'more' });
  await scene.clock.advance(POLL_MS);
  t.deepEqual(state.serviceCidrs, both, 'two reads, and not in a row');
  await scene.admin.delete(SERVICE_CIDRS, { name: 'kubernetes' });
  await scene.clock.advance(3_600_000);
  t.deepEqual(state.serviceCidrs, both, 'kubeadm has the range with which the cluster began');
  t.is(seen.changes, 1);
  end();
  await running;
});

test('followServiceCidrs: says once that none is known, and asks again and again', async (t) => {
  const scene = open();
  const { state, seen, end, running } = follow(scene);
  await scene.clock.advance(3_600_000);
  t.is(seen.events.length, 1);
  t.regex(
    seen.events[0] ?? '',
    /^ServiceCidrsUnknown: no range of Services is known, .* set --service-cidrs \(ServiceCIDR v1: no range; /,
  );
  t.true(seen.unknown.every(Boolean));
  await scene.admin.create(CONFIG_MAPS, kubeadm('10.96.0.0/12'));
  await scene.clock.advance(310_000);
  t.deepEqual(state.serviceCidrs, ['10.96.0.0/12']);
  t.is(seen.unknown.at(-1), false);
  end();
  await running;
});

test('followServiceCidrs: reads nothing where a range is configured, or no Pod can have an exclusive ENI', async (t) => {
  const scene = open();
  await scene.admin.create(SERVICE_CIDRS, serviceCidr('kubernetes', '10.96.0.0/12'));
  const configured = follow(scene, ['10.1.0.0/16']);
  await scene.clock.advance(600_000);
  t.deepEqual([configured.state.serviceCidrs, configured.seen.changes], [[], 0]);
  t.is(configured.seen.unknown.at(-1), false);
  configured.end();
  const bare = follow(scene, [], false);
  await scene.clock.advance(600_000);
  t.deepEqual(bare.state.serviceCidrs, []);
  bare.seen.hasDirect = true;
  bare.state.changed.notify();
  await scene.clock.advance(0);
  t.deepEqual(bare.state.serviceCidrs, ['10.96.0.0/12']);
  bare.end();
  await Promise.all([configured.running, bare.running]);
});
