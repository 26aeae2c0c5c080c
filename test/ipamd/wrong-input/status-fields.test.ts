import { isDeepStrictEqual } from 'node:util';
import test from 'ava';
import {
  ADDRESS,
  ENI_INFO,
  type NodeEniConfigStatus,
  type NodeEniInfo,
  STATUS,
} from '../../../crd/node-eni-config-fields.ts';
import { isKubeError } from '../../../kube/kube-error.ts';
import { partOf } from '../../support/suite-part.ts';
import { GOOD, inScene, type WrongScene } from './wrong-scene.ts';

const INTENT = {
  id: 'feedfacefeedface',
  action: 'AssignPrivateIpAddresses',
  eniID: 'eni-invented',
  ipCount: 3,
  phase: 'Recorded',
  leaderEpoch: 1,
  requestTimeoutSeconds: 5,
  recordedAt: '2026-01-01T00:00:00Z',
};
const CLAIM = { namespace: 'default', name: 'nobody', uid: 'none' };

/** A value of each field that the schema takes and nobody wrote. */
const OF_STATUS: Readonly<Record<keyof typeof STATUS, unknown>> = {
  supplyEpoch: 100,
  eniInfos: [],
  intents: [INTENT],
  instanceID: 'ins-nonsense',
  instanceType: 'T',
  zone: 'here',
  vpcID: 'vpc-x',
  routeENIs: 7,
  routeENIIPs: 99,
  allocatableRouteENIIPs: 1,
  staticRouteENIIPs: 9,
  staticDirectENIs: 2,
  allocatableDirectENIs: 1,
  directENIs: 3,
  maxEIPs: 99,
  instanceENIs: 9,
  extensionENIs: 9,
  describedAt: '2020-01-01T00:00:00Z',
  conditions: [{ type: 'Ready', status: 'False', reason: 'Nonsense', lastTransitionTime: '2020-01-01T00:00:00Z' }],
};
const OF_ENI: Readonly<Record<keyof typeof ENI_INFO, unknown>> = {
  eniID: 'eni-invented',
  mac: '20:90:6f:ff:ff:fe',
  mode: 'direct-eni',
  name: 'another',
  primaryIP: '10.1.15.200',
  primaryIPv6: 'fd00::5',
  gateway: '10.1.0.77',
  gatewayIPv6: 'fd00::1',
  subnetID: 'subnet-nowhere1',
  subnetCIDR: '10.1.0.0/16',
  subnetIPv6CIDR: 'fd00::/64',
  deviceIndex: 9,
  attachType: 'extension',
  assignmentID: 'same',
  state: 'Detaching',
  draining: true,
  securityGroups: ['sg-nonsense'],
  clearedSecurityGroups: ['sg-nonsense'],
  claim: CLAIM,
  addresses: [],
};
const OF_ADDRESS: Readonly<Record<keyof typeof ADDRESS, unknown>> = {
  ip: '10.1.9.9',
  assignmentID: 'same',
  state: 'Releasing',
  pairedIP: 'fd00::9',
  claim: CLAIM,
};

/** One edit of a status: of a field, an ENI's or an address's. */
type StatusEdit = { readonly what: string; readonly edit: (status: NodeEniConfigStatus) => object };

/** Each field once left out and once with another value. */
const EDITS: readonly StatusEdit[] = [
  ...bothWays('status', STATUS, OF_STATUS, (change) => (status) => change(status)),
  ...bothWays('eniInfos[0]', ENI_INFO, OF_ENI, (change) => (status) => withFirstEni(status, change)),
  ...bothWays(
    'eniInfos[0].addresses[0]',
    ADDRESS,
    OF_ADDRESS,
    (change) => (status) =>
      withFirstEni(status, (eni) => ({ ...eni, addresses: withFirst(eni.addresses ?? [], change) })),
  ),
  { what: 'an ENI less', edit: (status) => ({ ...status, eniInfos: (status.eniInfos ?? []).slice(1) }) },
  {
    what: 'an address less',
    edit: (status) => withFirstEni(status, (eni) => ({ ...eni, addresses: (eni.addresses ?? []).slice(1) })),
  },
];

type Change = <T extends object>(value: T) => object;

