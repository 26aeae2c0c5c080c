import test from 'ava';
import { CloudError, DEADLINE_CODE } from '../../../cloud/cloud-error.ts';
import { CircuitBreakers } from '../../../ipamd/calls/circuit-breakers.ts';
import type { NodeDeps } from '../../../ipamd/calls/node-deps.ts';
import { sendIntent } from '../../../ipamd/calls/run-intent.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const INTENT = {
  id: '1',
  action: 'DetachNetworkInterface',
  phase: 'Recorded',
  leaderEpoch: 1,
  requestTimeoutSeconds: 60,
  recordedAt: '2026-01-01T00:00:00.000Z',
  eniID: 'eni-1',
  instanceID: 'ins-1',
} as const;
const CASE = { node: 'n1', uid: 'uid-1', intent: INTENT, status: {}, priority: 'gc' } as const;

/** What is left of a call that failed with this code: its outcome, and how many breakers are open. */
async function sendWith(code: string) {
  const breakers = new CircuitBreakers(new VirtualClock());
  const { action } = INTENT;
  const detach = () => Promise.reject(new CloudError({ code, action, text: 'no', retry: 'backoff', afterMs: 0 }));
  // A call that is refused asks nothing else of its surroundings.
  const deps = { cloud: { enis: { detach } }, breakers } as unknown as NodeDeps;
  const outcome = await sendIntent(deps, CASE, new AbortController().signal);
  return { kind: outcome.kind, open: breakers.openKeys() };
}

test('sendIntent: a call that was never sent ends as refused, and blocks nothing: the cloud refused nothing', async (t) => {
  t.deepEqual(await sendWith(DEADLINE_CODE), { kind: 'refused', open: [] });
});

test('sendIntent: a call that the cloud refused is blocked for a while', async (t) => {
  const { kind, open } = await sendWith('InternalError');
  t.is(kind, 'refused');
  t.deepEqual(open, ['node/n1/call/DetachNetworkInterface/eni-1']);
});
