import test from 'ava';
import { isTakenLately, mayBeOfBefore, noteEniChange } from '../../../ipamd/calls/eni-changes.ts';
import { RecentChanges } from '../../../ipamd/calls/recent-changes.ts';
import type { Intent, IntentResult } from '../../../ipamd/decide/decision.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const IP = '10.0.1.9';
const SECOND_MS = 1_000;
const BASE = { id: 'i', phase: 'Unclear', leaderEpoch: 1, requestTimeoutSeconds: 60, recordedAt: '' } as const;
const intentOf = (action: Intent['action'], more: Partial<Intent> = {}): Intent => ({
  ...BASE,
  action,
  eniID: 'eni-1',
  ...more,
});
const MOVE = intentOf('MigratePrivateIpAddress', { eniID: 'eni-2', targetENIID: 'eni-1', ips: [IP] });
const ASSIGN = intentOf('AssignPrivateIpAddresses', { ips: [IP] });
const UNASSIGN = intentOf('UnassignPrivateIpAddresses', { ips: [IP] });
const ATTACH = intentOf('AttachNetworkInterface', { claim: 'd/web-0' });
const DETACH = intentOf('DetachNetworkInterface');
const GROUPS = intentOf('ModifyNetworkInterfaceAttribute', { securityGroups: ['sg-1'] });

type Row = { readonly call: Intent; readonly after: Intent; readonly node?: string };

/** What a call may be mistaken for: the state of before the opposite. */
const OPPOSITES: readonly Row[] = [
  { call: MOVE, after: intentOf('MigratePrivateIpAddress', { targetENIID: 'eni-2', ips: [IP] }), node: 'n2' },
  { call: MOVE, after: UNASSIGN },
  { call: ASSIGN, after: UNASSIGN },
  { call: UNASSIGN, after: ASSIGN },
  { call: UNASSIGN, after: MOVE },
  { call: ATTACH, after: DETACH },
  { call: DETACH, after: ATTACH },
  { call: GROUPS, after: GROUPS },
];

/** Changes as of long after the begin of the term. */
async function changesOf(clock: VirtualClock): Promise<RecentChanges> {
  const changes = new RecentChanges(clock);
  await clock.advance(61 * SECOND_MS);
  return changes;
}

const resultOf = ({ action, ips = [] }: Intent): IntentResult => ({ action, ips }) as unknown as IntentResult;

for (const { call, after, node = 'n1' } of OPPOSITES)
  test(`mayBeOfBefore: ${call.action} after ${after.action}${node === 'n1' ? '' : ' to another node'}, for a minute`, async (t) => {
    const clock = new VirtualClock();
    const changes = await changesOf(clock);
    t.false(mayBeOfBefore(changes, 'n1', call, clock.monotonicMs()));
    noteEniChange(changes, node, after, resultOf(after), node === 'n1' ? undefined : 'n1');
    t.true(mayBeOfBefore(changes, 'n1', call, clock.monotonicMs() + 60 * SECOND_MS));
    t.false(mayBeOfBefore(changes, 'n1', call, clock.monotonicMs() + 61 * SECOND_MS));
  });

test('mayBeOfBefore: in the first minute of a term the former leader may have done the opposite', async (t) => {
  const clock = new VirtualClock();
  const changes = new RecentChanges(clock);
  const { claim: _claim, ...ofPool } = ATTACH;
  const creation = intentOf('CreateNetworkInterface');
  for (const call of [MOVE, ASSIGN, UNASSIGN, ATTACH, DETACH, GROUPS])
    t.true(mayBeOfBefore(changes, 'n1', call, clock.monotonicMs()), call.action);
  for (const call of [ofPool, creation, intentOf('AssignPrivateIpAddresses', { ipCount: 3 })])
    t.false(mayBeOfBefore(changes, 'n1', call, clock.monotonicMs()), call.action);
  // Of an ENI that this leader made nothing is unknown.
  const made = { action: creation.action, eni: { eniID: 'eni-1', ips: [] } } as unknown as IntentResult;
  noteEniChange(changes, 'n1', creation, made, undefined);
  t.false(mayBeOfBefore(changes, 'n1', ASSIGN, clock.monotonicMs()));
});

test('isTakenLately: an address that comes back is not taken any more', async (t) => {
  const clock = new VirtualClock();
  const changes = await changesOf(clock);
  const isTaken = () => isTakenLately(changes, 'n1', IP, clock.monotonicMs());
  noteEniChange(changes, 'n1', UNASSIGN, resultOf(UNASSIGN), undefined);
  t.true(isTaken());
  noteEniChange(changes, 'n1', ASSIGN, resultOf(ASSIGN), undefined);
  t.false(isTaken());
});