function bothWays(
  where: string,
  table: object,
  values: Readonly<Record<string, unknown>>,
  lift: (change: Change) => StatusEdit['edit'],
): readonly StatusEdit[] {
  return Object.keys(table).flatMap((field) => [
    { what: `${where}.${field} left out`, edit: lift((value) => without(value, field)) },
    { what: `${where}.${field} changed`, edit: lift((value) => ({ ...value, [field]: values[field] })) },
  ]);
}

function without(value: object, field: string): object {
  return Object.fromEntries(Object.entries(value).filter(([key]) => key !== field));
}

function withFirst<T extends object>(list: readonly T[], change: Change): readonly object[] {
  return list.map((one, index) => (index === 0 ? change(one) : one));
}

function withFirstEni(status: NodeEniConfigStatus, change: (eni: NodeEniInfo) => object): object {
  return { ...status, eniInfos: (status.eniInfos ?? []).map((eni, index) => (index === 0 ? change(eni) : eni)) };
}

/** Within this time all nodes are compared with the cloud, and differences confirmed. */
const AUDITED_MS = 420_000;

/** A status without what is counted up or dated by a repair. */
function plain(status: NodeEniConfigStatus) {
  const { supplyEpoch: _epoch, describedAt: _at, eniInfos = [], conditions = [], directENIs = 0, ...rest } = status;
  const enis = eniInfos.map(({ assignmentID, addresses = [], ...eni }) => ({
    ...eni,
    isBound: assignmentID !== undefined,
    addresses: addresses.map(({ ip, state, claim }) => ({ ip, state, claim })).sort((a, b) => (a.ip < b.ip ? -1 : 1)),
  }));
  const of = conditions.filter(({ type }) => type === 'Ready').map((one) => `${one.status} ${one.reason}`);
  return {
    ...rest,
    directENIs,
    intents: rest.intents ?? [],
    conditions: of,
    eniInfos: enis.sort((a, b) => (a.eniID < b.eniID ? -1 : 1)),
  };
}

/** Writes a whole status as a person with kubectl does; false when the schema refuses it. */
async function writeStatus(scene: WrongScene, edit: StatusEdit['edit']): Promise<boolean> {
  const status: NodeEniConfigStatus = scene.nec('n1')?.status ?? {};
  const next = edit(status);
  const gone = Object.fromEntries(Object.keys(status).map((key) => [key, null]));
  try {
    await scene.patch('nec', 'n1', { status: { ...gone, ...next } });
    return true;
  } catch (error) {
    if (!isKubeError(error, 'INVALID')) throw error;
    return false;
  }
}

/** A node with two ENIs and live Pods on both. */
async function openBusy(scene: WrongScene): Promise<readonly string[]> {
  await scene.join('n1');
  await scene.awaitWarm('n1');
  await scene.patch('nec', 'n1', { spec: { desiredRouteENIIP: 12, maxIPPerENI: 9 } });
  await scene.until('it grows', () => scene.assigned('n1').length >= 12);
  const ips = [scene.assigned('n1')[0], scene.assigned('n1').at(-1)].flatMap((one) => one?.ip ?? []);
  for (const [index, ip] of ips.entries()) await scene.runPod(`p${index}`, 'n1', ip);
  await scene.clock.advance(90_000);
  await scene.answer('n1');
  await scene.clock.advance(5_000);
  return ips;
}

/** What the cloud did for the node: mutations since the last look. */
function mutations(scene: WrongScene): readonly string[] {
  return scene.host.seen.map(({ action }) => action).filter((action) => !action.startsWith('Describe'));
}

/** The same data with the keys of each record in order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, one]) => one !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, one]) => [key, sorted(one)]),
  );
}

test('status of a NodeENIConfig: whatever field another client leaves out or changes is as before within seconds', async (t) => {
  await inScene(GOOD, async (scene) => {
    await openBusy(scene);
    let written = 0;
    for (const { what, edit } of EDITS) {
      const now = () => sorted(plain(scene.nec('n1')?.status ?? {}));
      const before = now();
      scene.host.forget();
      if (!(await writeStatus(scene, edit))) {
        t.log(`refused by the schema: ${what}`);
        continue;
      }
      written += 1;
      for (let waited = 0; waited < 4_000 && !isDeepStrictEqual(now(), before); waited += 500)
        await scene.clock.advance(500);
      t.deepEqual(now(), before, what);
      t.deepEqual(mutations(scene), [], what);
      await scene.answer('n1');
      await scene.clock.advance(2_000);
    }
    t.true(written > 40, `${written}`);
  });
});

/**
 * Nothing contradicts these: the cloud has no such field, or it is what another client of the cloud may want. They stay as
 * they were edited.
 */
