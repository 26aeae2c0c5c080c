import test from 'ava';
import { readExclusiveEnis } from '../../../agent/device-plugin/count-supply.ts';
import { countDevices } from '../../../agent/device-plugin/decide-devices.ts';
import {
  decideExclusivePublication,
  type ExclusivePublicationInput,
} from '../../../agent/exclusive/decide-exclusive-publication.ts';
import { type Lease, leaseKey } from '../../../agent/journal/lease.ts';
import { NodeState } from '../../../agent/state/node-state.ts';
import { supplyOfConfig } from '../../../agent/supply/supply-of-config.ts';
import type { NodeSettings } from '../../../crd/node-eni-config-annotations.ts';
import type { NodeEniConfigSpec, NodeEniInfo } from '../../../crd/node-eni-config-fields.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { sampleLease } from '../pool/supply-sample.ts';

/** A node that serves exclusive ENIs no more: policy took `maxDirectENI` out of its spec. */
const SWITCHED_OFF: NodeEniConfigSpec = { maxRouteENI: 3, maxIPPerENI: 9, desiredDirectENI: 2 };

const ENIS: readonly NodeEniInfo[] = [eni('eni-1', 1), eni('eni-2', 2)];
const LEASE: Lease = { ...sampleLease('c1', 'eni-1', ['10.0.0.1']), plugin: 'direct-eni' };
const KEY = leaseKey(LEASE);

for (const { title, spec, settings } of [
  { title: 'the label or the flag of the cluster is off', spec: {}, settings: {} },
  { title: 'the label is off and an annotation names a limit', spec: {}, settings: { directMaxAttach: 4 } },
  { title: 'an annotation allows none', spec: { maxDirectENI: 4 }, settings: { directMaxAttach: 0 } },
  { title: 'a person writes 0', spec: { maxDirectENI: 0 }, settings: {} },
]) {
  test(`decideExclusivePublication: gives back all that no Pod uses, and the device of a Pod stays until it ends, when ${title}`, (t) => {
    const state = stateOf({ ...SWITCHED_OFF, ...spec }, settings, ENIS);
    const used = decideExclusivePublication(inputOf(state));
    t.deepEqual(used.spec, { desired: 0, releasable: [{ eniId: 'eni-2', assignmentId: 'a-2' }] });
    t.deepEqual(devicesOf(state), { total: 1, unhealthy: 0 });
    state.leases.delete(KEY);
    state.exclusivePool.release({ key: KEY, nowMs: 0, cooldownMs: 0 });
    const free = decideExclusivePublication(inputOf(state));
    t.deepEqual(
      free.spec?.releasable.map(({ eniId }) => eniId),
      ['eni-1', 'eni-2'],
    );
    t.deepEqual(devicesOf(state), { total: 0, unhealthy: 0 });
  });
}

test('decideExclusivePublication: withdraws its demand when the node serves no exclusive ENIs and has none', (t) => {
  const state = stateOf(SWITCHED_OFF, {}, []);
  state.leases.delete(KEY);
  t.is(state.supply?.direct, undefined);
  const observed = { desired: 2, releasable: [], enis: new Map() };
  const { spec, isDue } = decideExclusivePublication({ ...inputOf(new NodeState(systemClock)), observed });
  t.true(isDue);
  t.deepEqual(spec, { desired: 0, releasable: [] });
});

test('readExclusiveEnis: a Pod keeps its device when the node has no exclusive ENI but its own, and the object lists none', (t) => {
  const state = stateOf(SWITCHED_OFF, {}, []);
  t.deepEqual(devicesOf(state), { total: 1, unhealthy: 0 });
});

/** A node whose first ENI a Pod uses. */
function stateOf(spec: NodeEniConfigSpec, settings: NodeSettings, eniInfos: readonly NodeEniInfo[]): NodeState {
  const supply = supplyOfConfig(
    {
      apiVersion: 'networking.tke.cloud.tencent.com/v1',
      kind: 'NodeENIConfig',
      metadata: { name: 'n' },
      spec,
      status: { eniInfos },
    },
    settings,
  );
  const state = new NodeState(systemClock);
  state.restore({ leases: [LEASE], cooldowns: [], enis: [], supply });
  for (const { eniID } of eniInfos) state.exclusiveNics.set(eniID, { ifindex: 7, ifname: 'eth1', mtu: 1500 });
  return state;
}

function inputOf({ exclusivePool, supply }: NodeState): ExclusivePublicationInput {
  const enis = new Map(
    ENIS.map(({ eniID, assignmentID = '' }) => [eniID, { assignmentId: assignmentID, isLeaving: false }]),
  );
  return {
    pool: exclusivePool.state,
    offers: [],
    observed: { desired: 2, releasable: [], enis },
    warm: supply?.direct?.warm,
    ...{ nowMs: 0, waiting: 0, isCurrent: true, mayOffer: true, isIntervalOver: true },
  };
}

function devicesOf(state: NodeState) {
  const supply = readExclusiveEnis(state, undefined);
  return supply === undefined ? undefined : countDevices(supply);
}

function eni(eniID: string, last: number): NodeEniInfo {
  return {
    ...{ eniID, mac: `20:90:6f:00:00:0${last}`, mode: 'direct-eni', state: 'Attached', assignmentID: `a-${last}` },
    ...{ primaryIP: `10.0.0.${last}`, gateway: '10.0.0.254', subnetCIDR: '10.0.0.0/24', subnetID: 'subnet-a' },
  };
}
