import test from 'ava';
import type { NodeEniConfigStatus } from '../../../crd/node-eni-config-fields.ts';
import { findMoved } from '../../../ipamd/nodes/find-moved.ts';

const IP = '10.0.1.5';
const CLAIM = { namespace: 'default', name: 'web-0' };

function statusOf(eniID: string, address: object, eni: object = {}): NodeEniConfigStatus {
  return {
    eniInfos: [
      {
        eniID,
        mac: '20:90:6f:00:00:01',
        state: 'Attached',
        ...eni,
        addresses: [{ ip: IP, assignmentID: 'a', state: 'Assigned', ...address }],
      },
    ],
  } as NodeEniConfigStatus;
}

const LET_GO = statusOf('eni-1', { state: 'Releasing', claim: CLAIM });
const ARRIVED = statusOf('eni-2', { state: 'Assigned', claim: CLAIM });

const cases: readonly (readonly [
  string,
  NodeEniConfigStatus | undefined,
  NodeEniConfigStatus | undefined,
  string | undefined,
])[] = [
  ['tells the ENI where it has arrived', LET_GO, ARRIVED, 'eni-2'],
  ['tells nothing while the other node has no status', LET_GO, undefined, undefined],
  [
    'tells nothing of an address that still serves here',
    statusOf('eni-1', { state: 'Assigned', claim: CLAIM }),
    ARRIVED,
    undefined,
  ],
  ['tells nothing of an address of the pool', statusOf('eni-1', { state: 'Releasing' }), ARRIVED, undefined],
  [
    'tells nothing while it is on its way out there too',
    LET_GO,
    statusOf('eni-2', { state: 'Releasing', claim: CLAIM }),
    undefined,
  ],
  [
    'tells nothing while the ENI there is being attached',
    LET_GO,
    statusOf('eni-2', { state: 'Assigned', claim: CLAIM }, { state: 'Attaching' }),
    undefined,
  ],
  ['tells nothing for a node without a status', undefined, ARRIVED, undefined],
];
for (const [what, here, there, expected] of cases) {
  test(`findMoved: ${what}`, (t) => {
    const holders = [
      { name: 'n1', ...(here === undefined ? {} : { status: here }) },
      { name: 'n2', ...(there === undefined ? {} : { status: there }) },
    ];
    const moved = findMoved('n1', here, () => holders);
    t.deepEqual([...moved], expected === undefined ? [] : [[IP, expected]]);
  });
}
