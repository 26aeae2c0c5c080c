import test from 'ava';
import type { NodeEniConfigStatus, NodeEniInfo } from '../../../crd/node-eni-config-fields.ts';
import type { Ids } from '../../../ipamd/decide/decision.ts';
import { undoEdit } from '../../../ipamd/decide/undo-edit.ts';

const FIRST: NodeEniInfo = {
  eniID: 'eni-1',
  mac: '20:90:6f:00:00:01',
  state: 'Attached',
  assignmentID: 'bound-1',
  addresses: [
    { ip: '10.0.1.11', assignmentID: 'a', state: 'Assigned' },
    { ip: '10.0.1.12', assignmentID: 'b', state: 'Releasing' },
  ],
};
const SECOND: NodeEniInfo = { ...FIRST, eniID: 'eni-2', mac: '20:90:6f:00:00:02', addresses: [] };
const OWN: NodeEniConfigStatus = {
  supplyEpoch: 7,
  instanceID: 'ins-1',
  eniInfos: [FIRST, SECOND],
  routeENIs: 2,
  routeENIIPs: 1,
};

function counted(): Ids {
  let serial = 0;
  return { next: () => `new-${++serial}`, now: () => '2026-01-01T00:00:00Z' };
}

const undo = (current: NodeEniConfigStatus) => undoEdit(OWN, current, counted());

test('undoEdit: nothing was changed', (t) => {
  t.is(undo(OWN), undefined);
  t.is(undo({ ...OWN, zone: 'elsewhere', supplyEpoch: 9 }), undefined, 'other writers of ipamd');
});

test('undoEdit: what was edited gets new assignment ids, so that no earlier offer counts; what was not keeps them', (t) => {
  const undone = undo({ ...OWN, eniInfos: [{ ...FIRST, addresses: [] }, SECOND] });
  t.deepEqual(undone?.fields, ['eniInfos']);
  const [first, second] = undone?.status.eniInfos ?? [];
  t.deepEqual(
    first?.addresses?.map(({ ip, assignmentID, state }) => `${ip} ${assignmentID} ${state}`),
    ['10.0.1.11 new-1 Assigned', '10.0.1.12 b Releasing'],
  );
  t.is(first?.assignmentID, 'new-2');
  t.is(second, SECOND);
  t.is(undone?.status.supplyEpoch, 8);
});

test('undoEdit: the epoch never falls below one that was seen', (t) => {
  t.is(undo({ ...OWN, supplyEpoch: 20, eniInfos: [] })?.status.supplyEpoch, 21);
  t.is(undo({ ...OWN, supplyEpoch: 3 })?.status.supplyEpoch, 7);
});

test('undoEdit: a call on record stays on record, and one that nobody made goes', (t) => {
  const intent = {
    id: 'feedfacefeedface',
    action: 'DetachNetworkInterface',
    phase: 'Recorded',
    leaderEpoch: 1,
    requestTimeoutSeconds: 5,
    recordedAt: '2026-01-01T00:00:00Z',
  } as const;
  t.deepEqual(undoEdit({ ...OWN, intents: [intent] }, { ...OWN, intents: [] }, counted())?.status.intents, [intent]);
  t.is(undo({ ...OWN, intents: [intent] })?.status.intents, undefined);
});

test('undoEdit: the instance that ipamd names first is no edit', (t) => {
  const { instanceID: _none, ...unnamed } = OWN;
  t.is(undoEdit(unnamed, OWN, counted()), undefined);
  t.deepEqual(undo({ ...OWN, instanceID: 'ins-2' })?.fields, ['instanceID']);
});