const UNCONTRADICTED = [
  'eniInfos[0].mode changed',
  'eniInfos[0].clearedSecurityGroups changed',
  'eniInfos[0].claim changed',
  'eniInfos[0].addresses[0].claim changed',
];

/** How long an edit may stay that was made while nobody led, milliseconds. */
function limitOf(what: string): number {
  if (what === 'status.intents changed') return 60_000;
  // Live Pods, the counts and the epoch contradict what is left out.
  return /^status\.|less$|addresses/.test(what) ? 10_000 : AUDITED_MS;
}

test('status of a NodeENIConfig that was edited while nobody led: what contradicts itself, or live Pods, is repaired at once', async (t) => {
  const contradicted = EDITS.filter((one) => !UNCONTRADICTED.includes(one.what));
  // Each field is tried under a leader above; here one of five, of each record, left out or changed.
  for (const { what, edit } of partOf(contradicted, (one) => contradicted.indexOf(one) % 5 === 0)) {
    await inScene(GOOD, async (scene) => {
      const ips = await openBusy(scene);
      const before = sorted(plain(scene.nec('n1')?.status ?? {}));
      await scene.close();
      if (!(await writeStatus(scene, edit))) return;
      scene.host.forget();
      await scene.start();
      const isSame = () => isDeepStrictEqual(sorted(plain(scene.nec('n1')?.status ?? {})), before);
      let waitedMs = 0;
      for (; waitedMs < AUDITED_MS && !isSame(); waitedMs += 1_000) await scene.clock.advance(1_000);
      t.true(waitedMs <= limitOf(what), `${what}: ${waitedMs} ms`);
      t.deepEqual(scene.differences('n1'), [], what);
      t.deepEqual(mutations(scene), [], what);
      const assigned = scene.assigned('n1').map(({ ip }) => ip);
      t.deepEqual(
        ips.filter((ip) => !assigned.includes(ip)),
        [],
        what,
      );
    });
  }
});

/** Edits that touch what a call in flight is about. */
const ABOUT_CALLS = [
  'status.eniInfos changed',
  'status.eniInfos left out',
  'status.intents changed',
  'status.intents left out',
  'status.supplyEpoch left out',
  'an ENI less',
  'an address less',
];

for (const [call, wanted, enis] of [
  ['AssignPrivateIpAddresses', 14, 2],
  ['CreateNetworkInterface', 24, 3],
  ['AttachNetworkInterface', 24, 3],
] as const)
  test(`status of a NodeENIConfig that is edited while ${call} is in flight: it is made once, and nothing is lost`, async (t) => {
    const aboutCalls = EDITS.filter((one) => ABOUT_CALLS.includes(one.what));
    for (const { what, edit } of partOf(aboutCalls, (one) => /intents left out|address less/.test(one.what)))
      await inScene(GOOD, async (scene) => {
        const ips = await openBusy(scene);
        scene.host.faults.add({ fault: { kind: 'latency', ms: 9_000 }, actions: [call], times: 1 });
        await scene.patch('nec', 'n1', { spec: { desiredRouteENIIP: wanted } });
        await scene.clock.advance(4_000);
        t.true(await writeStatus(scene, edit), what);
        const isMet = () => scene.assigned('n1').length >= wanted && scene.differences('n1').length === 0;
        for (let waited = 0; waited < 60_000 && !isMet(); waited += 1_000) {
          await scene.clock.advance(1_000);
          await scene.answer('n1');
        }
        t.deepEqual(scene.differences('n1'), [], what);
        const assigned = scene.assigned('n1').map(({ ip }) => ip);
        t.is(assigned.length, wanted, what);
        t.true(ips.every((ip) => assigned.includes(ip)));
        const mine = [...scene.host.model.state.enis.values()].filter((eni) => eni.tags['tke-node'] === 'n1');
        t.is(mine.length, enis, what);
      });
  });
