import test from 'ava';
import type { NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { NodeMemories, trackIntents } from '../../ipamd/calls/node-memory.ts';
import type { Ids, Intent } from '../../ipamd/decide/decision.ts';
import { finishIntent } from '../../ipamd/decide/finish-intent.ts';
import { rebuildStatus } from '../../ipamd/decide/rebuild-status.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { seenEni } from './cloud-truth.ts';
import { protocolModel } from './protocol-model.ts';
import { walk } from './walk.ts';

// What the protocol check found in the product, each as the one step that was wrong.

const IP = '10.0.0.11';

function countingIds(): Ids {
  let count = 0;
  return { next: () => `id-${count++}`, now: () => '2024-01-01T00:00:00Z' };
}

function entry(eniID: string, state: NodeEniInfo['state'], address?: 'Assigned' | 'Releasing'): NodeEniInfo {
  const { mac, primaryIP, subnetCIDR, gateway } = seenEni({ eniId: eniID, name: '', isAttached: true, ips: [] });
  const addresses = address === undefined ? [] : [{ ip: IP, assignmentID: 'old', state: address }];
  return { eniID, mac, primaryIP, subnetCIDR, gateway, state, addresses };
}

function call(action: Intent['action'], eniID: string): Intent {
  return {
    id: `call-${eniID}`,
    action,
    eniID,
    phase: 'Recorded',
    leaderEpoch: 1,
    requestTimeoutSeconds: 60,
    recordedAt: '2024-01-01T00:00:00Z',
  };
}

function ipsOf({ eniInfos = [] }: NodeEniConfigStatus): Readonly<Record<string, readonly string[]>> {
  return Object.fromEntries(eniInfos.map((eni) => [eni.eniID, (eni.addresses ?? []).map(({ ip }) => ip)]));
}

test('finishIntent: takes in an address that the object still has as leaving another ENI', (t) => {
  const assign = call('AssignPrivateIpAddresses', 'eni-2');
  const status: NodeEniConfigStatus = {
    supplyEpoch: 5,
    eniInfos: [entry('eni-1', 'Attached', 'Releasing'), entry('eni-2', 'Attached')],
    intents: [{ ...call('UnassignPrivateIpAddresses', 'eni-1'), ips: [IP] }, assign],
  };
  const result = { action: 'AssignPrivateIpAddresses' as const, ips: [IP] };
  const next = finishIntent(status, assign, { kind: 'done', result }, countingIds());
  t.deepEqual(ipsOf(next), { 'eni-1': [], 'eni-2': [IP] });
});

for (const state of ['Releasing', 'Assigned'] as const) {
  test(`rebuildStatus: gives an address to the ENI that the cloud shows it on when one under a call has it as ${state}`, (t) => {
    const status: NodeEniConfigStatus = {
      supplyEpoch: 5,
      instanceID: 'ins-1',
      eniInfos: [entry('eni-1', 'Detaching', state)],
      intents: [call('DeleteNetworkInterface', 'eni-1')],
    };
    const seen = seenEni({ eniId: 'eni-2', name: 'tke-c-2', isAttached: true, ips: [IP] });
    const sight = { enis: new Map([['eni-2', seen]]), isComplete: true };
    t.deepEqual(ipsOf(rebuildStatus(status, {}, sight, countingIds())), { 'eni-1': [], 'eni-2': [IP] });
  });
}

test('trackIntents: keeps a call that runs when a restored object has no intent of it', (t) => {
  const memory = new NodeMemories(new VirtualClock()).of('node-1');
  const ended = Promise.resolve();
  memory.calls.set('runs', { kind: 'send', endedMs: undefined, outcome: undefined, ended });
  memory.calls.set('ended', {
    kind: 'send',
    endedMs: undefined,
    outcome: { kind: 'accepted', taskId: 'task-1' },
    ended,
  });
  trackIntents(memory, {}, 0);
  t.deepEqual([...memory.calls.keys()], ['runs']);
});

// A limit, not yet closed: a restore hides a whole release from an agent that had seen nothing of it. It takes its offer
// back on an object that looks as the agent knew it, while the cloud has given the address away (docs/protocol.md).
test('protocol: an agent that missed a release takes its offer back when etcd is restored to before it', (t) => {
  const model = protocolModel({
    ips: [IP],
    pods: 1,
    warm: { min: 0, max: 0 },
    budget: { crashes: 1, faults: 0, restores: 1, tenants: 0, pods: 2 },
  });
  const end = walk(model, [
    'pod0: comes',
    'agent: writes: wants 1, offers []',
    'pod0: goes',
    'ipamd: looks; calls Create',
    'ipamd: hears from the cloud: Create',
    'ipamd: hears from the cloud: Attach',
    'agent: supply of epoch 2 in force',
    'agent: writes: wants 0, offers [10.0.0.11]',
    'etcd: a backup is made',
    'ipamd: looks; calls Detach',
    'ipamd: hears from the cloud: Detach',
    'cloud: Delete',
    'pod0: comes',
    'CRASH: etcd is restored',
    'agent: writes: wants 1, offers []',
    'agent: hears that its write is done, 10.0.0.11 back in use',
    'pod0: ADD gives 10.0.0.11',
  ]);
  t.is(model.faultOf(end), 'pod0/eth0 uses 10.0.0.11 on eni-1, which is not attached');
});
