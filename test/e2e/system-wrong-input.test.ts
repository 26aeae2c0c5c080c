import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import type { NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { IS_LONG, longTest, shortTest } from '../support/suite-part.ts';
import { waitUntil } from '../support/wait-until.ts';
import { auditThreeWays } from '../system/audit-three-ways.ts';
import { assignedIps, countAssigned, createSystem, type SeenNec, type System } from '../system/system.ts';

let system: System;
let joined = 0;
/** Nodes with Pods, whose objects are edited. */
const EDITED = IS_LONG ? ['n1', 'n2', 'n3', 'n4', 'n5'] : ['n1', 'n2'];
/** Nodes that join while something is wrong. */
const OTHERS = ['o1', 'o2'];

test.before(async () => {
  const nodes = [...EDITED, ...OTHERS].map((name) => ({ name }));
  // Two looks a minute apart mend most of what follows, by one leader: a busy machine must not take its lock.
  const ipamdFlags = { 'sync-interval': '10s', 'leader-elect-lease': '20s', 'leader-elect-renew': '4s' };
  system = await createSystem({ nodes, joinsAll: false, ipamds: 1, ipamdFlags });
  await Promise.all(EDITED.map((name) => system.join(name)));
  for (const name of EDITED) {
    await system.awaitNec(name, 'warm', (nec) => countAssigned(nec) >= 5, 60_000);
    await system.node(name).awaitReady(60_000);
    for (const pod of ['one', 'two']) await system.node(name).runPod(`${name}-${pod}`);
  }
});
test.after.always(() => system?.close());

/** Events, as `reason Kind/name: message`. */
function events(): readonly string[] {
  return system.cluster.server.objects('events').map((event) => {
    const { kind, name } = event['involvedObject'] as { kind: string; name: string };
    return `${event['reason']} ${kind}/${name}: ${event['message']}`;
  });
}

async function awaitNamed(reason: string, says: RegExp, name: string, on?: string): Promise<void> {
  const explain = async () => `${events().join('\n')}\n${JSON.stringify(await system.nec(on ?? 'n1'))}`;
  await waitUntil(() => events().some((line) => line.startsWith(`${reason} `) && says.test(line)), {
    what: `event ${reason} ${says}`,
    timeoutMs: 60_000,
    explain: () => events().join('\n'),
  });
  if (on !== undefined)
    await waitUntil(
      async () => {
        const conditions = (await system.nec(on))?.status?.conditions ?? [];
        return conditions.some(
          (one) => one.status === 'False' && one.reason === reason && says.test(one.message ?? ''),
        );
      },
      { what: `condition ${reason} ${says}`, timeoutMs: 30_000 },
    );
  const leader = await system.leader();
  await waitUntil(
    async () => (await leader.http('/metrics'))?.includes(`tke_eni_ipamd_problem{kind="${reason}",name="${name}"} 1`),
    { what: `metric ${reason} ${name}`, timeoutMs: 30_000, everyMs: 500 },
  ).catch(async (error: unknown) => {
    throw new Error(await explain(), { cause: error });
  });
}

/** Another node joins and gets its addresses. */
async function assertOthersGoOn(t: ExecutionContext): Promise<void> {
  const name = OTHERS[joined++];
  if (name === undefined) throw new Error('no more nodes to join');
  await system.join(name);
  t.true(countAssigned(await system.awaitNec(name, 'warm', (nec) => countAssigned(nec) >= 5, 60_000)) >= 5);
}

/** Every Pod still has its address, and packets find it. */
async function assertPodsLive(t: ExecutionContext): Promise<void> {
  const pods = EDITED.flatMap((name) => system.node(name).pods);
  for (const [index, pod] of pods.entries()) {
    const next = pods[(index + 1) % pods.length] ?? pod;
    t.true(await pod.sandbox.netns.ping(next.ip), `${pod.name} ${pod.ip} reaches ${next.name} ${next.ip}`);
  }
}

shortTest.serial('malformed ConfigMap and a subnet that is not: named, and a node joins meanwhile', async (t) => {
  await system.configure({ TKE_ENI_IPAMD_SUBNET_ID: 'subnet_bad,subnet-x' });
  await awaitNamed('ConfigInvalid', /data\.TKE_ENI_IPAMD_SUBNET_ID: .*subnet_bad/, 'tke-eni-ipamd', 'n1');
  await system.configure({ TKE_ENI_IPAMD_SUBNET_ID: 'subnet-nowhere1' });
  await awaitNamed('SubnetUnknown', /has no subnet-nowhere1/, 'tke-eni-ipamd', 'n1');
  await assertOthersGoOn(t);
  await system.configure({ TKE_ENI_IPAMD_SUBNET_ID: 'subnet-pods000a' });
  const isValid = (nec: SeenNec) => nec.status?.conditions?.every(({ status }) => status === 'True') === true;
  await system.awaitNec('n1', 'valid', isValid);
  await assertPodsLive(t);
});

shortTest.serial('half a warm pair and a limit below what is in use: named, without effect', async (t) => {
  const annotations = {
    'tke.cloud.tencent.com/route-eni-ip-min-warm-target': '3',
    'tke.cloud.tencent.com/max-ip-per-route-eni': '1',
  };
  await system.patchNec('n1', { metadata: { annotations } });
  await awaitNamed('AnnotationInvalid', /route-eni-ip-max-warm-target: expected a value/, 'n1', 'n1');
  await awaitNamed(
    'AnnotationInvalid',
    /max-ip-per-route-eni: expected a number not below what is in use, 2/,
    'n1',
    'n1',
  );
  const none = Object.fromEntries(Object.keys(annotations).map((key) => [key, null]));
  await system.patchNec('n1', { metadata: { annotations: none } });
  t.deepEqual(await auditThreeWays(system), []);
});

type Edit = (nec: SeenNec, eni: NodeEniInfo) => object;
const intent = {
  id: 'feedfacefeedface',
  phase: 'Recorded',
  leaderEpoch: 1,
  requestTimeoutSeconds: 5,
  recordedAt: '2026-01-01T00:00:00Z',
} as const;
/** Rounds of edits, one for each of the nodes, at the same time. */
const ROUNDS: Readonly<Record<string, readonly Edit[]>> = {
  'seen by a look at the cloud': [
    () => ({ status: null }),
    (_, eni) => ({ status: { eniInfos: [{ ...eni, eniID: 'eni-invented' }] } }),
    (_, eni) => ({ status: { eniInfos: [{ ...eni, mac: '20:90:6f:ff:ff:fe' }] } }),
    (_, eni) => ({ status: { eniInfos: [{ ...eni, state: 'Detaching' }] } }),
    (_, eni) => ({
      status: { eniInfos: [{ ...eni, addresses: eni.addresses?.map((one) => ({ ...one, state: 'Releasing' })) }] },
    }),
  ],
  'seen in the object': [
    (_, eni) => ({
      status: {
        eniInfos: [
          {
            ...eni,
            addresses: [...(eni.addresses ?? []), { ip: '192.168.7.7', assignmentID: 'x', state: 'Assigned' }],
          },
        ],
      },
    }),
    (_, eni) => ({
      status: {
        eniInfos: [
          eni,
          {
            ...eni,
            eniID: 'eni-invented',
            mac: '20:90:6f:ff:ff:ff',
            primaryIP: '10.0.1.250',
            addresses: eni.addresses?.slice(0, 1),
          },
        ],
      },
    }),
    (nec) => ({ spec: { observedSupplyEpoch: (nec.status?.supplyEpoch ?? 0) + 1_000 } }),
    () => ({ status: { instanceID: 'ins-nonsense' }, metadata: { finalizers: null } }),
    () => ({ spec: null }),
  ],
  'written as if by ipamd or the agent': [
    (nec, eni) => ({
      status: {
        intents: [
          { ...intent, action: 'DetachNetworkInterface', eniID: eni.eniID, instanceID: nec.status?.instanceID },
        ],
      },
    }),
    (_, eni) => ({
      status: {
        intents: [
          {
            ...intent,
            action: 'UnassignPrivateIpAddresses',
            eniID: eni.eniID,
            ips: eni.addresses?.map(({ ip }) => ip),
          },
        ],
      },
    }),
    (_, eni) => ({
      spec: {
        releasableIPs: eni.addresses?.map(({ ip, assignmentID }) => ({ ip, assignmentID })),
        desiredRouteENIIP: 0,
      },
    }),
    (nec) => ({ status: { supplyEpoch: (nec.status?.supplyEpoch ?? 0) + 1_000 } }),
    (_, eni) => ({
      status: { eniInfos: [{ ...eni, addresses: eni.addresses?.map((one) => ({ ...one, assignmentID: 'same' })) }] },
    }),
  ],
};

for (const [what, edits] of Object.entries(ROUNDS)) {
  longTest.serial(
    `NodeENIConfigs edited by hand into nonsense, ${what}: no Pod loses its address, nothing is left over`,
    async (t) => {
      for (const [index, name] of EDITED.entries()) {
        const nec = await system.nec(name);
        const eni = nec?.status?.eniInfos?.[0];
        const edit = edits[index];
        if (nec === undefined || eni === undefined || edit === undefined) throw new Error(`${name}: no ENI`);
        await system.patchNec(name, edit(nec, eni));
      }
      for (let look = 0; look < 5; look++) {
        await assertPodsLive(t);
        await sleep(200);
      }
      t.deepEqual(await auditThreeWays(system, { withinMs: 240_000 }), []);
      await assertPodsLive(t);
      for (const name of EDITED) {
        const after = await system.awaitNec(name, 'warm', (one) => countAssigned(one) >= 7, 60_000);
        for (const { ip } of system.node(name).pods) t.true(assignedIps(after).includes(ip), `${name} ${ip}`);
        await system.node(name).runPod(`${name}-after`);
        await system.node(name).removePod(`${name}-after`);
      }
      t.true(
        events().some((line) => /^Object(?:Mended|Invalid) NodeENIConfig\/n\d: /.test(line)),
        events().join('\n'),
      );
    },
  );
}

longTest.serial('wrong types are refused at the door', async (t) => {
  for (const body of [
    { spec: { desiredRouteENIIP: 'many' } },
    { status: { supplyEpoch: -1 } },
    { status: { eniInfos: 'none' } },
  ])
    t.true(
      isKubeError(await system.patchNec('n1', body).catch((error: unknown) => error), 'INVALID'),
      JSON.stringify(body),
    );
});

shortTest.serial('the cloud forbids a call: event, condition and metric name it; Pods go on', async (t) => {
  const fault = { kind: 'error', code: 'UnauthorizedOperation' } as const;
  const allow = system.cloud.host.faults.add({
    fault,
    actions: ['AssignPrivateIpAddresses', 'CreateNetworkInterface'],
  });
  await system.patchNec('n1', { spec: { desiredRouteENIPodNum: 12 } });
  await awaitNamed('Forbidden', /UnauthorizedOperation/, 'n1', 'n1');
  await assertPodsLive(t);
  allow();
  await system.awaitNec('n1', 'what it wants', (nec) => countAssigned(nec) >= 12, 120_000);
  await system.patchNec('n1', { spec: { desiredRouteENIPodNum: null } });
  await assertOthersGoOn(t);
});

longTest.serial(
  'the agent may not write its object, nor ipamd the Nodes: each names the right; others go on',
  async (t) => {
    const { api } = system.cluster.server;
    const action = { kind: 'status', code: 403, reason: 'Forbidden' } as const;
    const ofAgent = {
      verbs: ['update'],
      resources: ['nodeeniconfigs'],
      user: 'system:serviceaccount:kube-system:tke-eni-agent',
    };
    const grant = api.faults.add({ ...ofAgent, name: 'n1', action });
    await system.node('n1').runPod('n1-more');
    const says =
      /^Forbidden Node\/n1: the API server refuses to update nodeeniconfigs .* grant "update nodeeniconfigs" to ClusterRole/;
    await waitUntil(() => events().some((line) => says.test(line)), {
      what: 'event of the agent',
      timeoutMs: 30_000,
      explain: () => `${events().join('\n')}\n${system.logs()}`,
    });
    await assertPodsLive(t);
    await assertOthersGoOn(t);
    grant();
    await system.node('n1').removePod('n1-more');
    t.deepEqual(await auditThreeWays(system, { withinMs: 60_000 }), []);
  },
);
